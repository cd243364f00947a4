"""Whether engines run as they are declared, and alike within an arm. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.records import EngineFacts
from gateway.settings.tree import EngineSettings
from gateway.vllm import Version

_DECLARED = (
    *("max_num_batched_tokens", "max_num_seqs", "block_size"),
    *("prefix_caching", "gpu_memory_utilization"),
)
_ALIKE = ("version", *_DECLARED, "max_model_len")

# Engines profile their memory at each start: equal ones differ by some blocks.
_CACHE_SLACK = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that runs otherwise than declared, both as YAML has them; `str` is a phrase."""

    name: str
    declared: str
    runs: str

    def __str__(self) -> str:
        return f"{self.name} is declared as {self.declared}, the engine runs {self.runs}"


def differences(declared: EngineSettings | None, told: EngineFacts) -> tuple[Difference, ...]:
    """What runs otherwise than declared; what the engine does not tell is no difference, nor is
    what is not declared."""
    found = []
    version = declared.version if declared else None
    if version and told.version and not _runs(version, told.version):
        found.append(Difference("version", version, told.version))
    for name in _DECLARED:
        claim, fact = getattr(declared, name, None), getattr(told, name)
        if claim is not None and fact is not None and claim != fact:
            found.append(Difference(name, _text(claim), _text(fact)))
    return tuple(found)


def _runs(declared: str, told: str) -> bool:
    try:
        return Version.parse(declared).covers(Version.parse(told))
    except ValueError:  # a build of somebody's own, which can be of any version
        return True


def drift(peers: Mapping[str, EngineFacts]) -> tuple[str, ...]:
    """In what the backends of one arm differ, by backend: a phrase each.

    An arm is one engine configuration: its backends' figures are added up, which only makes sense
    while they run alike.
    """
    found = []
    for name in _ALIKE:
        told = {peer: getattr(facts, name) for peer, facts in peers.items()}
        known = {peer: fact for peer, fact in told.items() if fact not in (None, "")}
        if len(set(known.values())) > 1:
            found.append(f"{name} is {_each(known)}")
    sizes = {peer: facts.cache_tokens for peer, facts in peers.items() if facts.cache_tokens}
    if sizes and max(sizes.values()) > min(sizes.values()) * (1 + _CACHE_SLACK):
        found.append(f"the KV cache holds {_each(sizes)} tokens")
    return tuple(found)


def _each(told: Mapping[str, object]) -> str:
    return ", ".join(f"{_text(fact)} on {peer}" for peer, fact in sorted(told.items()))


def _text(fact: object) -> str:
    return str(fact).lower() if isinstance(fact, bool) else str(fact)
