"""`/metrics` with vLLM's names, labels and buckets; times are real seconds, as clients see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from gateway.simulator.config import EngineConfig
from gateway.simulator.histogram import Histogram
from gateway.simulator.scheduler import Scheduler

LABELS = ("model_name", "engine")
TTFT_BOUNDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5),
    *(10, 20, 40, 80, 160, 640, 2560),
)
TOKEN_BOUNDS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5),
    *(10, 20, 40, 80),
)
REQUEST_BOUNDS = (
    *(0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960),
    *(1920, 7680),
)
HISTOGRAMS = {
    "time_to_first_token_seconds": TTFT_BOUNDS,
    "inter_token_latency_seconds": TOKEN_BOUNDS,
    "request_time_per_output_token_seconds": TOKEN_BOUNDS,
    "e2e_request_latency_seconds": REQUEST_BOUNDS,
    "request_queue_time_seconds": REQUEST_BOUNDS,
    "request_prefill_time_seconds": REQUEST_BOUNDS,
    "request_decode_time_seconds": REQUEST_BOUNDS,
}


class EngineMetrics:
    """What the engine counts as it goes; the rest is read from the scheduler when asked."""

    def __init__(self) -> None:
        histograms = {name: Histogram(bounds) for name, bounds in HISTOGRAMS.items()}
        self.histograms = histograms
        self.ttft = histograms["time_to_first_token_seconds"]
        self.inter_token = histograms["inter_token_latency_seconds"]
        self.per_output_token = histograms["request_time_per_output_token_seconds"]
        self.duration = histograms["e2e_request_latency_seconds"]
        self.queue = histograms["request_queue_time_seconds"]
        self.prefill = histograms["request_prefill_time_seconds"]
        self.decode = histograms["request_decode_time_seconds"]
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.generated_tokens = 0
        self.finished: Counter[str] = Counter({"stop": 0, "length": 0, "abort": 0})


class EngineCollector(Collector):
    """Renders one engine's figures for prometheus_client."""

    def __init__(self, config: EngineConfig, scheduler: Scheduler, metrics: EngineMetrics) -> None:
        self._config = config
        self._scheduler = scheduler
        self._metrics = metrics
        self._values = (config.model, "0")

    def collect(self) -> Iterator[Metric]:
        yield from self._gauges()
        yield from self._counters()
        for name, histogram in self._metrics.histograms.items():
            family = HistogramMetricFamily(f"vllm:{name}", _help(name), labels=LABELS)
            family.add_metric(self._values, histogram.cumulative(), histogram.total)
            yield family

    def _gauges(self) -> Iterator[Metric]:
        cache = self._scheduler.cache
        for name, value in (
            ("num_requests_running", len(self._scheduler.running)),
            ("num_requests_waiting", self._scheduler.waiting),
            ("kv_cache_usage_perc", cache.used_blocks / cache.num_blocks),
        ):
            family = GaugeMetricFamily(f"vllm:{name}", _help(name), labels=LABELS)
            family.add_metric(self._values, value)
            yield family
        config = self._config
        info = {
            "block_size": str(cache.block_size),
            "enable_prefix_caching": str(config.prefix_caching),
            "engine": "0",
            "kv_cache_size_tokens": str(cache.num_blocks * cache.block_size),
            "num_gpu_blocks": str(cache.num_blocks),
        }
        name = "cache_config_info"
        family = GaugeMetricFamily(f"vllm:{name}", _help(name), labels=list(info))
        family.add_metric(list(info.values()), 1)
        yield family

    def _counters(self) -> Iterator[Metric]:
        for name, value in (
            ("prefix_cache_queries", self._scheduler.prefix_queries),
            ("prefix_cache_hits", self._scheduler.prefix_hits),
            ("num_preemptions", self._scheduler.preemptions),
            ("prompt_tokens", self._metrics.prompt_tokens),
            ("prompt_tokens_cached", self._metrics.cached_tokens),
            ("generation_tokens", self._metrics.generated_tokens),
        ):
            family = CounterMetricFamily(f"vllm:{name}", _help(name), labels=LABELS)
            family.add_metric(self._values, value)
            yield family
        name = "request_success"
        family = CounterMetricFamily(
            f"vllm:{name}", _help(name), labels=(*LABELS, "finished_reason")
        )
        for reason, count in self._metrics.finished.items():
            family.add_metric((*self._values, reason), count)
        yield family


def _help(name: str) -> str:
    return f"Simulated: {name.replace('_', ' ')}."
