"""A gateway's `/metrics` page, read for what the console shows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from gateway.console.histograms import Counts

TTFT = "gateway_time_to_first_token_seconds"
REQUESTS = "gateway_requests_total"
PROMPT = "gateway_prompt_tokens_total"
CACHED = "gateway_cached_prompt_tokens_total"
COUNTERS = (REQUESTS, PROMPT, CACHED)

Labels = tuple[tuple[str, str], ...]
"""A series' labels in the order of their names."""

_WANTED = (TTFT, *COUNTERS)


@dataclass(frozen=True, slots=True)
class Page:
    """One reading.

    Attributes:
        bounds: of the TTFT buckets in seconds, infinity last; empty while no series is there.
        ttft: cumulative counts of the buckets by series.
        counters: values by metric and series.
    """

    bounds: tuple[float, ...] = ()
    ttft: Mapping[Labels, Counts] = field(default_factory=dict)
    counters: Mapping[tuple[str, Labels], float] = field(default_factory=dict)


def read(text: str) -> Page:
    """Raises:
    ValueError: the text is no such page.
    """
    bounds: dict[float, None] = {}
    ttft: dict[Labels, list[float]] = {}
    counters: dict[tuple[str, Labels], float] = {}
    for family in text_string_to_metric_families(_relevant(text.splitlines())):
        for sample in family.samples:
            labels = dict(sample.labels)
            if sample.name == f"{TTFT}_bucket":
                bounds[float(labels.pop("le"))] = None
                ttft.setdefault(_key(labels), []).append(sample.value)
            elif sample.name in COUNTERS:
                counters[sample.name, _key(labels)] = sample.value
    return Page(tuple(bounds), {key: tuple(counts) for key, counts in ttft.items()}, counters)


def _relevant(lines: Iterable[str]) -> str:
    """The page is long, and the parser thorough: what is not looked at need not be parsed."""
    kept = [line for line in lines if line.removeprefix("# TYPE ").startswith(_WANTED)]
    return "\n".join(kept) + "\n"


def _key(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))
