"""What is known of an exchange so far; it becomes the `Record` when the exchange is over."""

from __future__ import annotations

from array import array

import msgspec

from gateway.records import Api, NoToken, Outcome, Record, Refusal, Timeline, Trace, Usage

_NO_TOKEN = {
    Outcome.OK: NoToken.EMPTY,
    Outcome.CLIENT_GONE: NoToken.CLIENT_GONE,
    Outcome.REJECTED: NoToken.REJECTED,
    Outcome.BACKEND_ERROR: NoToken.BACKEND_ERROR,
    Outcome.GATEWAY_ERROR: NoToken.GATEWAY_ERROR,
    Outcome.TIMEOUT: NoToken.TIMEOUT,
}


def _no_gaps() -> array[float]:
    return array("f")  # four bytes a gap: a long answer has tens of thousands of them


class Draft(msgspec.Struct, gc=False):
    """Filled in along the way, by whoever learns a fact first. Fields are those of `Record`."""

    id: str
    at: float
    api: Api
    path: str
    timeline: Timeline
    method: str = "POST"
    stream: bool = False
    key: str = ""
    model: str = "unknown"
    requested_model: str = ""
    session: str = ""
    session_source: str = ""
    assigned_arm: str = ""
    arm: str = ""
    backend: str = ""
    backend_api: str = ""
    forced: bool = False
    tried: list[str] = []
    refusal: Refusal | None = None
    usage: Usage | None = None
    gaps: array[float] = msgspec.field(default_factory=_no_gaps)
    bytes_in: int = 0
    error: str = ""
    detail: list[str] = []
    weights: dict[str, float] = {}
    revision: int = 0
    trace: Trace | None = None

    def forget_marks(self) -> None:
        """The marks of the timeline are those of the attempt that answered."""
        timeline = self.timeline
        timeline.upstream_headers = timeline.first_byte = None
        if timeline.first_token is not None:
            timeline.first_token = timeline.last_token = None
            del self.gaps[:]

    def record(self, status: int, outcome: Outcome, bytes_out: int) -> Record:
        """The finished record."""
        if not self.stream:  # an answer that is streamed again has been generated before
            self.timeline.first_token = self.timeline.last_token = None
        waited_in_vain = self.stream and self.timeline.first_token is None
        return Record(
            id=self.id,
            at=self.at,
            timeline=self.timeline,
            api=self.api,
            path=self.path,
            method=self.method,
            status=status,
            outcome=outcome,
            stream=self.stream,
            key=self.key,
            model=self.model,
            requested_model=self.requested_model,
            session=self.session,
            session_source=self.session_source,
            assigned_arm=self.assigned_arm,
            arm=self.arm,
            backend=self.backend,
            backend_api=self.backend_api,
            forced=self.forced,
            tried=tuple(self.tried),
            no_token=_NO_TOKEN[outcome] if waited_in_vain else None,
            refusal=self.refusal,
            usage=self.usage,
            gaps=self.gaps,
            bytes_in=self.bytes_in,
            bytes_out=bytes_out,
            error=self.error,
            detail="; ".join(self.detail),
            weights=self.weights,
            revision=self.revision,
            trace=self.trace,
        )
