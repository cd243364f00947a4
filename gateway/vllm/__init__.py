"""Pure knowledge of vLLM: its configurations, what is wrong with them, and what engines tell.

It does no I/O and imports nothing else of ours, so that it can be used on its own:

- `EngineConfig`: one `vllm serve` as a file says it. `EngineConfig.model_validate(mapping)` raises
  pydantic's `ValidationError`.
- `launch(config, version)`: its flags in a version of vLLM, as a `Launch`, which `command`,
  `config_yaml`, `config_json`, `compose` and `kubernetes` write out.
- `check(config, version)`: a list of `Finding`, errors first.
- `can_reuse_prefix(seq_len, chunk_size, block_size)`: the rule of 0.6-era engines;
  `cached_prefix_tokens(prompt_tokens, shared_tokens, block_size)`: what V1 does.
- `flag(name, version)`: what became of a flag. `Version.parse(text)`: a version; `NEWEST` is the
  newest whose sources were read.
- `gateway.vllm.page` and `gateway.vllm.server_info`: what a running engine tells of itself.
"""

from gateway.vllm.checks import check
from gateway.vllm.config import EngineConfig
from gateway.vllm.files import command, config_command, config_json, config_yaml
from gateway.vllm.findings import EVERY_VERSION, Finding, Severity
from gateway.vllm.flags import Fate, Flag, Kind, flag
from gateway.vllm.launch import Launch, Remark, launch
from gateway.vllm.manifests import compose, kubernetes
from gateway.vllm.prefix import cached_prefix_tokens, can_reuse_prefix
from gateway.vllm.version import NEWEST, Version, runs_v1

__all__ = [
    "EVERY_VERSION",
    "NEWEST",
    "EngineConfig",
    "Fate",
    "Finding",
    "Flag",
    "Kind",
    "Launch",
    "Remark",
    "Severity",
    "Version",
    "cached_prefix_tokens",
    "can_reuse_prefix",
    "check",
    "command",
    "compose",
    "config_command",
    "config_json",
    "config_yaml",
    "flag",
    "kubernetes",
    "launch",
    "runs_v1",
]
