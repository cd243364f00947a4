"""Every client API: where it is, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.records import Api
from gateway.simulator import answer

ALIAS = "gpt-4o-mini"
TOKENS = 6
TEXT = answer.TEXT[: 4 * TOKENS]
USER = [{"role": "user", "content": "hi"}]


@dataclass(frozen=True)
class Asked:
    """One API: where it is, what is asked, and which field caps the answer."""

    path: str
    api: Api
    body: dict[str, Any] = field(repr=False)
    cap: str = ""

    def request(self, model: str = ALIAS, tokens: int = TOKENS, **more: Any) -> dict[str, Any]:
        cap = {self.cap: tokens} if self.cap else {}
        return {"model": model, **self.body, **cap, **more}

    def about(self, prompt: str) -> Asked:
        """The same with another prompt."""
        name = next(name for name in ("messages", "input", "prompt") if name in self.body)
        body: Any = [{"role": "user", "content": prompt}] if name == "messages" else prompt
        return Asked(self.path, self.api, {name: body}, self.cap)

    def __str__(self) -> str:
        return self.path.removeprefix("/v1/")


STREAMING = [
    Asked("/v1/chat/completions", Api.CHAT, {"messages": USER}, "max_completion_tokens"),
    Asked("/v1/completions", Api.COMPLETIONS, {"prompt": "hi"}, "max_tokens"),
    Asked("/v1/messages", Api.MESSAGES, {"messages": USER}, "max_tokens"),
    Asked("/v1/responses", Api.RESPONSES, {"input": "hi"}, "max_output_tokens"),
]
WHOLE = [
    *STREAMING,
    Asked("/v1/embeddings", Api.EMBEDDINGS, {"input": ["a cat", "a dog"]}),
    Asked("/v1/rerank", Api.OTHER, {"query": "cat", "documents": ["a dog", "a cat"]}),
    Asked("/v1/score", Api.OTHER, {"text_1": "a cat", "text_2": ["a cat", "a dog"]}),
]
NAMELESS = [
    Asked("/tokenize", Api.OTHER, {"prompt": "a cat"}),
    Asked("/tokenize", Api.OTHER, {"messages": USER}),
    Asked("/detokenize", Api.OTHER, {"tokens": answer.TOKENS[:3].tolist()}),
    Asked("/v1/messages/count_tokens", Api.OTHER, {"messages": USER}),
]

streaming = pytest.mark.parametrize("asked", STREAMING, ids=str)
