"""What an engine's `/metrics` says of its caches and memory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True, slots=True)
class EngineState:
    """An engine since its start; None where its version does not tell.

    Attributes:
        prefix_caching: whether it runs with the prefix cache on.
        queried, hit: prompt tokens looked up in the prefix cache, and found there.
        hit_rate: hit over queried, from 0 to 1; of 0.6-era engines as they state it.
        kv_usage: the part of the KV cache in use now, from 0 to 1.
        preemptions: requests thrown out of memory and computed anew.
        finished: requests that ended.
    """

    prefix_caching: bool | None
    queried: float | None
    hit: float | None
    hit_rate: float | None
    kv_usage: float | None
    preemptions: float | None
    finished: float | None


def read(page: str) -> EngineState | None:
    """The state a page tells; None for one that is no vLLM engine's.

    Raises:
        ValueError: it is no Prometheus text.
    """
    sums: dict[str, float] = defaultdict(float)
    highest: dict[str, float] = {}
    caching: list[str] = []
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name.startswith("vllm:"):
                sums[sample.name] += sample.value
                highest[sample.name] = max(sample.value, highest.get(sample.name, sample.value))
                if sample.name == "vllm:cache_config_info":
                    caching.append(sample.labels.get("enable_prefix_caching", ""))
    if not sums:
        return None
    queried = sums.get("vllm:prefix_cache_queries_total")
    hit = sums.get("vllm:prefix_cache_hits_total")
    rate = hit / queried if hit is not None and queried else None
    if queried is None:
        rate = highest.get("vllm:gpu_prefix_cache_hit_rate")
        # Those engines say -1 while the cache is off.
        rate = None if rate is not None and rate < 0 else rate
    usage = highest.get("vllm:kv_cache_usage_perc", highest.get("vllm:gpu_cache_usage_perc"))
    return EngineState(
        prefix_caching=_flag(caching),
        queried=queried,
        hit=hit,
        hit_rate=rate,
        kv_usage=usage,
        preemptions=sums.get("vllm:num_preemptions_total"),
        finished=sums.get("vllm:request_success_total"),
    )


def _flag(values: list[str]) -> bool | None:
    """Whether all say True; None where none says anything."""
    known = [value.lower() for value in values if value.lower() in ("true", "false")]
    return all(value == "true" for value in known) if known else None
