"""What a report says in words and tables around its charts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from gateway.bench.report.parts import NONE, Table, milliseconds, plain, share, told
from gateway.bench.results import ArmSummary, BenchResult, Comparison, Sample, Spread

CONFOUNDED = "Confounded"
LONGEST_DETAIL = 300

FIGURES: Sequence[tuple[str, str, Callable[[float | None], str]]] = (
    ("TTFT P50", "p50_ttft_ms", milliseconds),
    ("TTFT P90", "p90_ttft_ms", milliseconds),
    ("TTFT P99", "p99_ttft_ms", milliseconds),
    ("Inter-token latency, median", "median_itl_ms", milliseconds),
    ("Inter-token latency, P90", "p90_itl_ms", milliseconds),
    ("End to end P50", "p50_e2el_ms", milliseconds),
    ("Requests a second", "request_throughput", plain),
    ("Of these within the SLO", "request_goodput", plain),
    ("Output tokens a second", "output_throughput", plain),
    ("Prefix cache hit rate", "hit_rate", share),
    ("KV cache in use, peak", "kv_usage_peak", share),
    ("GPU memory in use, peak", "gpu_memory_peak", share),
    ("GPU utilisation", "gpu_utilisation", share),
)
HELD = {True: "holds", False: "does not hold", None: "not judged"}


@dataclass(frozen=True, slots=True)
class Answer:
    """Attributes:
    verdict: in few words.
    kind: `shown` a difference, `open` none shown, `confounded`, `single` for one arm.
    sentences: what it rests on.
    """

    verdict: str
    kind: str
    sentences: Sequence[str]


def answers(result: BenchResult) -> list[Answer]:
    """One for each pair of arms; of a single arm, its TTFT."""
    if len(result.arms) < 2:
        return [_alone(arm) for arm in result.arms if arm.figures]
    confounded = any(remark.startswith(CONFOUNDED) for remark in result.remarks)
    found = []
    for base, other in combinations(result.arms, 2):
        pair = [one for one in result.comparisons if (one.base, one.other) == (base.arm, other.arm)]
        if pair:
            found.append(_answer(told(base.arm), told(other.arm), pair, confounded))
    return found


def _answer(base: str, other: str, pair: Sequence[Comparison], confounded: bool) -> Answer:
    sentences = [one.sentence for one in pair]
    ttft = [one for one in pair if one.separate and "_ttft_" in one.figure]
    if confounded:
        verdict = f"{other} and {base} cannot be compared: the conditions were not equal."
        return Answer(verdict, "confounded", sentences)
    if not ttft:
        return Answer(
            f"No difference in TTFT between {other} and {base} is shown.", "open", sentences
        )
    later = {one.difference > 0 for one in ttft}
    which = ", ".join(one.figure[:3].upper() for one in ttft)
    if len(later) > 1:
        verdict = (
            f"{other} and {base} differ in TTFT, one way in some percentiles, the other in others."
        )
        return Answer(verdict, "shown", sentences)
    word = "later" if later.pop() else "sooner"
    return Answer(f"{other} answers {word} than {base} ({which}).", "shown", sentences)


def _alone(arm: ArmSummary) -> Answer:
    names = [("P50", "p50_ttft_ms"), ("P90", "p90_ttft_ms"), ("P99", "p99_ttft_ms")]
    figures = [
        f"{name} {milliseconds(spread.median)}"
        for name, figure in names
        if (spread := arm.figures.get(figure))
    ]
    rounds = "1 round" if arm.rounds == 1 else f"the medians of {arm.rounds} rounds"
    return Answer(f"TTFT of {told(arm.arm)}: {', '.join(figures)}, {rounds}.", "single", ())


def remarks(result: BenchResult) -> list[str]:
    """What forbids a comparison first."""
    return sorted(result.remarks, key=lambda one: not one.startswith(CONFOUNDED))


def thresholds(result: BenchResult) -> list[tuple[str, str]]:
    """Whether one holds, in two words, and a sentence; what is the same for all arms once."""
    arms: dict[tuple[str, str], list[str]] = {}
    for one in result.thresholds:
        arms.setdefault((HELD[one.held], one.sentence), []).append(told(one.arm))
    return [(held, f"{', '.join(names)}: {said}") for (held, said), names in arms.items()]


def figures(result: BenchResult) -> Table:
    """A row a figure that any arm has, a column an arm."""
    rows = [
        (name, *(_cell(arm.figures.get(figure), write) for arm in result.arms))
        for name, figure, write in FIGURES
        if any(figure in arm.figures for arm in result.arms)
    ]
    counts = [
        ("Rounds", *(str(arm.rounds) for arm in result.arms)),
        ("Requests", *(f"{arm.requests:,}" for arm in result.arms)),
        ("Failed", *(_failed(arm) for arm in result.arms)),
    ]
    return Table(
        "Median of the rounds (smallest-largest)",
        ("Figure", *(told(arm.arm) for arm in result.arms)),
        [*rows, *counts],
    )


def _cell(spread: Spread | None, write: Callable[[float | None], str]) -> str:
    if spread is None:
        return NONE
    if spread.low == spread.high:
        return write(spread.median)
    low = write(spread.low).removesuffix(" ms").removesuffix(" %")
    return f"{write(spread.median)} ({low}-{write(spread.high)})"


def _failed(arm: ArmSummary) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in arm.errors.items()) or "0"


def failures(result: BenchResult) -> Table | None:
    """Kinds of failures by arm, each with what was said of its first."""
    found: dict[tuple[str, str], tuple[int, Sample]] = {}
    for one in result.rounds:
        for sample in one.samples:
            if sample.error is not None:
                kind = f"{sample.error} {sample.status or ''}".strip()
                count, first = found.get((one.arm, kind), (0, sample))
                found[one.arm, kind] = (count + 1, first)
    if not found:
        return None
    rows = [
        (told(arm), kind, f"{count:,}", first.detail[:LONGEST_DETAIL] or NONE)
        for (arm, kind), (count, first) in found.items()
    ]
    return Table("Failed requests", ("Arm", "Kind", "Requests", "The first one said"), rows)


def engines(result: BenchResult) -> Table | None:
    """What is known of each arm's engines; a row a setting."""
    names = list(dict.fromkeys(name for arm in result.arms for name in arm.engine))
    backends: list[tuple[str, ...]] = []
    if any(arm.backends for arm in result.arms):
        backends.append(("requests by backend", *(_counts(arm.backends) for arm in result.arms)))
    if not names and not backends:
        return None
    rows = [(name, *(_setting(arm.engine.get(name)) for arm in result.arms)) for name in names]
    head = ("Setting", *(told(arm.arm) for arm in result.arms))
    return Table("Engines of each arm", head, [*rows, *backends])


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or NONE


def _setting(value: str | int | float | bool | None) -> str:
    if value is None:
        return NONE
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def client(result: BenchResult) -> Table:
    """What the client itself cost, round by round."""
    rows = [
        (
            f"{one.number}, {told(one.arm)}",
            milliseconds(one.client.send_ms),
            milliseconds(one.client.stamp_ms),
            milliseconds(one.client.cpu_ms_per_request),
            share(one.client.cpu_share),
            share(one.client.ttft_share),
        )
        for one in result.rounds
    ]
    head = (
        "Round, arm", "Before sending", "Until the stamp", "CPU a request", "Of a core",
        "Of median TTFT",
    )  # fmt: skip
    return Table("The client's own cost", head, rows)
