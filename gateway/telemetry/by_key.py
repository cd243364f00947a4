"""Who uses what: requests, tokens and refusals by the names of the keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gateway.records import Outcome, Record, Refusal
from gateway.telemetry.catalogue import Catalogue

NO_KEY = "unknown"

# A counter that vanishes loses its last increments, so those of removed keys stay for a while;
# where keys are rotated for ever, not for ever.
FORMER_KEYS = 100


class ConfiguredKey(Protocol):
    """What the metrics read of a key."""

    @property
    def name(self) -> str: ...
    @property
    def requests_per_minute(self) -> int | None: ...
    @property
    def tokens_per_minute(self) -> int | None: ...
    @property
    def max_concurrency(self) -> int | None: ...
    def allows_model(self, model_id: str) -> bool: ...


@dataclass(slots=True)
class KeyUse:
    """What a key has used since the gateway started.

    Attributes:
        requests: all that ended, the refused ones included.
        prompt_tokens: the cached ones included.
        refused: requests that the gateway turned away, by reason, for those that came up.
    """

    requests: int = 0
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    completion_tokens: int = 0
    refused: Counter[str] = field(default_factory=Counter)


class ByKey:
    """Counts finished exchanges by key; belongs to the event loop's thread.

    Args:
        families: where the counters are published.
    """

    def __init__(self, families: Catalogue) -> None:
        self._families = families
        self._names: set[str] = set()
        # In the order of their removal; a dict, for want of an ordered set.
        self._former: dict[str, None] = {}

    def use(self, keys: Sequence[ConfiguredKey], models: Collection[str]) -> None:
        """Take the keys now in force: at start and after each reload.

        Args:
            models: the ids of those configured.
        """
        names = {key.name for key in keys}
        former = [*self._former, *sorted(self._names - names)]
        self._former = {name: None for name in former if name not in names}
        self._names = names | self._former.keys()
        surplus = len(self._former) - FORMER_KEYS
        if surplus > 0:
            self._forget(set(list(self._former)[:surplus]))
        for key in keys:
            self._begin(key, models)
        self._families.key_rejections[NO_KEY, Refusal.INVALID_KEY].value += 0

    def observe(self, record: Record, model: str) -> None:
        """Count one finished exchange.

        Args:
            model: its model, as a label.
        """
        name = record.key if record.key in self._names else NO_KEY
        families = self._families
        families.key_requests[name, model, record.outcome].value += 1
        if record.refusal is not None:
            families.key_rejections[name, record.refusal].value += 1
        usage = record.usage
        if usage is not None:
            labels = (name, model)
            families.key_prompt_tokens[labels].value += usage.prompt
            families.key_cached_tokens[labels].value += usage.cached
            families.key_completion_tokens[labels].value += usage.completion

    def totals(self) -> dict[str, KeyUse]:
        """What each key has used, by name; without a valid key by the name `unknown`.

        A key that was removed long ago may be missing.
        """
        found = {name: KeyUse() for name in (*self._names, NO_KEY)}
        families = self._families
        for (name, _, _), counter in families.key_requests.items():
            found[name].requests += counter.value
        for (name, reason), counter in families.key_rejections.items():
            if counter.value:
                found[name].refused[reason] += counter.value
        for (name, _), counter in families.key_prompt_tokens.items():
            found[name].prompt_tokens += counter.value
        for (name, _), counter in families.key_cached_tokens.items():
            found[name].cached_prompt_tokens += counter.value
        for (name, _), counter in families.key_completion_tokens.items():
            found[name].completion_tokens += counter.value
        return found

    def _begin(self, key: ConfiguredKey, models: Iterable[str]) -> None:
        """Have it counted from 0.

        A rate begins at a counter's first scrape: what a key did before would be in none.
        """
        families, name = self._families, key.name
        never = {
            Refusal.INVALID_KEY: True,
            Refusal.REQUESTS_PER_MINUTE: key.requests_per_minute is None,
            Refusal.TOKENS_PER_MINUTE: key.tokens_per_minute is None,
            Refusal.MAX_CONCURRENCY: key.max_concurrency is None,
        }
        for reason in Refusal:
            if not never.get(reason):
                families.key_rejections[name, reason].value += 0
        for model in filter(key.allows_model, models):
            families.key_requests[name, model, Outcome.OK].value += 0
            families.key_prompt_tokens[name, model].value += 0
            families.key_cached_tokens[name, model].value += 0
            families.key_completion_tokens[name, model].value += 0

    def _forget(self, names: set[str]) -> None:
        families = self._families
        self._former = {name: None for name in self._former if name not in names}
        self._names -= names
        for family in (
            families.key_requests,
            families.key_rejections,
            families.key_prompt_tokens,
            families.key_cached_tokens,
            families.key_completion_tokens,
        ):
            for labels in [one for one in family if one[0] in names]:
                del family[labels]
