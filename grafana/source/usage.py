"""Who uses what?"""

from __future__ import annotations

from grafana_foundation_sdk.builders.common import TableSortByFieldState
from grafana_foundation_sdk.builders.dashboard import Dashboard

from grafana.source.frame import everything, keys
from grafana.source.panels import bars, lines, row, table

CHOSEN = 'model=~"$model", arm=~"$arm"'
REQUESTS = f"gateway_requests_total{{{CHOSEN}}}"
REJECTED = 'gateway_requests_total{model=~"$model", outcome="rejected"}'

KEYED = 'model=~"$model", key=~"$key"'
KEY_REQUESTS = f"gateway_key_requests_total{{{KEYED}}}"
KEY_PROMPT = f"gateway_key_prompt_tokens_total{{{KEYED}}}"
KEY_CACHED = f"gateway_key_cached_prompt_tokens_total{{{KEYED}}}"
KEY_COMPLETION = f"gateway_key_completion_tokens_total{{{KEYED}}}"
KEY_REJECTIONS = 'gateway_key_rejections_total{key=~"$key"}'


def build() -> Dashboard:
    found = everything(
        "ttft-usage",
        "TTFT: who uses what?",
        "Requests, tokens and rejects by key, model, arm and API.",
    ).with_variable(keys())
    return _tokens(_requests(_keys(found)))


def _keys(to: Dashboard) -> Dashboard:
    requests, prompt, cached, completion, rejections = (
        f"rate({one}[$__rate_interval])"
        for one in (KEY_REQUESTS, KEY_PROMPT, KEY_CACHED, KEY_COMPLETION, KEY_REJECTIONS)
    )
    prompted = f"({_sum(KEY_PROMPT)} > 0)"
    return (
        to.with_row(row("Keys"))
        .with_panel(
            table(
                "Keys over the whole time range",
                "By their names in the configuration, who took most tokens first; unknown is no "
                "valid key. Keys have no arm: of the choices at the top the model and the key "
                "count, for rejects the key alone.",
                {"key": "Key"},
                [
                    ("Tokens", "short", f"{_sum(KEY_PROMPT)} + {_sum(KEY_COMPLETION)}"),
                    ("Requests", "short", _sum(KEY_REQUESTS)),
                    ("Prompt tokens", "short", _sum(KEY_PROMPT)),
                    (
                        "Cached share",
                        "percentunit",
                        f"{_sum(KEY_CACHED)} / {prompted}",
                    ),
                    ("Generated tokens", "short", _sum(KEY_COMPLETION)),
                    ("Rejects", "short", _sum(KEY_REJECTIONS)),
                ],
            ).sort_by([TableSortByFieldState().display_name("Tokens").desc(True)])
        )
        .with_panel(
            lines(
                "Requests by key",
                "Ended a second, the rejected ones included.",
                "reqps",
                (f"sum by (key) ({requests}) > 0", "{{key}}"),
            )
        )
        .with_panel(
            lines(
                "Tokens by key",
                "Prompt and generated tokens a second: what tokens_per_minute counts.",
                "ops",
                (f"sum by (key) ({prompt} + {completion}) > 0", "{{key}}"),
            )
        )
        .with_panel(
            lines(
                "Cached share by key",
                "Of a key's prompt tokens, those read from the prefix cache. A key with a low one "
                "makes the engines prefill, and others wait for it.",
                "percentunit",
                (f"sum by (key) ({cached}) / (sum by (key) ({prompt}) > 0)", "{{key}}"),
            )
        )
        .with_panel(
            bars(
                "Rejects by key and reason",
                "The limit or rule that turned the requests away, by the name of its setting; "
                "request is a request at fault itself, or refused by the engine.",
                "reqps",
                (f"sum by (key, reason) ({rejections}) > 0", "{{key}} {{reason}}"),
                span=24,
                stacked=True,
            )
        )
    )


def _sum(metric: str) -> str:
    return f"sum by (key) (increase({metric}[$__range]))"


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
                "and faulty requests are all in it: the rejects by key tell them apart.",
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
