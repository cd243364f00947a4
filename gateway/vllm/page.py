"""What an engine's `/metrics` says of its configuration and of its work.

Names and meanings are vLLM's (`vllm/v1/metrics/loggers.py`), those of 0.6-era engines included
where they differ. Of a page, which has thousands of lines, only those wanted are parsed. That takes
less than a millisecond, and of the longest page that is accepted a good part of a second: whoever
has an event loop to keep reads in a thread, which lets go of the interpreter between slices.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from prometheus_client.parser import text_string_to_metric_families

_CONFIG = "vllm:cache_config_info"
_SECONDS = {
    "ttft": "vllm:time_to_first_token_seconds",
    "queue": "vllm:request_queue_time_seconds",
    "prefill": "vllm:request_prefill_time_seconds",
}
_QUERIES, _HITS = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"
_PREEMPTIONS, _FINISHED = "vllm:num_preemptions_total", "vllm:request_success_total"
_PROMPTED = "vllm:prompt_tokens_total"
_RUNNING, _WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"
_USAGE, _USAGE_V0 = "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"
_HIT_RATE_V0 = "vllm:gpu_prefix_cache_hit_rate"

_NAMES = (
    *(name + end for name in _SECONDS.values() for end in ("_sum", "_count")),
    *(_CONFIG, _QUERIES, _HITS, _PREEMPTIONS, _FINISHED, _PROMPTED),
    *(_RUNNING, _WAITING, _USAGE, _USAGE_V0, _HIT_RATE_V0),
)
_WANTED = re.compile(rf"^(?:{'|'.join(map(re.escape, _NAMES))})[{{ ].{{0,16384}}$", re.MULTILINE)
_SLICE = 2**17
"""Characters that are searched in one go."""
MOST_LINES = 4096
"""More than 128 ranks have; parsing one takes a hundred times as long as finding it."""
_BEYOND = 1e18
"""What no engine counts to, and more than 18 digits of a label say."""


class Total(msgspec.Struct, frozen=True):
    """A duration over all requests so far: seconds in `sum`, requests in `count`."""

    sum: float
    count: float


class CacheConfig(msgspec.Struct, frozen=True):
    """The engine's KV cache as it runs; None where its version does not tell.

    Attributes:
        block_size: tokens a block.
        tokens: the cache's size, over all data-parallel ranks.
        prefix_caching: whether prompts share blocks.
        gpu_memory_utilization: as it was started with, from 0 to 1.
    """

    block_size: int | None = None
    tokens: int | None = None
    prefix_caching: bool | None = None
    gpu_memory_utilization: float | None = None


class EnginePage(msgspec.Struct, frozen=True):
    """An engine since its start, summed over its ranks; None where its version does not tell.

    Attributes:
        ttft: arrival at the engine's API server to the first token, with the queue's wait.
        queue, prefill: the scheduler's queue, and from there to the first token.
        queried, hit: prompt tokens looked up in the prefix cache, and found there.
        hit_rate: hit over queried, from 0 to 1; of 0.6-era engines as they state it.
        kv_usage: the part of the KV cache in use now, from 0 to 1; the fullest rank's.
        preemptions: requests thrown out of memory and computed anew.
        finished: requests that ended.
        prompted: prompt tokens of all requests.
        running, waiting: requests now.
    """

    cache: CacheConfig
    ttft: Total | None
    queue: Total | None
    prefill: Total | None
    queried: float | None
    hit: float | None
    hit_rate: float | None
    kv_usage: float | None
    preemptions: float | None
    finished: float | None
    prompted: float | None
    running: float | None
    waiting: float | None

    @property
    def mean_prompt(self) -> float | None:
        """Tokens of a prompt, on average."""
        return self.prompted / self.finished if self.prompted and self.finished else None

    @property
    def busy(self) -> bool:
        """Whether requests run or wait now."""
        return bool(self.running or self.waiting)

    def since(self, earlier: EnginePage) -> EnginePage:
        """What was counted after another moment; all of it, where the engine restarted since."""
        if (self.queried or 0) < (earlier.queried or 0):
            return self
        queried = _minus(self.queried, earlier.queried)
        hit = _minus(self.hit, earlier.hit)
        return msgspec.structs.replace(
            self,
            ttft=_less(self.ttft, earlier.ttft),
            queue=_less(self.queue, earlier.queue),
            prefill=_less(self.prefill, earlier.prefill),
            queried=queried,
            hit=hit,
            # A rate that an engine states itself is one since its start.
            hit_rate=hit / queried if hit is not None and queried else None,
            preemptions=_minus(self.preemptions, earlier.preemptions),
            finished=_minus(self.finished, earlier.finished),
            prompted=_minus(self.prompted, earlier.prompted),
        )


def read_page(page: str) -> EnginePage | None:
    """What a page tells; None for one that is no vLLM engine's.

    Raises:
        ValueError: it is no Prometheus text, or none that an engine would write.
    """
    if not page.startswith("vllm:") and "\nvllm:" not in page:
        return None
    sums: dict[str, float] = defaultdict(float)
    highest: dict[str, float] = {}
    configs: list[Mapping[str, str]] = []
    for family in text_string_to_metric_families("\n".join(_wanted(page))):
        for sample in family.samples:
            if not -_BEYOND < sample.value < _BEYOND:
                continue  # NaN among them
            sums[sample.name] += sample.value
            highest[sample.name] = max(sample.value, highest.get(sample.name, sample.value))
            if sample.name == _CONFIG:
                configs.append(sample.labels)
    queried, hit = sums.get(_QUERIES), sums.get(_HITS)
    return EnginePage(
        cache=_cache(configs),
        **{part: _total(sums, name) for part, name in _SECONDS.items()},
        queried=queried,
        hit=hit,
        hit_rate=_hit_rate(queried, hit, highest),
        kv_usage=highest.get(_USAGE, highest.get(_USAGE_V0)),
        preemptions=sums.get(_PREEMPTIONS),
        finished=sums.get(_FINISHED),
        prompted=sums.get(_PROMPTED),
        running=sums.get(_RUNNING),
        waiting=sums.get(_WAITING),
    )


def _wanted(page: str) -> list[str]:
    found: list[str] = []
    for start, stop in _slices(page):
        found += _WANTED.findall(page, start, stop)
        if len(found) > MOST_LINES:
            raise ValueError("it has more lines than any engine writes")
    return found


def _slices(page: str) -> Iterator[tuple[int, int]]:
    """Where pieces of whole lines start and stop."""
    start = 0
    while start < len(page):
        stop = page.find("\n", start + _SLICE) + 1 or len(page)
        yield start, stop
        start = stop


def _minus(later: float | None, earlier: float | None) -> float | None:
    return None if later is None else later - (earlier or 0)


def _less(later: Total | None, earlier: Total | None) -> Total | None:
    if later is None or earlier is None:
        return later
    return Total(later.sum - earlier.sum, later.count - earlier.count)


def _total(sums: Mapping[str, float], name: str) -> Total | None:
    seconds, count = sums.get(f"{name}_sum"), sums.get(f"{name}_count")
    return None if seconds is None or count is None else Total(seconds, count)


def _hit_rate(
    queried: float | None, hit: float | None, highest: Mapping[str, float]
) -> float | None:
    if queried is not None:
        return hit / queried if hit is not None and queried else None
    rate = highest.get(_HIT_RATE_V0)
    # Those engines say -1 while the cache is off.
    return None if rate is not None and rate < 0 else rate


def _cache(ranks: list[Mapping[str, str]]) -> CacheConfig:
    """One configuration of several ranks, which are started with the same flags."""
    if not ranks:
        return CacheConfig()
    return CacheConfig(
        block_size=_number(ranks[0].get("block_size")),
        tokens=_sum(_size(rank) for rank in ranks),
        prefix_caching=_flag(rank.get("enable_prefix_caching", "") for rank in ranks),
        gpu_memory_utilization=_share(ranks[0].get("gpu_memory_utilization", "")),
    )


def _size(rank: Mapping[str, str]) -> int | None:
    told = _number(rank.get("kv_cache_size_tokens"))
    if told is not None:
        return told
    blocks, size = _number(rank.get("num_gpu_blocks")), _number(rank.get("block_size"))
    return blocks * size if blocks is not None and size is not None else None


def _sum(sizes: Iterable[int | None]) -> int | None:
    known = list(sizes)
    return None if None in known else sum(size for size in known if size is not None)


def _number(label: str | None) -> int | None:
    return int(label) if label is not None and label.isdecimal() and len(label) <= 18 else None


def _share(label: str) -> float | None:
    try:
        share = float(label)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


def _flag(labels: Iterable[str]) -> bool | None:
    """Whether all say True; None where none says anything."""
    known = [label.lower() for label in labels if label.lower() in ("true", "false")]
    return all(label == "true" for label in known) if known else None
