"""An event stream read beside its relay: first token, gaps, usage, and whether it ended well.

Only whole events pass, so a keep-alive or an error event can always follow what was sent.
"""

from __future__ import annotations

from gateway.exchange.call import Call
from gateway.exchange.draft import Draft
from gateway.exchange.form import Form
from gateway.protocols.alike import Alike
from gateway.protocols.rename import Renamer
from gateway.protocols.sanitise.ending import missing_end
from gateway.protocols.sanitise.restore import Restore
from gateway.protocols.seen import NOTHING, TOKEN, Seen
from gateway.protocols.sse import Event, Reader
from gateway.protocols.tokens import Observer
from gateway.protocols.translate import StreamTranslation
from gateway.records import Usage


class Stream:
    """Takes what the backend sent and gives what the client gets.

    Attributes:
        terminal: the event that ends a stream of this API has been seen.
        finished: every choice of the answer has given its finish reason.
        failed: the backend reported an error within the stream.
        tokens: events that carried something generated.
    """

    def __init__(self, call: Call, form: Form, draft: Draft) -> None:
        self._reader = Reader()
        self._api = form.api
        self._observer = Observer(form.api, call.echo_prompt)
        self._rename = Renamer(*call.rename).event
        self._restore = Restore(form.names).event if form.names is not None else None
        self._alike = Alike()
        # Of a repeated prompt only its length tells which text is generated.
        self._alike.hopeful = call.echo_prompt is None
        self._withhold_usage = call.withhold_usage
        self._draft = draft
        self.terminal = False
        self.finished = False
        self.failed: bytes | None = None
        self.response_id: str | None = None
        self.tokens = 0
        self.usage: Usage | None = None

    def feed(self, data: bytes, now: float) -> tuple[bytes, int]:
        """Whole events to send on, and how many of them say something: comments do not.

        `now` is when the bytes were read.

        Raises:
            ValueError: an event is longer than the reader's bound.
        """
        before = self.tokens
        out: list[bytes] = []
        position = count = 0
        while position < len(data) and self.failed is None:
            if self._alike.hopeful and not self._reader.holds:
                end, run = self._alike.run(data, position)
                if run:
                    out.append(self._alike.relayed(data, position, end))
                    self.tokens += run
                    count += run
                    position = end
                    continue
                # One event by itself: what follows may be alike.
                end = data.find(b"\n\n", position) + 2
                piece = data[position:end] if end > 1 else data[position:]
            else:
                piece = data[position:] if position else data
            position += len(piece)
            count += self._read(piece, out)
        if self.tokens > before:
            self._mark(now)
        return out[0] if len(out) == 1 else b"".join(out), count

    @property
    def lacking(self) -> bytes:
        """What to feed when the stream has ended: some leave out the last blank line."""
        return b"\n\n" if self._reader.holds else b""

    def end(self) -> bytes:
        """The event that ends a stream of this API, for one that stopped without it."""
        return missing_end(self._api)

    def _read(self, data: bytes, out: list[bytes]) -> int:
        """Decode the events that `data` completes and add what the client gets of them."""
        relayed = 0
        for event in self._reader.feed(data):
            seen = self._observer.feed(event)
            if seen.usage_only and self._withhold_usage:
                self.usage = seen.usage
                continue
            raw = event.raw if self._restore is None else self._restore(event)
            renamed = self._rename(raw)
            out.append(renamed)
            if seen is TOKEN:
                self.tokens += 1
                if self._alike.hopeful:
                    self._alike.learn(event.raw, renamed)
            elif seen is not NOTHING:
                self._note(seen, event)
                if self.failed is not None:
                    out.pop()  # told in the gateway's own words, and nothing follows it
                    break
            elif not event.data:
                continue
            relayed += 1
        return relayed

    def _note(self, seen: Seen, event: Event) -> None:
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

    def _mark(self, now: float) -> None:
        timeline = self._draft.timeline
        if timeline.last_token is None:
            timeline.first_token = now
        else:
            self._draft.gaps.append(now - timeline.last_token)
        timeline.last_token = now


class TranslatedStream(Stream):
    """A chat stream that reaches the client as a stream of its own API."""

    def __init__(
        self, call: Call, form: Form, draft: Draft, translation: StreamTranslation
    ) -> None:
        super().__init__(call, form, draft)
        self._translation = translation

    def feed(self, data: bytes, now: float) -> tuple[bytes, int]:
        before = self.tokens
        out: list[bytes] = []
        for event in self._reader.feed(data):
            seen = self._observer.feed(event)
            self._note(seen, event)
            if self.failed is not None:
                break
            if piece := self._translation.feed(event):
                out.append(piece)
            if self.terminal:
                out.append(self.end())
                break
        if self.tokens > before:
            self._mark(now)
        return b"".join(out), len(out)

    def end(self) -> bytes:
        return self._translation.close()


def stream_of(
    call: Call, form: Form, draft: Draft, translation: StreamTranslation | None
) -> Stream:
    """What reads the backend's answer to `call`, sent in `form`."""
    if translation is None:
        return Stream(call, form, draft)
    return TranslatedStream(call, form, draft, translation)
