"""Each API by its official SDK, whole and streamed, against the gateway or an engine itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState

from gateway.records import Api

TOKENS = 12
PROMPT = "def main(argv):"
USER: Any = [{"role": "user", "content": PROMPT}]
TOOL = "weather"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris"]}},
    "required": ["city"],
    "additionalProperties": False,
}
"""Of a tool that can be called in one way only: the model knows nothing, its grammar does."""


@dataclass
class Speaker:
    """The SDKs, with one base URL and key, and the model they name."""

    openai: AsyncOpenAI
    anthropic: AsyncAnthropic
    model: str


@dataclass(frozen=True)
class Said:
    """One answer, as its SDK has put it together."""

    model: str
    text: str
    stopped: str
    prompt: int
    completion: int
    calls: tuple[tuple[str, Any], ...] = ()


Ask = Callable[[Speaker, bool, bool], Awaitable[Said]]
"""One request for an answer: whether it is streamed, and whether a tool must be called."""


async def chat(speaker: Speaker, stream: bool, tool: bool) -> Said:
    options: Any = {"model": speaker.model, "messages": USER, "temperature": 0}
    options |= {"max_tokens": 100 if tool else TOKENS}
    if tool:
        function = {"name": TOOL, "parameters": SCHEMA, "strict": True}
        options |= {"tools": [{"type": "function", "function": function}]}
        options |= {"tool_choice": "required", "parallel_tool_calls": False}
    create: Any = speaker.openai.chat.completions.create
    if stream:
        usage = {"include_usage": True}
        parts = [one async for one in await create(**options, stream=True, stream_options=usage)]
        # What the SDK's own helper makes of a stream, without its wish that it be whole JSON.
        joined: Any = ChatCompletionStreamState()
        for part in parts:
            joined.handle_chunk(part)
        reply = joined.current_completion_snapshot
    else:
        reply = await create(**options)
    (choice,) = reply.choices
    calls = choice.message.tool_calls or []
    return Said(
        reply.model,
        choice.message.content or "",
        choice.finish_reason,
        reply.usage.prompt_tokens,
        reply.usage.completion_tokens,
        tuple((one.function.name, one.function.arguments) for one in calls),
    )


async def completions(speaker: Speaker, stream: bool, tool: bool) -> Said:
    assert not tool
    options: Any = {"model": speaker.model, "prompt": PROMPT, "temperature": 0}
    options |= {"max_tokens": TOKENS}
    create: Any = speaker.openai.completions.create
    if not stream:
        whole = await create(**options)
        parts = [whole]
    else:
        usage = {"include_usage": True}
        parts = [one async for one in await create(**options, stream=True, stream_options=usage)]
    choices = [choice for part in parts for choice in part.choices]
    (counted,) = [part.usage for part in parts if part.usage is not None]
    return Said(
        parts[0].model,
        "".join(choice.text for choice in choices),
        choices[-1].finish_reason,
        counted.prompt_tokens,
        counted.completion_tokens,
    )


async def messages(speaker: Speaker, stream: bool, tool: bool) -> Said:
    options: Any = {"model": speaker.model, "messages": USER}
    options |= {"max_tokens": 100 if tool else TOKENS, "extra_body": {"temperature": 0}}
    if tool:
        options |= {"tools": [{"name": TOOL, "input_schema": SCHEMA, "strict": True}]}
        options |= {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}
    if stream:
        async with speaker.anthropic.messages.stream(**options) as events:
            reply: Any = await events.get_final_message()
    else:
        reply = await speaker.anthropic.messages.create(**options)
    return Said(
        reply.model,
        "".join(block.text for block in reply.content if block.type == "text"),
        reply.stop_reason,
        reply.usage.input_tokens,
        reply.usage.output_tokens,
        tuple((block.name, block.input) for block in reply.content if block.type == "tool_use"),
    )


async def responses(speaker: Speaker, stream: bool, tool: bool) -> Said:
    options: Any = {"model": speaker.model, "input": USER, "temperature": 0}
    options |= {"max_output_tokens": 100 if tool else TOKENS}
    if tool:
        function = {"type": "function", "name": TOOL, "parameters": SCHEMA, "strict": True}
        options |= {"tools": [function], "tool_choice": "required", "parallel_tool_calls": False}
    if stream:
        async with speaker.openai.responses.stream(**options) as events:
            reply: Any = await events.get_final_response()
    else:
        reply = await speaker.openai.responses.create(**options)
    calls = [item for item in reply.output if item.type == "function_call"]
    return Said(
        reply.model,
        reply.output_text,
        reply.status,
        reply.usage.input_tokens,
        reply.usage.output_tokens,
        tuple((one.name, one.arguments) for one in calls),
    )


ASKS: dict[Api, Ask] = {
    Api.CHAT: chat,
    Api.COMPLETIONS: completions,
    Api.MESSAGES: messages,
    Api.RESPONSES: responses,
}
