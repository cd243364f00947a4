"""The backends, as the admin API tells them or the configuration file has them; and how to ask one.

An engine is asked from where the doctor runs, by the proxy its backend has in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.cli.asking import Reply, Unanswered
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Topic
from gateway.cli.key_form import origin, sendable
from gateway.cli.proxies import credentials
from gateway.cli.remote import ADMIN_KEY_VARIABLE, Remote
from gateway.errors import GatewayError
from gateway.settings import EngineSettings, Settings


class Server(msgspec.Struct, frozen=True):
    """One backend.

    Attributes:
        engine: as declared.
        running: what the gateway has learnt from the engine of the same.
        other_models: what it serves where it lacks the model it is asked for.
    """

    name: str
    url: str
    model: str = ""
    engine: dict[str, Any] | None = None
    running: dict[str, Any] | None = None
    engine_version: str | None = None
    max_model_len: int | None = None
    usable: bool = True
    enabled: bool = True
    other_models: list[str] | None = None

    @property
    def settings(self) -> EngineSettings:
        return EngineSettings.model_validate(self.engine or {})


@dataclass(frozen=True, slots=True)
class Unknown:
    """The backends are not known."""

    finding: Finding


# Said of a key of the file as well: a refusal of that one is not told, since the file names the
# backends anyway.
OPTION = "--admin-key"


def servers(case: Case, topic: Topic) -> list[Server] | Unknown:
    """Every backend; with an admin key as the running gateway has them."""
    key = case.admin_key
    if sendable(key):
        try:
            answer = Remote(case.address.root, key, OPTION).get("backends")
            return msgspec.convert(answer, list[Server])
        except GatewayError as error:
            refused = error.message
        except msgspec.ValidationError:
            refused = "The admin API's answer has an unknown form."
    elif key:
        source = origin(key, ADMIN_KEY_VARIABLE, OPTION)
        refused = f"The admin key, which {source} gave, holds characters no key has."
    else:
        refused = "There is no admin key."
    if isinstance(case.settings, Settings):
        return [
            Server(name, one.url, engine=one.engine.model_dump() if one.engine else None)
            for name, one in case.settings.backends.items()
        ]
    return Unknown(
        topic.warning(
            f"Backends were not looked at. {refused}",
            "Jitter without errors comes from the engines' caches and chunk settings.",
            "export GATEWAY_ADMIN_KEY=KEY   # admin.key of gateway.yaml; or give -c gateway.yaml",
        )
    )


def ask(case: Case, server: Server, path: str) -> Reply | Unanswered:
    """GET a path of the engine."""
    proxy = None
    if isinstance(case.settings, Settings) and server.name in case.settings.backends:
        secret = case.settings.backends[server.name].proxy
        proxy = secret.get_secret_value() if secret else None
    if proxy is not None:
        case.mask.add(*credentials(proxy))
    return case.ask(f"{server.url}{path}", proxy=proxy)
