"""A fitted machine as a file: what it was fitted to, and how far off its predictions were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.errors import GatewayError
from gateway.planning.fit import Prediction, fit, held_out
from gateway.planning.replay import LONGEST, Machine
from gateway.planning.traffic import Traffic
from gateway.settings.files import read_file

FORMAT = "ttft-gateway-calibration"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Attributes:
    sources: names of the files it was fitted to.
    chunks: the chunk sizes in them.
    requests: how many were measured.
    held_out: each chunk size predicted from the others; empty where there was one only.
    """

    machine: Machine
    sources: tuple[str, ...]
    chunks: Annotated[tuple[int, ...], Meta(min_length=1)]
    requests: int
    held_out: tuple[Prediction, ...]

    def error(self, figure: str) -> float | None:
        """The largest relative error of its predictions; None where nothing was held out."""
        return max((abs(one.error) for one in self.held_out if one.figure == figure), default=None)

    def margin(self, figure: str, percent: int, chunk: int) -> float | None:
        """How far from a prediction the truth may be, as a part of what is predicted.

        That is not the relative error, which is a part of the truth: where 100 ms was predicted
        of what took 200 ms, the error is 50 %, and the truth twice the prediction.

        Returns:
            The largest that was seen, at this chunk size if it was held out, and otherwise at
            all of them; None where nothing was held out.
        """
        alike = [one for one in self.held_out if (one.figure, one.percent) == (figure, percent)]
        same = [one for one in alike if one.chunk == chunk]
        return max((abs(one.measured / one.predicted - 1) for one in same or alike), default=None)


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


def calibrate(
    traffic: Sequence[Traffic], sources: Sequence[str], *, block_size: int, max_num_seqs: int
) -> Calibration:
    """Fit all of `traffic`, and each chunk size from the others.

    Raises:
        GatewayError: as `fit`.
    """
    return Calibration(
        machine=fit(traffic, block_size=block_size, max_num_seqs=max_num_seqs),
        sources=tuple(sources),
        chunks=tuple(sorted({one.chunk for one in traffic})),
        requests=sum(request.ttft is not None for one in traffic for request in one.requests),
        held_out=tuple(held_out(traffic, block_size=block_size, max_num_seqs=max_num_seqs)),
    )


def encode(calibration: Calibration) -> bytes:
    """The file's content."""
    body = {"format": FORMAT, "version": VERSION} | msgspec.to_builtins(calibration)
    return msgspec.json.format(msgspec.json.encode(body), indent=1) + b"\n"


def read(path: Path) -> Calibration:
    """Raises:
    GatewayError: it is no calibration, one of another version, or none of an engine.
    OSError: it cannot be read.
    """
    text = read_file(path)
    try:
        head = msgspec.json.decode(text, type=_Head)
        if head.format != FORMAT:
            raise GatewayError(
                f"{path.name} is no calibration: write one with `gateway sim --fit RESULTS "
                f"--json {path.name}`."
            )
        if head.version != VERSION:
            raise GatewayError(
                f"{path.name} has version {head.version} of the calibration, and this gateway "
                f"reads version {VERSION}: fit anew."
            )
        found = msgspec.json.decode(text, type=Calibration)
    except (msgspec.DecodeError, RecursionError) as error:
        raise GatewayError(f"{path.name} is no calibration: {error}.") from None
    _check(found, path)
    return found


def _check(found: Calibration, path: Path) -> None:
    """What a fit never writes, and somebody's editor may have."""
    latency = found.machine.latency
    parameters = (latency.base, latency.per_token, latency.per_pair)
    if not all(0 <= one <= LONGEST for one in parameters) or not any(parameters[:2]):
        raise GatewayError(
            f"{path.name} is no calibration of an engine: a step would take {latency.base:g} s, "
            f"{latency.per_token:g} s a token and {latency.per_pair:g} s a pair. Fit anew."
        )
    if any(one.measured <= 0 or one.predicted <= 0 for one in found.held_out):
        raise GatewayError(f"{path.name} was held against times of 0 s or less: fit anew.")
