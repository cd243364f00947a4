"""`gateway sim`: a simulated vLLM server, and its step times fitted to a real one's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import uvicorn

from gateway.cli.address import url_of
from gateway.cli.fit import calibrate
from gateway.cli.listening import listen
from gateway.planning.calibration import read
from gateway.simulator.config import EngineConfig
from gateway.simulator.presets import PRESETS
from gateway.simulator.server import create_app

DEFAULTS = EngineConfig()


# The two longest options are told in the docstring, and the port's range is checked below: in the
# table of options they would cut off names at 80 columns.
def sim(
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8001,
    host: Annotated[str, typer.Option()] = "127.0.0.1",
    model: Annotated[str, typer.Option(help="The model id it serves.")] = DEFAULTS.model,
    preset: Annotated[
        str, typer.Option(help=f"The machine it simulates: {', '.join(PRESETS)}.")
    ] = DEFAULTS.preset,
    max_num_batched_tokens: Annotated[
        int, typer.Option(help="Chunk size: tokens computed in a step, at most.")
    ] = DEFAULTS.max_num_batched_tokens,
    max_num_seqs: Annotated[
        int | None,
        typer.Option(help="Sequences that run at once, at most; 128 or the chunk size by default."),
    ] = None,
    block_size: Annotated[
        int | None, typer.Option(help="Tokens in a KV cache block; the preset's by default.")
    ] = None,
    num_gpu_blocks: Annotated[
        int | None, typer.Option(help="KV cache blocks; as the preset's memory by default.")
    ] = None,
    max_model_len: Annotated[
        int | None, typer.Option(help="Tokens of prompt and answer; the preset's by default.")
    ] = None,
    prefix_caching: Annotated[
        bool,
        typer.Option("--enable-prefix-caching/--no-enable-prefix-caching", hidden=True),
    ] = DEFAULTS.prefix_caching,
    long_prefill_token_threshold: Annotated[
        int, typer.Option(hidden=True)
    ] = DEFAULTS.long_prefill_token_threshold,
    speed: Annotated[float, typer.Option(help="Simulated seconds in a real one.")] = DEFAULTS.speed,
    answer_tokens: Annotated[
        int, typer.Option(help="Tokens after which an answer ends by itself.")
    ] = DEFAULTS.answer_tokens,
    api_key: Annotated[
        str | None, typer.Option(envvar="VLLM_API_KEY", help="Asked for as a Bearer token.")
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="Simulate the engine that --fit wrote of, not the preset's.")
    ] = None,
    fit: Annotated[
        list[str] | None,
        typer.Option(help="Run nothing: fit step times to a result of gateway bench."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write what was fitted to this file.")
    ] = None,
) -> None:
    """Run a simulated vLLM server: vLLM's scheduler and HTTP surface without a model or a GPU.

    Its times follow a preset, its answers are always the same text. They say nothing about any
    real machine.

    As in vLLM, --no-enable-prefix-caching turns the prefix cache off, and
    --long-prefill-token-threshold is the longest chunk of one prompt (0: no limit).

    --fit reads what `gateway bench --json` wrote, once for each file, and says how well it
    predicts each chunk size from the others. Where a file does not tell its chunk size, name it:
    --fit 512=FILE; likewise --block-size and --max-num-seqs, those of the measured engines.

    Example: gateway sim --port 8001 --model llama-3-70b --max-num-batched-tokens 512

    Example: gateway sim --fit 64=a.json --fit 512=b.json --json h100.json

    Example: gateway sim --calibration h100.json --max-num-batched-tokens 256
    """
    if fit is not None:
        if calibration is not None:
            raise typer.BadParameter("cannot go with --fit", param_hint="--calibration")
        calibrate(
            fit,
            block_size=block_size,
            max_num_seqs=max_num_seqs,
            json_file=json_file,
        )
        return
    if json_file is not None:
        raise typer.BadParameter("is for --fit", param_hint="--json")
    if not 0 <= port <= 65535:
        raise typer.BadParameter(f"{port} is not from 0 to 65535", param_hint="--port")
    fitted = None if calibration is None else read(calibration).machine
    if block_size is None and fitted is not None:
        block_size = fitted.block_size
    if max_num_seqs is None:
        most = DEFAULTS.max_num_seqs if fitted is None else fitted.max_num_seqs
        max_num_seqs = min(most, max_num_batched_tokens)
    try:
        config = EngineConfig(
            model=model,
            preset=preset,
            latency=None if fitted is None else fitted.latency,
            max_num_batched_tokens=max_num_batched_tokens,
            max_num_seqs=max_num_seqs,
            block_size=block_size,
            num_gpu_blocks=num_gpu_blocks,
            max_model_len=max_model_len,
            prefix_caching=prefix_caching,
            long_prefill_token_threshold=long_prefill_token_threshold,
            speed=speed,
            api_key=api_key,
            answer_tokens=answer_tokens,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    listener = listen(host, port, "--host", "Choose another with --port.")
    machine = preset if calibration is None else calibration.name
    typer.echo(_start_line(config, machine, url_of(*listener.getsockname()[:2])))
    server = uvicorn.Config(
        create_app(config),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(server).run(sockets=[listener])


def _start_line(config: EngineConfig, machine: str, url: str) -> str:
    return (
        f"simulated vLLM on {url}: model {config.model}, {machine}, "
        f"max_num_batched_tokens {config.max_num_batched_tokens}, max_num_seqs "
        f"{config.max_num_seqs}, block_size {config.tokens_per_block}, {config.blocks} blocks, "
        f"speed {config.speed:g}"
    )
