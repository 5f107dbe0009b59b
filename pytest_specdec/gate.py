"""The gate: all profiles of one session. Floor 5.

It knows pytest's wishes (`Options`) and nothing else of pytest: test items, fixtures and hooks ask
it.
"""

from __future__ import annotations

from typing import Any

from pytest_specdec.baseline_store import BaselineStore
from pytest_specdec.engines.pair import EnginePair
from pytest_specdec.engines.protocol import Pair, Watch
from pytest_specdec.engines.recorded import RecordedPair
from pytest_specdec.errors import SpecdecError
from pytest_specdec.hardware import Hardware, hardware_for
from pytest_specdec.kinds import KINDS
from pytest_specdec.known_defects import check_known_names
from pytest_specdec.leases import Lease
from pytest_specdec.options import Options
from pytest_specdec.point_gate import check_must_gain, measured
from pytest_specdec.profile import Profile, Profiles, read_profiles
from pytest_specdec.profile_gate import ProfileGate
from pytest_specdec.recorder import Recorder
from pytest_specdec.table import Place


class Gate:
    """All profiles of one session.

    Variants of a profile are among them where the session asks whether speculation pays.

    Args:
        options: what the session asks for.
        watch: told what the engines do.
        share: which of the GPUs to try first; workers of one session have different ones.

    Raises:
        ConfigError: `specdec.toml` cannot be read, holds no such profile, a known defect of a
            check or a kind that there is not, or a gain where nothing is measured.
        HardwareError: a profile's accelerator is not here.
        StoredBaselineError: a stored baseline cannot be read.
        RecordingError: a recording to be judged cannot be read, or none can be written.
    """

    def __init__(self, options: Options, *, watch: Watch, share: int = 0) -> None:
        self.options = options
        read = read_profiles(options.config_file)
        for each in read.profiles.values():
            place = Place(read.path.name, ("profiles", each.name, "known_defects"))
            check_known_names(place, each.known_defects, known=KINDS)
        self._watch = watch
        self._share = share
        self.profiles: dict[str, ProfileGate] = {}
        for profile in _chosen(options, read):
            if options.is_worth_it:
                place = Place(read.path.name, ("profiles", profile.name, "worth_it", "must_gain"))
                check_must_gain(place, profile, options.suite_folders)
                self._add_points(measured(profile))
            else:
                self._add(profile)

    def _add_points(self, profile: Profile) -> None:
        """A profile and its variants, which are measured after it."""
        self._add(profile)
        for changes in profile.worth_it.speculative_configs:
            self._add(profile.variant(changes), base_name=profile.name, changes=changes)

    def _add(self, profile: Profile, **variant_of: Any) -> None:
        options = self.options
        hardware, pair = _pair(options, profile, self._watch, self._share)
        store = BaselineStore(options.baselines_folder)
        self.profiles[profile.name] = ProfileGate(
            profile=profile,
            hardware=hardware,
            # Points of sweeps are not stored.
            stored=None if options.is_worth_it else store.load(hardware.key, profile.name),
            pair=pair,
            options=options,
            recorder=_recorder(options, profile, hardware),
            **variant_of,
        )

    def profile(self, name: str) -> ProfileGate:
        """The named profile's share; the engines of the others are ended, if they run."""
        for other in self.profiles.values():
            if other.profile.name != name:
                other.pair.close()
        return self.profiles[name]

    def close(self) -> None:
        """Ends all engines."""
        for each in self.profiles.values():
            each.pair.close()


def _pair(options: Options, profile: Profile, watch: Watch, share: int) -> tuple[Hardware, Pair]:
    """What a profile is judged by, and the hardware under it: engines here, or a recording."""
    if options.replay_folder is not None:
        recorded = RecordedPair(profile, options.replay_folder)
        return recorded.hardware, recorded
    return hardware_for(profile), EnginePair(
        profile,
        python=options.python,
        log_folder=options.report_folder / "logs",
        watch=watch,
        lease=Lease(profile, share=share, watch=watch),
    )


def _recorder(options: Options, profile: Profile, hardware: Hardware) -> Recorder | None:
    if options.record_folder is None:
        return None
    recorder = Recorder(folder=options.record_folder, profile=profile, hardware=hardware)
    recorder.check()
    return recorder


def _chosen(options: Options, profiles: Profiles) -> list[Profile]:
    if not options.profile_names:
        return profiles.defaults_for("gpu" if options.is_gpu else "cpu")
    chosen = [profiles.chosen(name) for name in options.profile_names]
    for profile in chosen:
        if options.is_gpu and profile.device != "gpu":
            raise SpecdecError(
                f"`--specdec-gpu` and `--specdec-profile {profile.name}` contradict each other",
                hint=f"the profile is for device: {profile.device}",
            )
    return chosen
