"""What `GET /server_info?config_format=json` says: the only place that tells the token budget.

vLLM serves it in development mode only (`VLLM_SERVER_DEV_MODE=1`); its answer is the engine's
whole configuration (`vllm/entrypoints/serve/dev/server_info/api_router.py`).
"""

from __future__ import annotations

import msgspec

PATH = "/server_info?config_format=json"


class SchedulerConfig(msgspec.Struct, frozen=True):
    """How the scheduler divides work: tokens and sequences a step."""

    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None


class _VllmConfig(msgspec.Struct):
    scheduler_config: SchedulerConfig = SchedulerConfig()


class ServerInfo(msgspec.Struct):
    """The part of the answer that is read."""

    vllm_config: _VllmConfig

    @property
    def scheduler(self) -> SchedulerConfig:
        return self.vllm_config.scheduler_config
