"""Pages of metrics as a gateway writes them, made of what a test says."""

from __future__ import annotations

from collections.abc import Sequence

BOUNDS = ("0.1", "0.2", "0.4", "+Inf")


def ttft(arm: str, counts: Sequence[int], backend: str = "b", model: str = "m") -> str:
    """The buckets of one series; the counts are cumulative."""
    labels = f'model="{model}",arm="{arm}",backend="{backend}",api="chat"'
    name = "gateway_time_to_first_token_seconds"
    lines = [
        f'{name}_bucket{{{labels},le="{bound}"}} {count}'
        for bound, count in zip(BOUNDS, counts, strict=True)
    ]
    return "\n".join([*lines, f"{name}_sum{{{labels}}} 1.5", f"{name}_count{{{labels}}} 1", ""])


def requests(arm: str, count: int, outcome: str = "ok", model: str = "m") -> str:
    labels = f'model="{model}",arm="{arm}",backend="b",api="chat",outcome="{outcome}"'
    return f"gateway_requests_total{{{labels}}} {count}\n"


def tokens(arm: str, prompt: int, cached: int) -> str:
    labels = f'model="m",arm="{arm}",backend="b"'
    return (
        f"gateway_prompt_tokens_total{{{labels}}} {prompt}\n"
        f"gateway_cached_prompt_tokens_total{{{labels}}} {cached}\n"
    )


def page(*series: str) -> str:
    """A whole page, with what the console does not read as well."""
    parts: dict[str, list[str]] = {}
    for one in series:
        parts.setdefault(one.partition("{")[0].removesuffix("_bucket"), []).append(one)
    known = {"gateway_time_to_first_token_seconds": "histogram"}
    text = "# HELP gateway_backend_up 1 while it is up.\n# TYPE gateway_backend_up gauge\n"
    text += 'gateway_backend_up{backend="b"} 1\n'
    for name, some in parts.items():
        text += f"# HELP {name} Some help.\n# TYPE {name} {known.get(name, 'counter')}\n"
        text += "".join(some)
    return text
