"""Looks: when the passes of a speedup are looked at, and how sure each look must be.

Whoever looks several times and stops at the first good sign is wrong more often than each look is.
So the schedule is fixed beforehand, and the error allowed in all is spent over it by the
Pocock-type function of K. K. G. Lan and D. L. DeMets, "Discrete sequential boundaries for clinical
trials", Biometrika 70 (1983). `docs/concepts/statistics.md` derives the critical values. Floor 3;
imports nothing from the package, and numpy and scipy on use.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

# Of the grid on which the density of the running statistic is kept, in standard deviations.
GRID_WIDTH = 9.0
GRID_NODES = 200
MIN_BLOCKS = 2


def schedule(num_blocks: int, num_looks: int) -> tuple[int, ...]:
    """After how many blocks it is looked: evenly spaced, the last time after all of them.

    A look at fewer than two blocks would see next to no scatter; such looks fall together.
    """
    looks = {
        min(num_blocks, max(MIN_BLOCKS, math.ceil(num_blocks * look / num_looks)))
        for look in range(1, num_looks + 1)
    }
    return tuple(sorted(looks))


def spent(level: float, share: float) -> float:
    """How much of `level` may be spent when `share` of all values is there: the Pocock type,
    level * log(1 + (e - 1) * share)."""
    return level * math.log(1 + (math.e - 1) * share)


@cache
def nominal_levels(level: float, looks: tuple[int, ...]) -> tuple[float, ...]:
    """The one-sided level that each look is held to, so that all of them together err with
    probability `level`; for statistics with independent increments, as means of independent
    values are. One look is held to `level` itself.

    Args:
        looks: the schedule: numbers of values, rising.
    """
    from scipy.special import ndtr

    shares = [look / looks[-1] for look in looks]
    wanted = [spent(level, share) for share in shares]
    nominal: list[float] = []
    density: Any = None
    for number, share in enumerate(shares):
        spend = wanted[number] - (wanted[number - 1] if number else 0.0)
        boundary, density = _next(density, spend, share, shares[number - 1] if number else 0.0)
        nominal.append(float(ndtr(-boundary)))
    return tuple(nominal)


def _next(density: Any, spend: float, share: float, before: float) -> tuple[float, Any]:
    """The z boundary of one more look, and the density of what goes on below it.

    The running sum S is normal with variance `share`; what crossed earlier is gone. The recursion
    is that of P. Armitage, C. K. McPherson and B. C. Rowe, J. R. Statist. Soc. A 132 (1969):
    density of S = integral of (density before) times (normal density of the increment).
    """
    import numpy as np
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri

    deviation = math.sqrt(share)
    step = math.sqrt(share - before)

    def crossing(boundary: float) -> float:
        if density is None:
            return float(ndtr(-boundary))
        sums, weights = density
        return float(np.sum(weights * ndtr((sums - boundary * deviation) / step)))

    boundary = (
        float(-ndtri(spend))
        if density is None
        else float(brentq(lambda z: crossing(z) - spend, -GRID_WIDTH, GRID_WIDTH, xtol=1e-10))
    )
    # Gauss-Legendre: the density is smooth below the boundary and cut off there.
    nodes, masses = _nodes()
    low, high = -GRID_WIDTH * deviation, boundary * deviation
    sums = low + (nodes + 1) / 2 * (high - low)
    if density is None:
        heights = np.exp(-(sums**2) / (2 * share)) / math.sqrt(2 * math.pi * share)
    else:
        old_sums, old_weights = density
        gaps = (sums[:, None] - old_sums[None, :]) / step
        heights = (np.exp(-(gaps**2) / 2) @ old_weights) / (step * math.sqrt(2 * math.pi))
    return boundary, (sums, heights * masses * (high - low) / 2)


@cache
def _nodes() -> Any:
    import numpy as np

    return np.polynomial.legendre.leggauss(GRID_NODES)
