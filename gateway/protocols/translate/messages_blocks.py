"""A Messages request as Anthropic defines it, typed as far as a translation reads it.

Fields that name no wish a chat server could meet (`metadata`, `cache_control`, `citations`,
`context_management`, `service_tier`) are not read, and so are left out.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
OptionalRaw = Raw | UnsetType


class Base64(msgspec.Struct, tag="base64", gc=False):
    data: str
    media_type: str = "image/png"


class Url(msgspec.Struct, tag="url", gc=False):
    url: str


class Plain(msgspec.Struct, tag="text", gc=False):
    data: str


class Blocks(msgspec.Struct, tag="content", gc=False):
    content: str | list[Block]


class File(msgspec.Struct, tag="file", gc=False):
    """Something uploaded to Anthropic, out of a backend's reach."""

    file_id: str


class Text(msgspec.Struct, tag="text", gc=False):
    text: str


class Image(msgspec.Struct, tag="image", gc=False):
    source: Base64 | Url | File


class Document(msgspec.Struct, tag="document", gc=False):
    source: Base64 | Url | Plain | Blocks | File
    title: str | None = None
    context: str | None = None


class SearchResult(msgspec.Struct, tag="search_result", gc=False):
    content: list[Text]
    source: str = ""
    title: str = ""


class Thinking(msgspec.Struct, tag="thinking", gc=False):
    thinking: str


class RedactedThinking(msgspec.Struct, tag="redacted_thinking", gc=False):
    """Encrypted for Anthropic: nobody else can read it."""


class ToolUse(msgspec.Struct, tag="tool_use", gc=False):
    """A call; `input` should be an object, but clients replay broken ones as they came."""

    id: str
    name: str
    input: OptionalRaw = UNSET


class ToolResult(msgspec.Struct, tag="tool_result", gc=False):
    tool_use_id: str
    content: str | list[Block] | None = None
    is_error: bool | None = None


class Foreign(msgspec.Struct, gc=False):
    """A trace of tools that ran on Anthropic's servers, in a conversation continued elsewhere."""

    name: OptionalRaw = UNSET
    input: OptionalRaw = UNSET
    content: OptionalRaw = UNSET
    tool_name: OptionalRaw = UNSET
    file_id: OptionalRaw = UNSET


class ServerToolUse(Foreign, tag="server_tool_use", gc=False): ...


class McpToolUse(Foreign, tag="mcp_tool_use", gc=False): ...


class McpToolResult(Foreign, tag="mcp_tool_result", gc=False): ...


class WebSearchResult(Foreign, tag="web_search_tool_result", gc=False): ...


class WebFetchResult(Foreign, tag="web_fetch_tool_result", gc=False): ...


class CodeResult(Foreign, tag="code_execution_tool_result", gc=False): ...


class BashResult(Foreign, tag="bash_code_execution_tool_result", gc=False): ...


class EditorResult(Foreign, tag="text_editor_code_execution_tool_result", gc=False): ...


class ToolSearchResult(Foreign, tag="tool_search_tool_result", gc=False): ...


class ToolReference(Foreign, tag="tool_reference", gc=False): ...


class ContainerUpload(Foreign, tag="container_upload", gc=False): ...


class Compaction(Foreign, tag="compaction", gc=False): ...


Block = (
    Text
    | Image
    | Document
    | SearchResult
    | Thinking
    | RedactedThinking
    | ToolUse
    | ToolResult
    | ServerToolUse
    | McpToolUse
    | McpToolResult
    | WebSearchResult
    | WebFetchResult
    | CodeResult
    | BashResult
    | EditorResult
    | ToolSearchResult
    | ToolReference
    | ContainerUpload
    | Compaction
)
Content = str | list[Block] | None


class Message(msgspec.Struct, gc=False):
    role: Literal["user", "assistant", "system", "developer"]
    content: Content = None


class Tool(msgspec.Struct, gc=False):
    """A tool; those that Anthropic runs itself have no `input_schema`."""

    name: str
    description: str | None = None
    input_schema: OptionalRaw = UNSET
    strict: bool | None = None


class ToolChoice(msgspec.Struct, gc=False):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Format(msgspec.Struct, gc=False):
    type: Literal["json_schema"]
    schema: Raw


class OutputConfig(msgspec.Struct, gc=False):
    effort: Literal["minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    format: Format | None = None


class ThinkingConfig(msgspec.Struct, gc=False):
    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: Count | None = None


class Request(msgspec.Struct, gc=False):
    """The whole request; the last four fields are vLLM's own and travel as they are."""

    model: str
    messages: Annotated[list[Message], Meta(min_length=1)]
    system: Content = None
    max_tokens: Count | None = None
    stream: bool | None = None
    stop_sequences: list[str] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Count | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    thinking: ThinkingConfig | None = None
    output_config: OutputConfig | None = None
    output_format: Format | None = None
    cache_salt: OptionalRaw = UNSET
    priority: OptionalRaw = UNSET
    kv_transfer_params: OptionalRaw = UNSET
    chat_template_kwargs: OptionalRaw = UNSET
