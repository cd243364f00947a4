"""The last event of a native stream that ended without it."""

from __future__ import annotations

from gateway.records import Api

_ENDINGS = {
    Api.CHAT: b"data: [DONE]\n\n",
    Api.COMPLETIONS: b"data: [DONE]\n\n",
    Api.MESSAGES: b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
}


def missing_end(api: Api) -> bytes:
    """What a stream lacks that stopped after its finish reason; clients wait for it.

    It is empty where nothing can stand in: what ends a stream of the Responses API repeats the
    whole answer, so without `response.completed` there was none, and only an error is true.
    """
    return _ENDINGS.get(api, b"")
