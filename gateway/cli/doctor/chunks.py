"""Chunk settings: as the engine says where it tells them, else as the configuration declares them.

What is unwise in them `gateway.vllm.check` knows; here it is held against the running engine.

vLLM tells them at `/server_info`, and only where it was started in its development mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from pydantic import ValidationError

from gateway.cli.asking import Reply
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Topic
from gateway.cli.doctor.servers import Server, ask
from gateway.records import EngineFacts
from gateway.settings import EngineSettings
from gateway.settings.claims import differences
from gateway.vllm import Finding as VllmFinding
from gateway.vllm import Severity, check, server_info
from gateway.vllm.server_info import ServerInfo


class Chunks:
    """One engine's settings.

    Attributes:
        told: what the engine says it runs with; empty where it does not tell.
        known: that, and what is declared where it does not tell.
        source: who is believed of its chunk size, as words for a sentence.
    """

    def __init__(self, server: Server, told: Mapping[str, Any]) -> None:
        self.server = server
        self.told = told
        declared = server.settings
        self.known = declared.model_copy(update=dict(told))
        self.source = self._source("max_num_batched_tokens")
        self.caching_off = self.known.prefix_caching is False

    @classmethod
    def of(cls, case: Case, server: Server) -> Chunks:
        """As the gateway knows them, or the engine says."""
        told = _told(case, server).items()
        return cls(server, {name: value for name, value in told if _is_setting(name, value)})

    def findings(self, topic: Topic) -> Iterator[Finding]:
        """What differs from the file, and what is unwise in itself."""
        yield from self._differences(topic)
        yield from self._caching(topic)
        yield from self._unstated(topic)
        yield from self._checks(topic)

    def _differences(self, topic: Topic) -> Iterator[Finding]:
        for one in differences(self.server.settings, EngineFacts(**self.told)):
            if one.name == "prefix_caching" and self.caching_off:
                continue  # a finding of its own
            yield topic.error(
                f"{self.server.name}: {one}.",
                "The arms are compared by what is declared, so the comparison is about another "
                "configuration than its name says.",
                f"engine: {{{one.name}: {one.runs}}}   # under backends.{self.server.name}, or "
                "start the engine as declared",
            )

    def _caching(self, topic: Topic) -> Iterator[Finding]:
        if self.caching_off:
            told = "prefix_caching" in self.told
            how = "is off, as the engine says" if told else "is declared off"
            yield caching_off(topic, self.server, how)

    def _unstated(self, topic: Topic) -> Iterator[Finding]:
        if self.known.max_num_batched_tokens is None:
            yield topic.warning(
                f"{self.server.name}: its chunk size is not stated, so it was not checked.",
                "It is what arms differ in, and engines tell it over HTTP in their development "
                "mode only.",
                f"engine: {{max_num_batched_tokens: 512}}   # under backends.{self.server.name}, "
                "as the engine was started",
            )

    def _checks(self, topic: Topic) -> Iterator[Finding]:
        """What is known of vLLM; that caching is off is a finding of its own, notes are none."""
        config = self.known.config(self.server.model or self.server.name, self.server.max_model_len)
        for one in check(config, complete=False):
            if one.field == "prefix_caching" or one.severity is Severity.NOTE:
                continue
            tell = topic.error if one.severity is Severity.ERROR else topic.warning
            yield tell(
                f"{self.server.name}: {one.field} ({self._source(one.field)}): {one.reason}.",
                f"Holds for {one.versions}; source: {one.source}.",
                self._fix(one),
            )

    def _fix(self, found: VllmFinding) -> str:
        if found.field == "max_num_batched_tokens":
            tokens = max(512, self.known.max_num_seqs or 0)
            return f"--max-num-batched-tokens {tokens}   # where the engine is started"
        return f"# where the engine is started: {found.field}, {found.advice}"

    def _source(self, name: str) -> str:
        return "as the engine says" if name in self.told else "as declared"


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
        return {**server.running, "version": server.engine_version}
    reply = ask(case, server, server_info.PATH)
    if not isinstance(reply, Reply) or not reply.ok:
        return {}
    try:
        return msgspec.structs.asdict(msgspec.json.decode(reply.body, type=ServerInfo).scheduler)
    except msgspec.DecodeError:
        return {}


def _is_setting(name: str, value: object) -> bool:
    """Whether it can be judged; an engine may tell more, or what none can run with."""
    try:
        EngineSettings.model_validate({name: value})
    except ValidationError:
        return False
    return value is not None
