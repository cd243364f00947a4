"""An event stream read beside its relay: first token, gaps, usage, and whether it ended well.

Only whole events pass, so a keep-alive or an error event can always follow what was sent. A read
that holds whole events, which is nearly every read, passes as the very bytes that came.
"""

from __future__ import annotations

from gateway.exchange.call import Call
from gateway.exchange.draft import Draft
from gateway.protocols.rename import Renamer
from gateway.protocols.sse import Reader
from gateway.protocols.tokens import Observer
from gateway.records import Usage


class Stream:
    """Takes what the backend sent and gives what the client gets.

    Attributes:
        terminal: the event that ends a stream of this API has been seen.
        finished: every choice of the answer has given its finish reason.
        failed: the backend reported an error within the stream.
        tokens: events that carried something generated.
    """

    def __init__(self, call: Call, draft: Draft) -> None:
        self._reader = Reader()
        self._observer = Observer(call.api, call.echo_prompt)
        self._rename = Renamer(*call.rename).event
        self._withhold_usage = call.withhold_usage
        self._draft = draft
        self.terminal = False
        self.finished = False
        self.failed: bytes | None = None
        self.response_id: str | None = None
        self.tokens = 0
        self.usage: Usage | None = None

    def feed(self, data: bytes, now: float) -> tuple[bytes, int]:
        """Whole events to send on, and how many they are. `now` is when the bytes were read.

        Raises:
            ValueError: an event is longer than the reader's bound.
        """
        whole = not self._reader.pending
        events = self._reader.feed(data)
        whole = whole and not self._reader.pending
        before = self.tokens
        out: list[bytes] = []
        for event in events:
            seen = self._observer.feed(event)
            if seen.token:
                self.tokens += 1
            if seen.usage is not None:
                self.usage = seen.usage
            if seen.error:
                self.failed = event.data
            self.terminal |= seen.terminal
            self.finished |= seen.finished
            if seen.response_id:
                self.response_id = seen.response_id
            if seen.usage_only and self._withhold_usage:
                whole = False
                continue
            renamed = self._rename(event.raw)
            whole = whole and renamed is event.raw
            out.append(renamed)
        if self.tokens > before:
            self._mark(now)
        return (data if whole else b"".join(out)), len(out)

    def _mark(self, now: float) -> None:
        timeline = self._draft.timeline
        if timeline.last_token is None:
            timeline.first_token = now
        else:
            self._draft.gaps.append(now - timeline.last_token)
        timeline.last_token = now
