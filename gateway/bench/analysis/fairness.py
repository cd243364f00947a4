"""Whether the arms were tried under equal conditions; what to know before comparing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.bench.analysis.cost import MOST
from gateway.bench.analysis.summary import FEWEST_ROUNDS
from gateway.bench.results import ArmSummary, Round
from gateway.keys.limits import OVER_CONCURRENCY

UNEQUAL = 0.2
"""Load per backend may differ by as much between arms, relatively, and still count as equal."""

FAILURES = 0.005
"""Shares of failed requests may differ by as much: latencies are those of the requests that
succeeded, and the arm that fails more may look faster for it."""

_AT_ONCE = OVER_CONCURRENCY.partition("{limit}")[2]
"""What a gateway's refusal ends with where a key has as many requests as it may have at once."""


def confounds(arms: Sequence[ArmSummary]) -> tuple[str, ...]:
    """Why the arms cannot be compared, a sentence each; empty where nothing was found."""
    if len(arms) < 2:
        return ()
    return (*_misrouted(arms), *_unequal_load(arms), *_unequal_failures(arms))


def remarks(arms: Sequence[ArmSummary], rounds: Sequence[Round]) -> tuple[str, ...]:
    """What else the reader should know, a sentence each."""
    return (
        *_refused(rounds),
        *_load(arms),
        *_machines(arms),
        *_gpus(arms, rounds),
        *_rounds(arms),
        *_client(rounds),
    )


def _misrouted(arms: Sequence[ArmSummary]) -> Iterator[str]:
    for one in arms:
        away = sum(count for arm, count in one.served.items() if arm != one.arm)
        if away:
            yield (
                f"Confounded: {away} of {one.requests} requests to {one.arm} were served by "
                "another arm."
            )


def _unequal_load(arms: Sequence[ArmSummary]) -> Iterator[str]:
    shares = {one.arm: share for one in arms if (share := busiest(one)) is not None}
    if len(shares) < 2:
        return
    most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    if shares[most] > shares[least] * (1 + UNEQUAL):
        yield (
            f"Confounded: load per backend was not equal. The busiest backend of {most} got "
            f"{_percent(shares[most])} of its arm's requests, that of {least} "
            f"{_percent(shares[least])}: the difference measures load as much as "
            "configuration. Give each arm as many backends."
        )


def _unequal_failures(arms: Sequence[ArmSummary]) -> Iterator[str]:
    shares = {one.arm: sum(one.errors.values()) / one.requests for one in arms if one.requests}
    if shares and max(shares.values()) - min(shares.values()) > FAILURES:
        told = ", ".join(f"{arm} {_percent(share)}" for arm, share in shares.items())
        yield (
            f"Confounded: not the same share of requests failed ({told}), and latencies are those "
            "of the rest. Mend the errors first."
        )


def _refused(rounds: Sequence[Round]) -> Iterator[str]:
    refused = sum(sample.detail.endswith(_AT_ONCE) for one in rounds for sample in one.samples)
    if refused:
        yield (
            f"The key may have fewer requests at once than were sent, and {refused} were refused: "
            "raise its max_concurrency, or lower --concurrency."
        )


def _load(arms: Sequence[ArmSummary]) -> Iterator[str]:
    if len(arms) < 2:
        return
    if any(busiest(one) is None for one in arms):
        yield (
            "Whether load per backend was equal is not known: replies do not name their backend "
            "(expose_arm of the key)."
        )
    elif not list(_unequal_load(arms)):
        yield "Load per backend was equal in all arms."


def _machines(arms: Sequence[ArmSummary]) -> Iterator[str]:
    single = [one.arm for one in arms if len(one.backends) == 1]
    if len(arms) > 1 and single:
        yield (
            f"One backend served {' and '.join(single)}: this compares machines as much as "
            "configurations. Swap the configurations and run again, or use two backends an arm."
        )


def _gpus(arms: Sequence[ArmSummary], rounds: Sequence[Round]) -> Iterator[str]:
    if len(arms) > 1 and any(not gpu.arm for one in rounds for gpu in one.gpus):
        yield (
            "GPU figures are those of all GPUs that were looked at, whichever arm they serve: "
            "--gpu ARM=0,1 says whose they are."
        )


def _rounds(arms: Sequence[ArmSummary]) -> Iterator[str]:
    fewest = min((one.rounds for one in arms), default=0)
    if fewest < FEWEST_ROUNDS:
        what = "1 round is" if fewest == 1 else f"{fewest} rounds are"
        yield f"{what} complete of each arm: a spread needs at least {FEWEST_ROUNDS}."


def _client(rounds: Sequence[Round]) -> Iterator[str]:
    shares = [one.client.ttft_share for one in rounds if one.client.ttft_share is not None]
    if shares and max(shares) > MOST:
        yield (
            f"The client itself took {_percent(max(shares))} of the median TTFT in one round, more "
            f"than {_percent(MOST)}: run it on a machine of its own, or with fewer streams at a "
            "time."
        )


def busiest(arm: ArmSummary) -> float | None:
    """The busiest backend's share of an arm's requests; None where replies do not name theirs."""
    total = sum(arm.backends.values())
    return max(arm.backends.values()) / total if total else None


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
