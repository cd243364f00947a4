"""What the doctor was given, and what several checks ask of the gateway, asked once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from pydantic import SecretStr

from gateway.cli.address import Address, configured, parse
from gateway.cli.answering import is_gateway, listed
from gateway.cli.asking import Asker, Reply, Unanswered
from gateway.cli.key_form import sendable
from gateway.cli.masking import Mask
from gateway.errors import ConfigError
from gateway.settings import Settings, load


class Cause(Enum):
    """What one check found, and what explains the findings of later ones."""

    KEY = auto()
    SERVERS = auto()


@dataclass(frozen=True, kw_only=True)
class Case:
    """One examination.

    Attributes:
        address: the base URL in question.
        given_key, given_model, given_admin_key: as options or the environment have them.
        config: the gateway's configuration file, where there is one.
        named: whether somebody named it, or it stands where the doctor runs.
        request: a file with the body of a request that goes wrong.
        env: the environment a client would see.
        home, folder: where client programs keep their files: the user's, the project's.
        patience: seconds a request that generates something may take.
        watch: seconds between two looks at each engine's counters; None: a few, if it is at work.
        now: seconds since the epoch.
        causes: what has been told in this examination, so that nothing is told twice.
    """

    address: Address
    given_key: str = ""
    given_model: str = ""
    given_admin_key: str = ""
    config: Path | None = None
    named: bool = True
    request: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    home: Path
    folder: Path
    ask: Asker
    patience: float = 60.0
    watch: float | None = None
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    causes: set[Cause] = field(default_factory=set)
    mask: Mask

    @cached_property
    def front(self) -> Reply | Unanswered:
        """What `GET /` gives, without any credential."""
        return self.ask(f"{self.address.root}/")

    @cached_property
    def settings(self) -> Settings | ConfigError | None:
        """The configuration file's, or why there are none."""
        if self.config is None:
            return None
        try:
            settings = load(self.config, self.env)
        except ConfigError as error:
            return error
        keys = [key.key for key in settings.keys]
        engines = [backend.api_key for backend in settings.backends.values()]
        others = [settings.admin.key, settings.admin.read_key, settings.metrics.key]
        self.mask.add(*(_open(secret) for secret in (*keys, *engines, *others)))
        return settings

    @property
    def is_gateway(self) -> bool:
        """Whether what answers calls itself a gateway."""
        return is_gateway(self.front)

    @property
    def trusted(self) -> Settings | None:
        """The file's settings, where its own keys are for what answers: a gateway, and the one that
        the file configures, unless it was named for this one."""
        settings = self.settings
        if not isinstance(settings, Settings) or not self.is_gateway:
            return None
        own = self.named or self.address.same_server(parse(configured(settings)))
        return settings if own else None

    @cached_property
    def key(self) -> tuple[str, str]:
        """The client's key, and where it is from; both empty if there is none."""
        if self.given_key:
            return self.given_key, "--key or GATEWAY_KEY"
        if self.trusted is not None:
            for key in self.trusted.keys:
                if key.key is not None:
                    return _open(key.key), f"key {key.name} of {self.config}"
        return "", ""

    @cached_property
    def admin_key(self) -> str:
        if not self.given_admin_key and self.trusted is not None:
            return _open(self.trusted.admin.key)
        return self.given_admin_key

    @cached_property
    def listing(self) -> Reply | Unanswered:
        """What `GET /v1/models` says to the client's key."""
        key, _ = self.key
        return self.ask(f"{self.address.openai}/models", key=key if sendable(key) else "")

    @cached_property
    def models(self) -> list[str]:
        """The ids the client's key may use; empty if that is not known."""
        return [model["id"] for model in listed(self.listing)]

    @property
    def model(self) -> str:
        """The model in question: the one named, else the first there is."""
        return self.given_model or next(iter(self.models), "")

    def serves(self, model: str) -> bool | None:
        """Whether the client's key may use a model by this name or alias; None if unknown."""
        if model in self.models:
            return True
        key, _ = self.key
        if not self.models or not sendable(key) or not model.isprintable():
            return None
        # An alias that is a pattern is not listed.
        reply = self.ask(f"{self.address.openai}/models/{quote(model, safe='/@')}", key=key)
        if isinstance(reply, Unanswered):
            return None
        return {200: True, 404: False}.get(reply.status)


def _open(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret else ""
