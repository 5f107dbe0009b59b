#!/usr/bin/env bash
# Remakes requirements/cpu.lock from cpu.in and cpu-overrides.txt. Needs `uv`; UV names another one.
# PIP_FIND_LINKS and UV_* are honoured, and none of what they say gets into the lock.
set -eu
cd "$(dirname "$0")/.."

uv=${UV:-uv}
if ! command -v "$uv" >/dev/null; then
    echo "\`uv\` is not here" >&2
    echo "hint: pip install uv, or name it: make lock UV=path/to/uv" >&2
    exit 1
fi

# torch's CPU builds have an index of their own. A folder of wheels, if one is named, goes first.
if [ -n "${PIP_FIND_LINKS:-}" ]; then
    set -- --find-links "$PIP_FIND_LINKS" "$@"
else
    set -- --extra-index-url https://download.pytorch.org/whl/cpu --index-strategy unsafe-best-match "$@"
fi

UV_CUSTOM_COMPILE_COMMAND="make lock" "$uv" pip compile requirements/cpu.in \
    --override requirements/cpu-overrides.txt --python-version 3.11 \
    --no-annotate --no-header \
    --quiet --output-file requirements/cpu.lock "$@"
echo "requirements/cpu.lock: $(wc -l <requirements/cpu.lock) packages"
