"""Where does the time go?"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from grafana.source.frame import compared
from grafana.source.panels import lines, parts, row
from grafana.source.style import dashed

ARMS = 'model="$model", arm=~"$arm"'
WINDOW = "[$__rate_interval]"
# Engines know neither model nor arm as the gateway calls them.
BACKENDS = f"on (backend) group_left (arm) model_arm_backend:gateway_backend_info:max{{{ARMS}}}"
BACKEND = "{{arm}} {{backend}}"


def mean(name: str, labels: str = ARMS) -> str:
    """The mean of one of the gateway's histograms, in seconds."""
    total = f"sum (rate({name}_sum{{{labels}}}{WINDOW}))"
    return f"{total} / (sum (rate({name}_count{{{labels}}}{WINDOW})) > 0)"


def engine_mean(name: str) -> str:
    """The mean of a histogram of the arm's engines, in seconds.

    Its buckets begin at 0.3 s, which is too coarse for quantiles.
    """
    total = f"sum (rate({name}_sum{WINDOW}) * {BACKENDS})"
    return f"{total} / (sum (rate({name}_count{WINDOW}) * {BACKENDS}) > 0)"


def engine(expression: str) -> str:
    """Values by backend, with the arm that the gateway says it belongs to."""
    return f"sum by (backend) ({expression}) * {BACKENDS}"


def build() -> Dashboard:
    found = compared(
        "ttft-time-spent",
        "TTFT: where does the time go?",
        "The way to the first token in parts: gateway, queue, network, the engine's queue, "
        "prefill; and what the engines and GPUs do meanwhile.",
    )
    found = _parts(found)
    found = _gateway(found)
    found = _engines(found)
    return _gpus(found)


def _parts(to: Dashboard) -> Dashboard:
    outside = mean("gateway_upstream_time_to_first_token_seconds")
    inside = engine_mean("vllm:time_to_first_token_seconds")
    queue = engine_mean("vllm:request_queue_time_seconds")
    prefill = engine_mean("vllm:request_prefill_time_seconds")
    return to.with_row(row("From request to first token")).with_panel(
        parts(
            "Mean TTFT of $arm in parts",
            "Means add up where quantiles do not. The engines' parts are their own clocks': "
            "network is what the gateway waited beyond them, engine front end what lies in the "
            "engine before and after its queue and prefill. The engine counts unstreamed "
            "requests, too.",
            "s",
            (mean("gateway_overhead_seconds", 'model="$model"'), "gateway", "blue"),
            (mean("gateway_queue_seconds"), "queue in the gateway", "light-blue"),
            (f"clamp_min(({outside}) - ({inside}), 0)", "network", "yellow"),
            (
                f"clamp_min(({inside}) - ({queue}) - ({prefill}), 0)",
                "engine front end",
                "light-orange",
            ),
            (queue, "engine queue", "orange"),
            (prefill, "prefill", "red"),
        )
    )


def _gateway(to: Dashboard) -> Dashboard:
    def quantile(share: str, name: str, by: str = "arm", labels: str = ARMS) -> str:
        rates = f"rate({name}_bucket{{{labels}}}{WINDOW})"
        return f"histogram_quantile({share}, sum by ({by}, le) ({rates}))"

    return (
        to.with_row(row("Gateway"))
        .with_panel(
            lines(
                "The gateway's own time",
                "From the complete request to its being sent, less the queue: solid P99, dashed "
                "P50. Where an attempt failed, its time is included.",
                "s",
                (
                    quantile("0.99", "gateway_overhead_seconds", "model", 'model="$model"'),
                    "{{model}} P99",
                ),
                (
                    quantile("0.5", "gateway_overhead_seconds", "model", 'model="$model"'),
                    "{{model}} P50",
                ),
            ).override_by_query("B", [dashed("dash")])
        )
        .with_panel(
            lines(
                "Queue in the gateway P90",
                "From the complete request to its admission: waiting for a place on a backend.",
                "s",
                (quantile("0.9", "gateway_queue_seconds"), "{{arm}}"),
            )
        )
        .with_panel(
            lines(
                "First byte and first token P90",
                "Since the request was sent to the backend. Dotted: first byte, which may be a "
                "role frame or an announcement. Solid: first generated token.",
                "s",
                (
                    quantile("0.9", "gateway_upstream_time_to_first_token_seconds"),
                    "{{arm}} first token",
                ),
                (quantile("0.9", "gateway_time_to_first_byte_seconds"), "{{arm}} first byte"),
            ).override_by_query("B", [dashed("dot")])
        )
    )


def _engines(to: Dashboard) -> Dashboard:
    hits = f"rate(vllm:prefix_cache_hits_total{WINDOW})"
    queries = f"rate(vllm:prefix_cache_queries_total{WINDOW})"
    return (
        to.with_row(row("Engines"))
        .with_panel(
            lines(
                "Requests running",
                "In the engine's batch.",
                "short",
                (engine("vllm:num_requests_running"), BACKEND),
            )
        )
        .with_panel(
            lines(
                "Requests waiting",
                "In the engine's own queue, which has no limit unless one is set.",
                "short",
                (engine("vllm:num_requests_waiting"), BACKEND),
            )
        )
        .with_panel(
            lines(
                "Preemptions",
                "Requests that lost their KV cache and are computed again, a second. More than "
                "a few mean that the cache does not hold what runs at once.",
                "ops",
                (engine(f"rate(vllm:num_preemptions_total{WINDOW})"), BACKEND),
            )
        )
        .with_panel(
            lines(
                "KV cache in use",
                "Share of the blocks that running requests hold.",
                "percentunit",
                (f"model_arm_backend:vllm_kv_cache_usage:max{{{ARMS}}}", BACKEND),
            ).max(1)
        )
        .with_panel(
            lines(
                "Prefix cache hit rate",
                "Prompt tokens found in the cache among those looked up. Below 80 % on an agent's "
                "traffic, the cache does not fit it.",
                "percentunit",
                (f"sum by (backend) ({hits}) / {engine(queries)}", BACKEND),
            ).max(1)
        )
        .with_panel(
            lines(
                "Tokens computed",
                "Solid: prompt tokens a second, cached ones included. Dashed: generated tokens.",
                "ops",
                (engine(f"rate(vllm:prompt_tokens_total{WINDOW})"), f"{BACKEND} prompt"),
                (engine(f"rate(vllm:generation_tokens_total{WINDOW})"), f"{BACKEND} generated"),
            ).override_by_query("B", [dashed("dash")])
        )
    )


def _gpus(to: Dashboard) -> Dashboard:
    used, free = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
    absent = "Needs NVIDIA's dcgm-exporter as a target; empty without."
    gpu = "{{Hostname}} GPU {{gpu}}"
    return (
        to.with_row(row("GPUs"))
        .with_panel(
            lines(
                "GPU memory in use",
                "Share of the frame buffer. An engine takes what gpu_memory_utilization says at "
                f"its start; peaks beyond it are activations. {absent}",
                "percentunit",
                (f"{used} / ({used} + {free})", gpu),
            ).max(1)
        )
        .with_panel(
            lines(
                "GPU memory",
                f"Frame buffer in use. {absent}",
                "mbytes",
                (used, gpu),
            )
        )
        .with_panel(
            lines(
                "GPU utilisation",
                f"Share of time in which a kernel ran. {absent}",
                "percent",
                ("DCGM_FI_DEV_GPU_UTIL", gpu),
            ).max(100)
        )
    )
