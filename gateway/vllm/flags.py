"""What became of a flag of `vllm serve` in a given version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, StrEnum

from gateway.vllm.flag_table import RELEASES, TABLE
from gateway.vllm.version import Version


class Kind(StrEnum):
    """How a flag is written."""

    VALUE = "value"
    """`--name VALUE`"""
    BOOLEAN = "boolean"
    """`--name` or `--no-name`"""
    SWITCH = "switch"
    """`--name`, or nothing"""
    STORE_BOOLEAN = "store-boolean"
    """`--name` or `--name=False`"""


class Fate(Enum):
    PRESENT = "present"
    REMOVED = "removed"
    NOT_YET = "not yet"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag in a version.

    Attributes:
        name: without dashes in front, with the name this version has for it.
        kind: how it is written; of a flag that is not there, how it was or will be.
        release: the first release with it (`NOT_YET`), or the last one (`REMOVED`).
        instead: what takes its place where it is removed, the nearest name (`--name`) where it
            is unknown; empty if nothing is known.
    """

    name: str
    fate: Fate
    kind: Kind = Kind.VALUE
    release: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True)
class _Span:
    first: int
    last: int
    kind: Kind


_RENAMED = {"scheduler-policy": "scheduling-policy"}
"""Names that are in use for a flag although no release has had them."""

_INSTEAD = {
    "disable-log-requests": "requests are logged only with --enable-log-requests",
    "device": "the build of vLLM decides",
    "enable-reasoning": "--reasoning-parser is enough",
    "guided-decoding-backend": 'use --structured-outputs-config \'{"backend": "…"}\'',
    "max-long-partial-prefills": "--long-prefill-token-threshold alone limits long prompts",
    "max-num-partial-prefills": "--long-prefill-token-threshold alone limits long prompts",
    "max-seq-len-to-capture": "--max-cudagraph-capture-size counts sequences, not tokens",
    "num-lookahead-slots": "speculative decoding reserves its slots by itself",
    "num-scheduler-steps": "every step is scheduled; --async-scheduling hides what that costs",
    "num-speculative-tokens": "use --speculative-config '{\"num_speculative_tokens\": …}'",
    "preemption-mode": "preempted requests are always computed anew",
    "rope-scaling": "use --hf-overrides '{\"rope_scaling\": {…}}'",
    "rope-theta": "use --hf-overrides '{\"rope_theta\": …}'",
    "scheduler-delay-factor": "no prompt is made to wait",
    "speculative-model": 'use --speculative-config \'{"model": "…"}\'',
    "swap-space": "preempted requests are computed anew, not swapped out",
    "task": "use --runner and --convert",
    "use-v2-block-manager": "there is no other any more",
}


def flag(name: str, version: Version) -> Flag:
    """What a flag, named with or without dashes in front and underscores, is in a version.

    The flags are those of the newest release of `RELEASES` that is not newer than the version.
    `no-NAME` counts as NAME.
    """
    plain = renamed(canonical(name))
    place = _release_of(version)
    spans = _SPANS.get(plain, ())
    for span in spans:
        if span.first <= place <= span.last:
            return Flag(plain, Fate.PRESENT, span.kind)
    if not spans:
        near = get_close_matches(plain, known(version), n=1)
        return Flag(plain, Fate.UNKNOWN, instead=f"--{near[0]}" if near else "")
    if place < spans[0].first:
        return Flag(plain, Fate.NOT_YET, spans[0].kind, RELEASES[spans[0].first])
    last = spans[-1]
    return Flag(plain, Fate.REMOVED, last.kind, RELEASES[last.last], _INSTEAD.get(plain, ""))


def canonical(name: str) -> str:
    """`--no-enable_prefix_caching` as `enable-prefix-caching`, but `no-x` only if x is a flag."""
    plain = name.lstrip("-").replace("_", "-")
    positive = plain.removeprefix("no-")
    return positive if plain not in _SPANS and positive in _SPANS else plain


def renamed(name: str) -> str:
    """The real name of a flag that is often called by another."""
    return _RENAMED.get(name, name)


def known(version: Version) -> list[str]:
    """Every flag of a version."""
    place = _release_of(version)
    return [
        name
        for name, spans in _SPANS.items()
        if any(span.first <= place <= span.last for span in spans)
    ]


def release_for(version: Version) -> str:
    """The release whose flags stand for a version's."""
    return RELEASES[_release_of(version)]


def _release_of(version: Version) -> int:
    older = [place for place, one in enumerate(_VERSIONS) if one <= version]
    return older[-1] if older else 0


def _parsed() -> Iterator[tuple[str, _Span]]:
    for line in TABLE.replace("\n  ", " ").splitlines():
        head, _, names = line.partition(":")
        releases, kind = head.split()
        first, _, last = releases.partition("..")
        span = _Span(RELEASES.index(first), RELEASES.index(last or RELEASES[-1]), Kind(kind))
        yield from ((name, span) for name in names.split())


def _spans() -> dict[str, tuple[_Span, ...]]:
    found: dict[str, list[_Span]] = {}
    for name, span in _parsed():
        found.setdefault(name, []).append(span)
    return {
        name: tuple(sorted(spans, key=lambda span: span.first))
        for name, spans in sorted(found.items())
    }


_VERSIONS = tuple(map(Version.parse, RELEASES))
_SPANS = _spans()
