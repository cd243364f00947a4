"""Chunk settings: as the engine says where it tells them, else as the configuration declares them.

vLLM tells them at `/server_info`, and only where it was started in its development mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

import msgspec

from gateway.cli.asking import Reply
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Topic
from gateway.cli.doctor.servers import Server, ask
from gateway.settings import EngineSettings
from gateway.vllm import PROMPT, SMALL_CHUNK, server_info
from gateway.vllm.server_info import ServerInfo


class Chunks:
    """One engine's settings.

    Attributes:
        told: what the engine says it runs with; empty where it does not tell.
        source: who is believed, as words for a sentence.
    """

    def __init__(self, server: Server, told: Mapping[str, Any]) -> None:
        self.server = server
        self.told = told
        declared = server.settings
        known = {**declared.model_dump(), **told}
        self.tokens: int | None = known["max_num_batched_tokens"]
        self.sequences: int | None = known["max_num_seqs"]
        self.block: int | None = known["block_size"]
        verified = "max_num_batched_tokens" in told
        self.source = "as the engine says" if verified else "as declared"
        self.caching_off: bool = known["prefix_caching"] is False

    @classmethod
    def of(cls, case: Case, server: Server) -> Chunks:
        """As the gateway knows them, or the engine says."""
        declared = EngineSettings.model_fields
        told = _told(case, server).items()
        return cls(server, {n: v for n, v in told if n in declared and v is not None})

    def findings(self, topic: Topic) -> Iterator[Finding]:
        """What differs from the file, and what is unwise in itself."""
        yield from self._differences(topic)
        yield from self._caching(topic)
        yield from self._size(topic)

    def _differences(self, topic: Topic) -> Iterator[Finding]:
        declared = self.server.settings.model_dump(exclude_none=True)
        for name, value in declared.items():
            runs = self.told.get(name, value)
            # That caching is off is a finding of its own.
            if runs != value and runs is not False:
                yield topic.error(
                    f"{self.server.name}: {name} is declared as {_word(value)}, and the engine "
                    f"runs with {_word(runs)}.",
                    "The arms are compared by what is declared, so the comparison is about "
                    "another configuration than its name says.",
                    f"engine: {{{name}: {_word(runs)}}}   # under backends.{self.server.name}, or "
                    "start the engine as declared",
                )

    def _caching(self, topic: Topic) -> Iterator[Finding]:
        if self.caching_off:
            told = "prefix_caching" in self.told
            how = "is off, as the engine says" if told else "is declared off"
            yield caching_off(topic, self.server, how)

    def _size(self, topic: Topic) -> Iterator[Finding]:
        name, tokens, source = self.server.name, self.tokens, self.source
        sequences, window = self.sequences, self.server.max_model_len
        if tokens is None:
            yield topic.warning(
                f"{name}: its chunk size is not stated, so it was not checked.",
                "It is what arms differ in, and engines tell it over HTTP in their development "
                "mode only.",
                f"engine: {{max_num_batched_tokens: 512}}   # under backends.{name}, as the "
                "engine was started",
            )
        elif sequences is not None and tokens < sequences:
            yield topic.error(
                f"{name}: max_num_batched_tokens ({tokens}, {source}) is below max_num_seqs "
                f"({sequences}).",
                "Running sequences use up each step's tokens, so prompts wait; current engines do "
                "not start so.",
                f"--max-num-batched-tokens {max(512, sequences)}   # where the engine is started",
            )
        elif tokens < SMALL_CHUNK:
            yield topic.warning(
                f"{name}: max_num_batched_tokens is {tokens} ({source}), below {SMALL_CHUNK}.",
                f"A prompt of {PROMPT} tokens takes at least {ceil(PROMPT / tokens)} steps to its "
                "first token, each shared with whatever else runs.",
                "--max-num-batched-tokens 512   # where the engine is started",
            )
        elif window is not None and tokens >= window:
            yield topic.warning(
                f"{name}: max_num_batched_tokens ({tokens}, {source}) holds the longest prompt "
                f"there can be ({window}), so nothing is chunked.",
                "A long prompt takes a step for itself, and every stream stands still meanwhile.",
                "--max-num-batched-tokens 512   # where the engine is started",
            )


def caching_off(topic: Topic, server: Server, how: str) -> Finding:
    """The first cause there is to look for."""
    return topic.error(
        f"{server.name}: prefix caching {how}.",
        "Every turn of a conversation computes its whole history anew, so the first token comes "
        "later with each turn.",
        "--enable-prefix-caching   # where the engine is started",
    )


def _told(case: Case, server: Server) -> dict[str, Any]:
    """As the gateway has learnt it, else as the engine says when asked."""
    if server.running is not None:
        return server.running
    reply = ask(case, server, server_info.PATH)
    if not isinstance(reply, Reply) or not reply.ok:
        return {}
    try:
        return msgspec.structs.asdict(msgspec.json.decode(reply.body, type=ServerInfo).scheduler)
    except msgspec.DecodeError:
        return {}


def _word(value: object) -> str:
    """As YAML has it."""
    return str(value).lower() if isinstance(value, bool) else f"{value}"
