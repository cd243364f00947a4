"""Versions of vLLM, and which of its two engines a version runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_FORM = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?((?:\.post|\.dev|rc|\+)[\w.+]*)?")


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """A release of vLLM; without a patch number it is the first of its line (0.32 is 0.32.0).

    `text` is how it was written, without a leading v. It does not count in comparisons: 0.6.3 and
    0.6.3.post1 are the same here.
    """

    major: int
    minor: int
    patch: int
    text: str = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> Version:
        """
        Raises:
            ValueError: it is no version of vLLM, or one older than 0.6.
        """
        form = _FORM.fullmatch(text)
        if form is None:
            raise ValueError("must be a version of vLLM, such as 0.32 or 0.6.3.post1")
        major, minor, patch, _ = form.groups()
        found = cls(int(major), int(minor), int(patch or 0), text.removeprefix("v"))
        if (found.major, found.minor) < (0, 6):
            raise ValueError("is older than 0.6, the oldest release that is known here")
        return found

    def covers(self, other: Version) -> bool:
        """Whether who states this version may run the other: 0.32 covers 0.32.1."""
        if self.text.count(".") == 1:
            return (self.major, self.minor) == (other.major, other.minor)
        return self == other

    @property
    def tag(self) -> str:
        """The tag of its image, `vllm/vllm-openai:TAG`."""
        return f"v{self}.0" if self.text.count(".") == 1 else f"v{self}"

    def __str__(self) -> str:
        return self.text


NEWEST = Version.parse("0.32")
"""The newest release whose flags and scheduler were read."""

_V1_DEFAULT = Version.parse("0.8")
_V0_REMOVED = Version.parse("0.11")
_V1_FIRST = Version.parse("0.7")


def runs_v1(version: Version, env: Mapping[str, str]) -> bool:
    """Whether it is the V1 engine, whose scheduler knows no alignment of chunks.

    V1 could be asked for by `VLLM_USE_V1=1` from 0.7 on, is the default since 0.8.0
    (vllm#13726) unless `VLLM_USE_V1=0` is set, and the only engine since 0.11.0 (its release
    notes). Models that V1 did not support fell back to V0 before that; this cannot be seen here.
    """
    wish = env.get("VLLM_USE_V1")
    if version >= _V0_REMOVED:
        return True
    if version >= _V1_DEFAULT:
        return wish != "0"
    return version >= _V1_FIRST and wish == "1"
