"""Anthropic's Python SDK."""

from __future__ import annotations

from gateway.clients.profile import Profile
from gateway.clients.setup import ReadFile, Setup, Target
from gateway.records import Api

_CODE = """\
import os
from anthropic import Anthropic

client = Anthropic(base_url={base_url!r}, api_key=os.environ["GATEWAY_KEY"])
with client.messages.stream(
    model={model!r},
    max_tokens=1024,
    messages=[{{"role": "user", "content": "Hello"}}],
) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)
"""


def _setup(target: Target, read: ReadFile) -> Setup:
    return Setup(
        code=_CODE.format(base_url=target.base_url(Api.MESSAGES), model=target.model),
        notes=("The base URL has no /v1: the SDK adds it.",),
    )


ANTHROPIC_PYTHON = Profile(
    name="anthropic-python",
    title="Anthropic's Python SDK",
    api=Api.MESSAGES,
    path="/v1/messages",
    setup=_setup,
    credential="x-api-key",
    user_agent="Anthropic/Python 2.14.0",
    agents=(b"anthropic/", b"asyncanthropic/"),
    obeys_should_retry=True,
)
