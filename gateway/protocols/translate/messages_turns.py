"""The conversation of a Messages request as chat messages.

Each run of messages between two answers of the assistant becomes chat messages by itself, so a
conversation that grows keeps its chat messages as they were, and the engine's prefix cache hits.
Within a run the results of tools come first, since chat templates want them right behind the
calls; what else the run says, system messages included, is one user message, since many templates
want user and assistant to alternate.
"""

from __future__ import annotations

from typing import Any

from gateway.errors import BadRequest
from gateway.protocols.translate import messages_content as content
from gateway.protocols.translate.messages_blocks import (
    Block,
    Document,
    Image,
    Message,
    RedactedThinking,
    Request,
    SearchResult,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

Json = dict[str, Any]

_USERS = (ToolResult, Image, Document, SearchResult)
_ASSISTANTS = (ToolUse, Thinking, RedactedThinking)


def chat_messages(request: Request) -> list[Json]:
    """The conversation as chat has it.

    Raises:
        BadRequest: a block stands where it cannot.
    """
    system = content.system_texts(request.system)
    run = _Run()
    for number, message in enumerate(request.messages):
        if message.role == "assistant":
            run.answer(_assistant(message, number))
        elif message.role == "user":
            run.ask(message, number)
        elif run.begun:
            run.said += content.system_texts(message.content)
        else:
            system += content.system_texts(message.content)
    messages = run.close()
    if system:
        messages.insert(0, {"role": "system", "content": content.GAP.join(system)})
    return messages


class _Run:
    """Gathers what stands between two answers of the assistant.

    Attributes:
        said: the parts of the user message to come.
        begun: whether anyone but the system has spoken.
    """

    def __init__(self) -> None:
        self._messages: list[Json] = []
        self.said: list[content.Part] = []
        self.begun = False

    def ask(self, message: Message, place: int) -> None:
        """Take in the user message at this place of the request."""
        self.begun = True
        blocks = message.content
        if blocks is None or isinstance(blocks, str):
            self.said.append(blocks or "")
            return
        parts: list[content.Part] = []
        images: list[content.Part] = []
        before = len(self._messages)
        for number, block in enumerate(blocks):
            if isinstance(block, Text):
                if block.text:
                    parts.append(block.text)
            elif isinstance(block, ToolResult):
                text, shown = content.result(block)
                images += shown
                self._messages.append(
                    {"role": "tool", "tool_call_id": block.tool_use_id, "content": text}
                )
            elif isinstance(block, _ASSISTANTS):
                raise _stray(block, place, number, "assistant")
            else:
                parts.append(content.part(block))
        answers = len(self._messages) > before
        self.said += images + (parts or ([] if answers else [""]))

    def answer(self, message: Json) -> None:
        """Take in a message of the assistant."""
        self.begun = True
        self._flush()
        self._messages.append(message)

    def close(self) -> list[Json]:
        """All messages, once the conversation has been taken in."""
        self._flush()
        return self._messages

    def _flush(self) -> None:
        if self.said:
            self._messages.append({"role": "user", "content": _joined(self.said)})
            self.said = []


def _joined(parts: list[content.Part]) -> str | list[Json]:
    """Text alone as a string, which every chat template can read."""
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return content.GAP.join(filter(None, texts))
    return [
        {"type": "text", "text": part} if isinstance(part, str) else part for part in parts if part
    ]


def _assistant(message: Message, place: int) -> Json:
    """What a model said is put together without gaps, as it was generated."""
    blocks = message.content
    if blocks is None or isinstance(blocks, str):
        return {"role": "assistant", "content": blocks or ""}
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Json] = []
    for number, block in enumerate(blocks):
        if isinstance(block, Text):
            texts.append(block.text)
        elif isinstance(block, ToolUse):
            function = {"name": block.name, "arguments": content.arguments(block.input)}
            calls.append({"id": block.id, "type": "function", "function": function})
        elif isinstance(block, Thinking):
            thoughts.append(block.thinking)
        elif isinstance(block, _USERS):
            raise _stray(block, place, number, "user")
        elif not isinstance(block, RedactedThinking):
            part = content.part(block)
            texts.append(part if isinstance(part, str) else "")
    said: Json = {"role": "assistant", "content": "".join(texts)}
    if "".join(thoughts):
        said["reasoning"] = "".join(thoughts)
    if calls:
        said["content"] = said["content"] or None
        said["tool_calls"] = calls
    return said


def _stray(block: Block, place: int, number: int, role: str) -> BadRequest:
    path = f"messages[{place}].content[{number}].type"
    kind = block.__struct_config__.tag
    return BadRequest(f"{path}: A {kind} block belongs in a message with role {role}.", param=path)
