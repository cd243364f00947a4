"""How the sliders of a split move together, so that they always make up the whole. Pure."""

from __future__ import annotations

from collections.abc import Mapping

WHOLE = 100


def percents(weights: Mapping[str, float]) -> dict[str, int]:
    """Weights as whole percents that add up to `WHOLE`; what is cut off goes to the largest rest.

    Args:
        weights: at least one above zero.
    """
    total = sum(weights.values())
    exact = {name: WHOLE * weight / total for name, weight in weights.items()}
    found = {name: int(share) for name, share in exact.items()}
    rests = sorted(exact, key=lambda name: found[name] - exact[name])
    for name in rests[: WHOLE - sum(found.values())]:
        found[name] += 1
    return found


def moved(shares: Mapping[str, int], arm: str, to: int) -> dict[str, int]:
    """The percents once an arm's is `to`: the others share the rest as they did before, or
    evenly where they had nothing. A split of one arm stays whole."""
    others = {name: float(share) for name, share in shares.items() if name != arm}
    if not others:
        return {arm: WHOLE}
    if not any(others.values()):
        others = dict.fromkeys(others, 1.0)
    to = max(0, min(WHOLE, to))
    rest = WHOLE - to
    total = sum(others.values())
    scaled = percents({arm: to, **{name: rest * one / total for name, one in others.items()}})
    return {name: scaled[name] for name in shares}
