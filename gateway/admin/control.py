"""What the admin API needs of a running gateway; `app.py` provides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from gateway.keys.keyring import Key
from gateway.keys.limits import Standing
from gateway.records import Record
from gateway.routing.table import Table
from gateway.settings import Settings
from gateway.state.store import WeightChange
from gateway.telemetry.by_key import KeyUse


class Control(Protocol):
    """A running gateway, as its operators see it."""

    @property
    def settings(self) -> Settings:
        """Those in force now."""

    @property
    def table(self) -> Table:
        """The routing table in force now."""

    def find(self, request_id: str) -> Record | None:
        """A request that ended lately."""

    def standings(self) -> Sequence[tuple[Key, Standing, KeyUse]]:
        """Every key, what it uses now, and what it has used since the start."""

    async def set_weights(
        self,
        model: str,
        weights: Mapping[str, float],
        *,
        revision: int | None,
        reason: str,
        by: str,
    ) -> None:
        """Put weights in force and keep them; arms that are not named keep theirs.

        Raises:
            Conflict: `revision` is given and not the one in force, or a rollout owns the weights.
            BadRequest: an arm the model does not have, or no weight above zero would be left.
        """

    async def set_enabled(self, backend: str, enabled: bool, *, by: str) -> None:
        """Take a backend out, or put it back; it stays so across restarts."""

    async def history(self, model: str | None, limit: int) -> Sequence[WeightChange]:
        """The last changes of one model's weights, or of all models', the latest first."""

    async def reload(self) -> Settings:
        """Read the configuration anew and put it in force.

        Raises:
            ConfigError: it has faults; what was in force stays.
        """
