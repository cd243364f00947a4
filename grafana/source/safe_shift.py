"""Is the shift safe?"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from grafana.source.frame import compared
from grafana.source.panels import bars, lines, row, states, table
from grafana.source.style import dashed

ARMS = 'model="$model", arm=~"$arm"'
REQUESTS = "gateway_requests_total"
GAPS = "gateway_inter_token_latency_seconds_bucket"
BACKENDS = f"model_arm_backend:gateway_backend_info:max{{{ARMS}}}"
OURS = 'alertname=~"(Gateway|Engine|Gpu).+", model=~"$model|"'


def build() -> Dashboard:
    found = compared(
        "ttft-safe-shift",
        "TTFT: is the shift safe?",
        "What to watch while weights move: errors, time to first token, the rhythm of tokens, "
        "backends. Changes of weights are marked on every panel.",
    )
    found = _split(found)
    found = _harm(found)
    return _backends(found)


def _split(to: Dashboard) -> Dashboard:
    actual = f"sum by (arm) (rate({REQUESTS}{{{ARMS}}}[$__rate_interval]))"
    total = f'sum (rate({REQUESTS}{{model="$model", arm!="unknown"}}[$__rate_interval]))'
    return (
        to.with_row(row("The split"))
        .with_panel(
            lines(
                "Weight, and share of requests",
                "Dashed: the arm's share by the weights in force. Solid: its share of requests, "
                "which follows in steps of whole sessions.",
                "percentunit",
                (f"{actual} / on () group_left () ({total} > 0)", "{{arm}} requests"),
                (f"model_arm:gateway_arm_weight:share{{{ARMS}}}", "{{arm}} weight"),
                span=12,
            )
            .max(1)
            .override_by_query("B", [dashed("dash")])
        )
        .with_panel(
            table(
                "Alerts, pending and firing",
                "From Prometheus' rules, the only place where alerts are defined. Empty is good.",
                {"alertname": "Alert", "alertstate": "State", "severity": "Severity"},
                [
                    (
                        "Count",
                        "short",
                        f"sum by (alertname, alertstate, severity) (ALERTS{{{OURS}}})",
                    )
                ],
                span=12,
            )
        )
    )


def _harm(to: Dashboard) -> Dashboard:
    ttft = f"gateway_time_to_first_token_seconds_bucket{{{ARMS}}}[$__rate_interval]"
    gaps = f"sum by (arm, le) (rate({GAPS}{{{ARMS}}}[$__rate_interval]))"
    return (
        to.with_row(row("Harm done"))
        .with_panel(
            lines(
                "Error ratio",
                "Requests that failed (backend_error, gateway_error, timeout) among those the arm "
                "could fail, 5 minutes.",
                "percentunit",
                (f"model_arm:gateway_requests_failed:ratio_rate5m{{{ARMS}}}", "{{arm}}"),
            )
        )
        .with_panel(
            bars(
                "Streams without a token",
                "By reason. client_gone says nothing of the arm, unless one has more of it.",
                "short",
                (
                    "sum by (arm, reason) "
                    f"(increase(gateway_no_first_token_total{{{ARMS}}}[$__rate_interval])) > 0",
                    "{{arm}} {{reason}}",
                ),
            )
        )
        .with_panel(
            lines(
                "TTFT P90",
                "From the complete request at the gateway to the first generated token.",
                "s",
                (f"histogram_quantile(0.9, sum by (arm, le) (rate({ttft})))", "{{arm}}"),
            )
        )
        .with_panel(
            lines(
                "Inter-token latency P50",
                "Time between reads from the backend that carried tokens. Larger chunks make "
                "decoding streams wait longer for others' prefill.",
                "s",
                (f"histogram_quantile(0.5, {gaps})", "{{arm}}"),
            )
        )
        .with_panel(
            lines(
                "Inter-token latency P99",
                "The pauses that a reader notices.",
                "s",
                (f"histogram_quantile(0.99, {gaps})", "{{arm}}"),
            )
        )
        .with_panel(
            lines(
                "Objective's burn rate",
                "How many times faster than allowed the time to first token objective is used "
                "up: solid over an hour, dotted over 5 minutes. Both above 14.4 page.",
                "none",
                (f"model_arm:gateway_slo:burn_rate1h{{{ARMS}}}", "{{arm}} 1h"),
                (f"model_arm:gateway_slo:burn_rate5m{{{ARMS}}}", "{{arm}} 5m"),
            ).override_by_query("B", [dashed("dot")])
        )
    )


def _backends(to: Dashboard) -> Dashboard:
    in_flight = "sum by (backend) (gateway_requests_in_flight)"
    return (
        to.with_row(row("Backends"))
        .with_panel(
            states(
                "Health of backends",
                "Whether the gateway's health probes succeed.",
                (f"model_arm_backend:gateway_backend_up:max{{{ARMS}}}", "{{arm}} {{backend}}"),
                {"1": "up", "0": "down"},
            )
        )
        .with_panel(
            lines(
                "Requests in flight",
                "What each backend is answering now. Unequal lines are unequal load.",
                "short",
                (
                    f"{in_flight} * on (backend) group_right () {BACKENDS}",
                    "{{arm}} {{backend}}",
                ),
            )
        )
        .with_panel(
            bars(
                "Failovers",
                "Requests served by another arm than assigned.",
                "short",
                (
                    "sum by (assigned_arm, served_arm) (increase("
                    'gateway_failovers_total{model="$model"}[$__rate_interval])) > 0',
                    "{{assigned_arm}} to {{served_arm}}",
                ),
            )
        )
    )
