"""What is known of one server process while the gateway runs."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gateway.records import Api, EngineFacts, TtftParts
from gateway.routing.circuit import Circuit
from gateway.settings import BackendSettings

_EVERY_API = frozenset(api.value for api in Api if api is not Api.OTHER)


@dataclass(slots=True, eq=False, weakref_slot=True)
class Backend:
    """One server: where it is, whether it may be used, and how much it is doing.

    A new one counts as up, so that the gateway serves at once; `checked` tells whether a probe
    has confirmed it.

    Attributes:
        arm, model: names of the arm it belongs to and of that arm's model.
        api_key: what to send it as `Authorization: Bearer`.
        outstanding: requests sent to it that are not over.
        enabled: False once the operator took it out; what runs on it finishes.
        up: what health probes say.
        checked: a health probe has been answered, or has failed, at least once.
        probe_failures: health probes failed in a row.
        trouble: why the last of them failed.
        facts: what its engine said of itself when it came up; None until it was asked.
        ttft_parts: where its first tokens' time went lately; None until that is known.
    """

    name: str
    url: str
    api_key: bytes | None
    arm: str
    model: str
    settings: BackendSettings
    circuit: Circuit
    outstanding: int = 0
    enabled: bool = True
    up: bool = True
    checked: bool = False
    probe_failures: int = 0
    trouble: str = ""
    facts: EngineFacts | None = None
    ttft_parts: TtftParts | None = None

    @property
    def max_concurrency(self) -> int:
        return self.settings.max_concurrency

    @property
    def apis(self) -> frozenset[str] | None:
        """The APIs it serves, as its settings say or as it was found; None while not known."""
        told = self.settings.apis
        if told != "auto":
            return frozenset(told)
        return self.facts.apis if self.facts is not None else None

    def offers(self, api: str) -> bool:
        """Whether it serves an API; what is not known is left to the try."""
        apis = self.apis
        return apis is None or api in apis or api == Api.OTHER

    def lacks(self, api: Api) -> None:
        """A request has found an API missing, until the backend is asked for its facts anew."""
        facts = self.facts
        if self.settings.apis == "auto" and facts is not None:
            known = _EVERY_API if facts.apis is None else facts.apis
            left = known - {api}
            self.facts = msgspec.structs.replace(facts, apis=left)

    def usable(self) -> bool:
        """Whether it takes new requests, if it has a free place."""
        return self.up and self.enabled and (self.circuit.closed or self.circuit.allows())

    def serves(self) -> bool:
        """Whether it is usable and has not said that it lacks the model it is asked for."""
        return self.usable() and (self.facts is None or self.facts.other_models is None)

    def claim(self) -> bool:
        """Take a place on it; False if it is unusable or full.

        Each claim that succeeds is followed by one `release`, whatever becomes of the request.
        """
        if self.outstanding >= self.settings.max_concurrency or not self.usable():
            return False
        self.outstanding += 1
        if not self.circuit.closed:
            self.circuit.begin()
        return True

    def release(self) -> None:
        """Give a place back.

        Raises:
            ValueError: none was taken. A count that drifts would admit too many for ever after.
        """
        if self.outstanding <= 0:
            raise ValueError(f"backend {self.name} released more often than claimed")
        self.outstanding -= 1
