"""Which arm is better?"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from grafana.source.frame import compared, reference
from grafana.source.panels import bars, heatmap, lines, row, stat, table
from grafana.source.style import dashed

ARMS = 'model="$model", arm=~"$arm"'
TTFT = "gateway_time_to_first_token_seconds"
BY_PROMPT = "gateway_time_to_first_token_by_prompt_seconds"
RECORDED = f"model_arm:{TTFT}"

QUANTILE = (
    "Read from the histogram: at most one bucket, 15 %, off. It rests on the number of requests "
    "shown in Sample size: a P99 of fewer than some hundred requests is a guess."
)


def quantile(share: str, window: str = "$__rate_interval", arms: str = ARMS) -> str:
    """TTFT in seconds that this share of an arm's streamed requests stayed below."""
    return (
        f"histogram_quantile({share}, sum by (arm, le) (rate({TTFT}_bucket{{{arms}}}[{window}])))"
    )


def ratio(share: str) -> str:
    """The quantile of each arm over that of the reference."""
    base = (
        f"histogram_quantile({share}, "
        f'sum by (le) (rate({TTFT}_bucket{{model="$model", arm="$reference"}}[$__rate_interval])))'
    )
    return f"{quantile(share)} / on () group_left () {base}"


def build() -> Dashboard:
    found = compared(
        "ttft-which-arm",
        "TTFT: which arm is better?",
        "Time to first token of a model's arms side by side, with the sample sizes it rests on "
        "and whether the comparison is a fair one.",
    ).with_variable(reference())
    found = _fairness(found)
    found = _distribution(found)
    return _reasons(found)


def _fairness(to: Dashboard) -> Dashboard:
    of_model = '{model="$model"}'
    return (
        to.with_row(row("Is the comparison fair?"))
        .with_panel(
            stat(
                "Load per backend, largest to smallest",
                "How many times the traffic of one arm's backend another arm's backend gets, by "
                "the weights in force and the live backends. Above 1.1 the comparison is "
                "confounded: load explains a difference as well as the configuration does. With "
                "a baseline arm, compare canary and baseline and do not mind the control.",
                "none",
                (f"model:gateway_load_per_backend:ratio_max_min{of_model}", "{{model}}"),
                (1.1, "red"),
            )
        )
        .with_panel(
            stat(
                "Cached share, largest gap",
                "How far the arms are apart in the share of prompt tokens read from the prefix "
                "cache, 5 minutes. Above 10 % the caches are not equally warm: wait, or ask why.",
                "percentunit",
                (f"model:gateway_cached_prompt_tokens:gap_rate5m{of_model}", "{{model}}"),
                (0.1, "red"),
            )
        )
        .with_panel(
            stat(
                "Backends of the smallest arm",
                "With one backend an arm, machines are compared as much as configurations.",
                "none",
                (
                    "min by (model) (count by (model, arm) "
                    f"(model_arm_backend:gateway_backend_info:max{of_model}))",
                    "{{model}}",
                ),
                words={"1": "1: machines are compared, too"},
            )
        )
        .with_panel(
            stat(
                "Served by another arm than assigned",
                "Failovers in the time range: they count for the arm that served them here, and "
                "against the arm they were assigned to in the evidence.",
                "short",
                (
                    'sum by (model) (increase(gateway_failovers_total{model="$model"}[$__range])) '
                    'or 0 * sum by (model) (gateway_arm_weight{model="$model"})',
                    "{{model}}",
                ),
                (1, "orange"),
                whole_range=True,
            )
        )
    )


def _distribution(to: Dashboard) -> Dashboard:
    count = f"sum by (arm) (increase({TTFT}_count{{{ARMS}}}[$__range]))"
    buckets = f'rate({TTFT}_bucket{{model="$model", arm=~"$arm"}}[$__rate_interval])'
    every = f'rate({TTFT}_count{{model="$model", arm=~"$arm"}}[$__rate_interval])'
    return (
        to.with_row(row("Time to first token"))
        .with_panel(
            table(
                "Over the whole time range",
                "Time to first token: from the complete request at the gateway to the first "
                f"generated token, streamed requests. {QUANTILE}",
                {"arm": "Arm"},
                [
                    ("Requests", "short", count),
                    ("P50", "s", quantile("0.5", "$__range")),
                    ("P90", "s", quantile("0.9", "$__range")),
                    ("P99", "s", quantile("0.99", "$__range")),
                ],
            )
        )
        .with_panel(
            heatmap(
                "TTFT of $arm",
                "Share of the arm's requests that fell in each bucket. All arms have the same "
                "buckets and the same colours, whatever their traffic: from none to a quarter "
                "and more.",
                (f"sum by (le) ({buckets}) / on () group_left () (sum ({every}) > 0)", "{{le}}"),
                most=0.25,
            )
        )
        .with_panel(lines("TTFT P50", QUANTILE, "s", (quantile("0.5"), "{{arm}}")))
        .with_panel(lines("TTFT P90", QUANTILE, "s", (quantile("0.9"), "{{arm}}")))
        .with_panel(lines("TTFT P99", QUANTILE, "s", (quantile("0.99"), "{{arm}}")))
        .with_panel(
            lines(
                "TTFT relative to $reference",
                "An arm's quantile over the reference's: 1.2 is 20 % slower. P90 solid, P50 "
                "dashed, P99 dotted. Small samples swing widely, and these are no verdict.",
                "none",
                (ratio("0.9"), "{{arm}} P90"),
                (ratio("0.5"), "{{arm}} P50"),
                (ratio("0.99"), "{{arm}} P99"),
                least=None,
            )
            .override_by_query("B", [dashed("dash")])
            .override_by_query("C", [dashed("dot")])
        )
        .with_panel(
            bars(
                "Sample size",
                "Streamed requests with a first token: what the quantiles at the same time rest "
                "on.",
                "short",
                (
                    f"sum by (arm) (increase({TTFT}_count{{{ARMS}}}[$__rate_interval]))",
                    "{{arm}}",
                ),
            )
        )
        .with_panel(
            lines(
                "Jitter (P99 to P50)",
                "How many times longer the slowest hundredth waits than the usual request, "
                "5 minutes. Smaller chunks aim at less of it.",
                "none",
                (f"{RECORDED}:ratio_p99_p50_rate5m{{{ARMS}}}", "{{arm}}"),
                least=1,
            )
        )
    )


def _reasons(to: Dashboard) -> Dashboard:
    by_prompt = f"{BY_PROMPT}_bucket{{{ARMS}}}[$__range]"
    grouped = f"sum by (arm, prompt_tokens, le) (rate({by_prompt}))"
    return (
        to.with_row(row("Why: prompts, caches, objective"))
        .with_panel(
            table(
                "TTFT by prompt length, over the whole time range",
                "The best chunk size depends on the length of the prompt, so compare arms within "
                "a length. Requests whose backend told no usage are missing.",
                {"prompt_tokens": "Prompt tokens", "arm": "Arm"},
                [
                    (
                        "Requests",
                        "short",
                        "sum by (arm, prompt_tokens) "
                        f"(increase({BY_PROMPT}_count{{{ARMS}}}[$__range]))",
                    ),
                    ("P50", "s", f"histogram_quantile(0.5, {grouped})"),
                    ("P90", "s", f"histogram_quantile(0.9, {grouped})"),
                ],
                span=8,
            )
        )
        .with_panel(
            lines(
                "Cached share of prompt tokens",
                "Prompt tokens read from the prefix cache, as the engines count them, 5 minutes. "
                "Arms compare only while these lines lie together.",
                "percentunit",
                (f"model_arm:gateway_cached_prompt_tokens:ratio_rate5m{{{ARMS}}}", "{{arm}}"),
            ).max(1)
        )
        .with_panel(
            lines(
                "Objective missed",
                "Share of streamed requests whose first token came after the model's slo_ttft_ms, "
                "or never; absent where the model has none.",
                "percentunit",
                (f"model_arm:gateway_slo_missed:ratio_rate5m{{{ARMS}}}", "{{arm}}"),
            ).max(1)
        )
    )
