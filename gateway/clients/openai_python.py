"""OpenAI's Python SDK."""

from __future__ import annotations

from gateway.clients.profile import Profile
from gateway.clients.setup import ReadFile, Setup, Target
from gateway.records import Api

_CODE = """\
import os
from openai import OpenAI

client = OpenAI(base_url={base_url!r}, api_key=os.environ["GATEWAY_KEY"])
stream = client.chat.completions.create(
    model={model!r},
    messages=[{{"role": "user", "content": "Hello"}}],
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
"""


def _setup(target: Target, read: ReadFile) -> Setup:
    return Setup(code=_CODE.format(base_url=target.base_url(Api.CHAT), model=target.model))


OPENAI_PYTHON = Profile(
    name="openai-python",
    title="OpenAI's Python SDK",
    api=Api.CHAT,
    path="/chat/completions",
    setup=_setup,
    user_agent="OpenAI/Python 3.57.0",
    agents=(b"openai/", b"asyncopenai/"),
    obeys_should_retry=True,
)
