"""The configuration of a vLLM server, as a file under version control says it."""

from __future__ import annotations

from math import inf
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    field_validator,
    model_validator,
)

from gateway.vllm.flags import canonical, renamed
from gateway.vllm.kinds import (
    LIST,
    WORD,
    Count,
    CountOrZero,
    EngineVersion,
    FlagName,
    Label,
    Port,
    Share,
    Text,
    Variable,
    fault,
    word_or_list,
)
from gateway.vllm.version import Version, runs_v1

_LONG_CONTEXT = 32768

FIELD_FLAGS = {
    "served_model_name": "served-model-name",
    "host": "host",
    "port": "port",
    "tensor_parallel_size": "tensor-parallel-size",
    "pipeline_parallel_size": "pipeline-parallel-size",
    "data_parallel_size": "data-parallel-size",
    "max_model_len": "max-model-len",
    "gpu_memory_utilization": "gpu-memory-utilization",
    "block_size": "block-size",
    "prefix_caching": "enable-prefix-caching",
    "chunked_prefill": "enable-chunked-prefill",
    "max_num_batched_tokens": "max-num-batched-tokens",
    "max_num_seqs": "max-num-seqs",
    "long_prefill_token_threshold": "long-prefill-token-threshold",
    "scheduling_policy": "scheduling-policy",
    "prompt_tokens_details": "enable-prompt-tokens-details",
    "tool_call_parser": "tool-call-parser",
    "reasoning_parser": "reasoning-parser",
}
"""The flag that each setting stands for, in the order in which they are rendered."""


class EngineConfig(BaseModel):
    """One `vllm serve`: what is not stated is left to vLLM.

    Attributes:
        model: the path or Hugging Face id of the model.
        engine_version: the release of vLLM it is for; `NEWEST` if none is stated.
        name: the name of the compose service or Deployment.
        image: the container image; `vllm/vllm-openai` of the release by default.
        shared_prompt_tokens: tokens that prompts have in common; for checks only.
        tool_call_parser: also turns automatic tool choice on.
        flags: further flags of `vllm serve` by name, with or without dashes in front: true,
            false, a value, a list of values, or a mapping for those that take JSON.
        env: environment variables. `${NAME}` is passed on from where the server is started; in
            Kubernetes it comes from a Secret called like the Deployment.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    model: Text
    engine_version: EngineVersion | None = None
    name: Label = "vllm"
    image: Text | None = None
    served_model_name: (
        Annotated[
            Annotated[Text, WORD] | Annotated[list[Text], Field(min_length=1), LIST],
            word_or_list(otherwise="must be a name, or a list of names; numbers go in quotes"),
        ]
        | None
    ) = None
    host: Text | None = None
    port: Port = 8000
    tensor_parallel_size: Count | None = None
    pipeline_parallel_size: Count | None = None
    data_parallel_size: Count | None = None
    max_model_len: Count | None = None
    gpu_memory_utilization: Share | None = None
    block_size: Count | None = None
    prefix_caching: bool | None = None
    chunked_prefill: bool | None = None
    max_num_batched_tokens: Count | None = None
    max_num_seqs: Count | None = None
    long_prefill_token_threshold: CountOrZero | None = None
    scheduling_policy: Literal["fcfs", "priority"] | None = None
    prompt_tokens_details: bool | None = None
    tool_call_parser: Text | None = None
    reasoning_parser: Text | None = None
    shared_prompt_tokens: Count | None = None
    flags: dict[FlagName, JsonValue] = {}
    env: dict[Variable, Text] = {}

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, data: Any) -> Any:
        if isinstance(data, dict):
            return {name: value for name, value in data.items() if value is not None}
        return data

    @field_validator("flags")
    @classmethod
    def _nothing_twice(
        cls, flags: dict[str, JsonValue], info: ValidationInfo
    ) -> dict[str, JsonValue]:
        settings = {flag: setting for setting, flag in FIELD_FLAGS.items()} | {"model": "model"}
        for name in flags:
            plain = canonical(name)
            setting = settings.get(renamed(plain), "")
            # A wrong name is put right, unless the right one is there, too.
            if plain in settings or info.data.get(setting) is not None:
                raise fault(f"{name} has a setting of its own: use {setting}")
        return flags

    def chunks_prefill(self, version: Version) -> bool:
        """Whether prompts are computed in chunks, by default, too.

        V1 always does unless told otherwise, V0 for contexts above 32768 tokens (0.6.3.post1,
        `vllm/engine/arg_utils.py`); a context that is not stated counts as such a one.
        """
        if self.chunked_prefill is not None:
            return self.chunked_prefill
        return runs_v1(version, self.env) or (self.max_model_len or inf) > _LONG_CONTEXT
