"""Where a session belongs, worked out beside the gateway from what DESIGN §6 says."""

from __future__ import annotations

from hashlib import sha256
from math import log

from gateway.clients.session import session_hash
from gateway.routing.assign import draw, salt_of


class Oracle:
    """The split of one model for one key.

    Args:
        experiment: the name of the model's experiment.
    """

    def __init__(self, key: str, model: str, experiment: str, weights: dict[str, float]) -> None:
        self._key_id = sha256(key.encode()).hexdigest()[:12]
        self._salt = salt_of("arm", model, experiment)
        self._weights = weights

    def arm(self, session: str) -> str:
        """The arm of the largest -w/ln(u), u = ((h >> 12) + 0.5)/2⁵²."""
        number = session_hash(self._key_id, session.encode())

        def score(arm: str) -> float:
            u = ((draw(self._salt, number, arm) >> 12) + 0.5) / 2**52
            return -self._weights[arm] / log(u)

        return max(self._weights, key=score)
