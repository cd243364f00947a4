"""Requests, and what metrics and access log have to say of them."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.operation.oracle import Oracle
from tests.support.apis import CHAT, COMPLETIONS, MESSAGES, RESPONSES, Dialect
from tests.support.gateway_process import KEY

WRONG_KEY = "sk-" + secrets.token_urlsafe(32)
PROMPT_MARK = "zebra-crossing"

TOKENS = ("prompt", "cached_prompt", "completion")

Samples = Counter[tuple[str, tuple[tuple[str, str], ...]]]


@dataclass
class Shot:
    """One request and its fate; what is not said is that of a stream of two tokens.

    Attributes:
        play: what the engine is told to do.
        session: names a session; without one the arm is chosen by hand.
        leave: seconds after which the client leaves.
        assigned: the arm it was assigned to, where another served it.
        refusal: why the gateway turned it away.
        reads: how many reads carried tokens.
        usage: prompt, cached and completion tokens the backend told.
        met: whether the first token came within the model's objective; None: not judged.
        id, seconds, status: what the client saw.
    """

    play: dict[str, Any] = field(default_factory=dict)
    dialect: Dialect = CHAT
    path: str = ""
    key: str = ""
    model: str = "m"
    asked_model: str = ""
    arm: str = "a"
    backend: str = "a1"
    assigned: str = ""
    session: str = ""
    api: str = ""
    stream: bool = True
    leave: float | None = None
    outcome: str = "ok"
    no_token: str | None = None
    refusal: str = ""
    admitted: bool = True
    answered: bool = True
    reads: int = 2
    usage: tuple[int, int, int] | None = (7, 4, 2)
    met: bool | None = True
    id: str = ""
    seconds: float = 0.0
    status: int = 0

    def samples(self) -> Iterator[tuple[str, dict[str, str], int]]:
        """Every counter and every histogram's count that this request must have moved."""
        served = {"model": self.model, "arm": self.arm, "backend": self.backend}
        api = {"api": self.api or self.dialect.api.value}
        model_arm = {"model": self.model, "arm": self.arm}
        yield "gateway_requests_total", {**served, **api, "outcome": self.outcome}, 1
        stream = {"stream": "true" if self.stream else "false"}
        yield "gateway_request_duration_seconds_count", {**served, **api, **stream}, 1
        yield from self._key_samples()
        if self.admitted:
            yield "gateway_queue_seconds_count", model_arm, 1
            yield "gateway_overhead_seconds_count", {"model": self.model}, 1
        if self.usage is not None:
            for name, tokens in zip(TOKENS, self.usage, strict=True):
                yield f"gateway_{name}_tokens_total", served, tokens
        if self.assigned:
            arms = {"assigned_arm": self.assigned, "served_arm": self.arm}
            yield "gateway_failovers_total", {"model": self.model, **arms}, 1
        if self.stream:
            yield from self._stream_samples(served, api, model_arm)

    def _key_samples(self) -> Iterator[tuple[str, dict[str, str], int]]:
        key = {"key": "unknown" if self.key else "dev"}
        model = {**key, "model": self.model}
        yield "gateway_key_requests_total", {**model, "outcome": self.outcome}, 1
        if self.refusal:
            yield "gateway_key_rejections_total", {**key, "reason": self.refusal}, 1
        for name, tokens in zip(TOKENS, self.usage or (), strict=False):
            yield f"gateway_key_{name}_tokens_total", model, tokens

    def _stream_samples(
        self, served: dict[str, str], api: dict[str, str], model_arm: dict[str, str]
    ) -> Iterator[tuple[str, dict[str, str], int]]:
        if self.admitted and self.answered:
            yield "gateway_time_to_first_byte_seconds_count", served, 1
        if self.met is not None:
            result = {"result": "met" if self.met else "missed"}
            yield "gateway_slo_total", {**model_arm, **result}, 1
        if self.no_token is not None:
            yield "gateway_no_first_token_total", {**served, "reason": self.no_token}, 1
            return
        yield "gateway_time_to_first_token_seconds_count", {**served, **api}, 1
        yield "gateway_upstream_time_to_first_token_seconds_count", {**served, **api}, 1
        if self.reads > 1:
            yield "gateway_inter_token_latency_seconds_count", served, self.reads - 1
        if self.usage is not None:
            length = {"prompt_tokens": "<512" if self.usage[0] < 512 else "2k-8k"}
            name = "gateway_time_to_first_token_by_prompt_seconds_count"
            yield name, {**model_arm, **length}, 1


def expected(shots: list[Shot]) -> Samples:
    """What `/metrics` has to hold, and nothing else, of counts."""
    found: Samples = Counter()
    for shot in shots:
        for name, labels, amount in shot.samples():
            found[name, tuple(sorted(labels.items()))] += amount
    return found


def traffic() -> list[Shot]:
    """One of everything, in order; the last three overlap."""
    missed: dict[str, Any] = {"met": False, "usage": None, "reads": 0}
    none: dict[str, Any] = {"usage": None, "met": None, "reads": 0}
    oracle = Oracle(KEY, "m", "chunk", {"a": 50, "b": 50})
    on_a = next(name for name in map(str, range(99)) if oracle.arm(name) == "a")
    whole: dict[str, Any] = {"stream": False, "met": None}
    refused: dict[str, Any] = {
        "model": "unknown",
        "arm": "unknown",
        "backend": "unknown",
        "admitted": False,
        "outcome": "rejected",
        "stream": False,
    }
    return [
        Shot({"first": 0.1, "gap": 0.1, "mark": PROMPT_MARK}),
        Shot({"prompt": 3000, "gap": 0.1}, arm="b", backend="b1", usage=(3000, 4, 2)),
        Shot({"gap": 0.1}, MESSAGES),
        Shot({"gap": 0.1}, RESPONSES, arm="b", backend="b1"),
        Shot({"gap": 0.1}, COMPLETIONS),
        Shot({"first": 0.7, "gap": 0.1}, met=False),
        Shot(**whole),
        Shot(**whole, path="/v1/embeddings", api="embeddings", usage=(5, 0, 0)),
        Shot(**whole | {"usage": None}, path="/tokenize", api="other"),
        Shot(
            {"status": 400},
            outcome="rejected", no_token="rejected", refusal="request", answered=False, **none,
        ),
        Shot(
            {"fail": ["a1"]},
            outcome="backend_error", no_token="backend_error", answered=False, **missed,
        ),
        Shot({"tokens": 0}, no_token="empty", met=None, reads=0),
        Shot({"first": 9}, arm="b", backend="b1", outcome="timeout", no_token="timeout", **missed),
        Shot({"first": 9}, leave=0.3, outcome="client_gone", no_token="client_gone", **none),
        Shot({"fail": ["a1"], "gap": 0.1}, session=on_a, assigned="a", arm="b", backend="b1"),
        Shot(**none, **refused, asked_model="typo-1", refusal="request"),
        Shot(**none, **refused, key=WRONG_KEY, refusal="invalid_key"),
        Shot({"first": 0.6, "gap": 0.1}, model="tiny", arm="t", backend="t1", met=None),
        Shot({"gap": 0.1}, model="tiny", arm="t", backend="t1", met=None),
        Shot(
            model="tiny", arm="t", backend="unknown", admitted=False, refusal="queue_limit",
            outcome="gateway_error", no_token="gateway_error", **none,
        ),
    ]  # fmt: skip
