"""What a scripted engine can do with a request: answer it, or go wrong in one of many ways."""

from __future__ import annotations

from dataclasses import dataclass

from tests.real_clients.speech import Answer


@dataclass(frozen=True)
class Fails:
    """An error as the engine words it, before any answer.

    Attributes:
        code: the error's own; the number of the status if it has none.
        headers: of the reply, each with its line's end.
    """

    status: str
    message: str
    type: str = "BadRequestError"
    code: str | None = None
    headers: str = ""


DIED = Fails("500 Internal Server Error", "EngineCore died", "InternalServerError")


@dataclass(frozen=True)
class Breaks:
    """Two tokens of an answer, or half a whole one, then the connection is gone."""

    answer: Answer


@dataclass(frozen=True)
class Reports:
    """Two tokens of an answer, then an error as an event; unstreamed, an error of its status.

    Attributes:
        own: the event is one of the API asked for; else an object in OpenAI's shape.
        error: as the API words it.
        failed: the event is a response that has failed, where the API has such.
    """

    answer: Answer
    own: bool
    error: Fails = DIED
    failed: bool = False


@dataclass(frozen=True)
class Stops:
    """A whole answer whose stream has no last event, but ends as HTTP wants it."""

    answer: Answer


@dataclass(frozen=True)
class Ignores:
    """A whole answer as JSON, whether a stream was asked for or not."""

    answer: Answer


@dataclass(frozen=True)
class Waits:
    """An answer whose stream opens at once and whose first event takes its time.

    Attributes:
        seconds: until the first event.
        comments: are sent meanwhile, one a second.
    """

    seconds: int
    answer: Answer
    comments: bool = False


Step = Answer | Fails | Breaks | Reports | Stops | Ignores | Waits
