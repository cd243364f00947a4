"""Who uses what?"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from grafana.source.frame import everything
from grafana.source.panels import bars, lines, note, row, table

CHOSEN = 'model=~"$model", arm=~"$arm"'
REQUESTS = f"gateway_requests_total{{{CHOSEN}}}"
REJECTED = 'gateway_requests_total{model=~"$model", outcome="rejected"}'

KEYS = """Metrics carry no key: labels come from a fixed list. Which key asked for what, and how \
many tokens that took, is in the access log, where `key` names it on each line."""


def build() -> Dashboard:
    found = everything(
        "ttft-usage",
        "TTFT: who uses what?",
        "Requests, tokens and rejects by model, arm and API. Keys: see the note.",
    )
    return _tokens(_requests(found)).with_row(row("Keys")).with_panel(note("By key", KEYS))


def _requests(to: Dashboard) -> Dashboard:
    rate = f"rate({REQUESTS}[$__rate_interval])"
    return (
        to.with_row(row("Requests"))
        .with_panel(
            table(
                "Over the whole time range",
                "Requests ended and tokens, by model and arm. Requests that were turned away "
                "before an arm was chosen have arm unknown.",
                {"model": "Model", "arm": "Arm"},
                [
                    ("Requests", "short", f"sum by (model, arm) (increase({REQUESTS}[$__range]))"),
                    *((name, "short", _total(metric)) for name, metric in TOKENS.items()),
                ],
            )
        )
        .with_panel(
            lines(
                "Requests by arm",
                "Ended a second.",
                "reqps",
                (f"sum by (model, arm) ({rate})", "{{arm}} of {{model}}"),
            )
        )
        .with_panel(
            lines(
                "Requests by API",
                "In which API clients asked; those that nobody asks in are left out.",
                "reqps",
                (f"sum by (api) ({rate}) > 0", "{{api}}"),
            )
        )
        .with_panel(
            bars(
                "Requests by outcome",
                "rejected is a client's fault, client_gone its decision; the rest of those that "
                "are not ok is the arm's or the gateway's.",
                "reqps",
                (f"sum by (outcome) ({rate}) > 0", "{{outcome}}"),
                stacked=True,
            )
        )
        .with_panel(
            bars(
                "Rejected requests",
                "By model and API; unknown is a model that is not configured. Limits, bad keys "
                "and faulty requests are all in it: the access log tells them apart.",
                "reqps",
                (
                    f"sum by (model, api) (rate({REJECTED}[$__rate_interval]))",
                    "{{model}} {{api}}",
                ),
                span=24,
                stacked=True,
            )
        )
    )


TOKENS = {
    "Prompt tokens": "gateway_prompt_tokens_total",
    "Cached prompt tokens": "gateway_cached_prompt_tokens_total",
    "Generated tokens": "gateway_completion_tokens_total",
}


def _total(metric: str) -> str:
    return f"sum by (model, arm) (increase({metric}{{{CHOSEN}}}[$__range]))"


def _tokens(to: Dashboard) -> Dashboard:
    to = to.with_row(row("Tokens"))
    for name, metric in TOKENS.items():
        rate = f"rate({metric}{{{CHOSEN}}}[$__rate_interval])"
        to = to.with_panel(
            lines(
                name,
                "A second, as the engines counted them; what a cut stream relayed is included.",
                "ops",
                (f"sum by (model, arm) ({rate})", "{{arm}} of {{model}}"),
            )
        )
    return to
