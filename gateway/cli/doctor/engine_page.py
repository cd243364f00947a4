"""What an engine's `/metrics` says of its caches and memory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True, slots=True)
class EngineState:
    """An engine since its start, or between two moments; None where its version does not tell.

    Attributes:
        prefix_caching: whether it runs with the prefix cache on.
        queried, hit: prompt tokens looked up in the prefix cache, and found there.
        hit_rate: hit over queried, from 0 to 1; of 0.6-era engines as they state it.
        kv_usage: the part of the KV cache in use now, from 0 to 1.
        preemptions: requests thrown out of memory and computed anew.
        finished: requests that ended.
        prompted: prompt tokens of all requests.
        running: requests that run or wait now.
        block_size: tokens of a block.
    """

    prefix_caching: bool | None
    queried: float | None
    hit: float | None
    hit_rate: float | None
    kv_usage: float | None
    preemptions: float | None
    finished: float | None
    prompted: float | None
    running: float
    block_size: int | None

    @property
    def mean_prompt(self) -> float | None:
        """Tokens of a prompt, on average."""
        return self.prompted / self.finished if self.prompted and self.finished else None

    def since(self, earlier: EngineState) -> EngineState:
        """What was counted after another moment; all of it, where the engine restarted since."""
        if (self.queried or 0) < (earlier.queried or 0):
            return self
        queried = _minus(self.queried, earlier.queried)
        hit = _minus(self.hit, earlier.hit)
        return replace(
            self,
            queried=queried,
            hit=hit,
            # A rate that an engine states itself is one since its start.
            hit_rate=hit / queried if hit is not None and queried else None,
            preemptions=_minus(self.preemptions, earlier.preemptions),
            finished=_minus(self.finished, earlier.finished),
            prompted=_minus(self.prompted, earlier.prompted),
        )


def read(page: str) -> EngineState | None:
    """The state a page tells; None for one that is no vLLM engine's.

    Raises:
        ValueError: it is no Prometheus text.
    """
    sums: dict[str, float] = defaultdict(float)
    highest: dict[str, float] = {}
    caching: list[str] = []
    blocks: list[str] = []
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name.startswith("vllm:"):
                sums[sample.name] += sample.value
                highest[sample.name] = max(sample.value, highest.get(sample.name, sample.value))
                if sample.name == "vllm:cache_config_info":
                    caching.append(sample.labels.get("enable_prefix_caching", ""))
                    blocks.append(sample.labels.get("block_size", ""))
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
        prompted=sums.get("vllm:prompt_tokens_total"),
        running=sums["vllm:num_requests_running"] + sums["vllm:num_requests_waiting"],
        block_size=max((int(size) for size in blocks if size.isdecimal()), default=None),
    )


def _minus(later: float | None, earlier: float | None) -> float | None:
    return None if later is None else later - (earlier or 0)


def _flag(values: list[str]) -> bool | None:
    """Whether all say True; None where none says anything."""
    known = [value.lower() for value in values if value.lower() in ("true", "false")]
    return all(value == "true" for value in known) if known else None
