"""`gateway init`: a commented configuration to start from."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from string import Template
from tempfile import mkstemp
from typing import Annotated

import typer

TEMPLATE = Template("""\
# Configuration of the TTFT Gateway.
#   gateway check FILE       says in plain words what it means
#   gateway serve -c FILE    runs it; a change of this file is taken over while it runs
# In any text, $${NAME} stands for an environment variable and $${file:/path} for a file's content.

server:
  host: 127.0.0.1   # this machine only; 0.0.0.0 for every network it is in
  port: 8080        # base URL: http://127.0.0.1:8080/v1, for Anthropic clients without /v1

models:
  llama-3-70b:                    # the model id clients use
    # What the engines call the model: --served-model-name, or else the name given to vllm serve.
    upstream_model: llama-3-70b
    aliases: []                   # other ids clients may use for it; "claude-*" stands for many
    experiment:
      name: chunk-size            # a new name deals every conversation to an arm anew
      slo_ttft_ms: 500            # the time to first token to keep, in milliseconds
    # An arm is one engine configuration. Traffic is split by weight; a conversation stays with its
    # arm, so that it finds its prefix cache. Equal weights on equal machines compare fairly.
    arms:
      chunk-512:  {weight: 50, role: control, backends: [vllm-a]}   # control: what you run today
      chunk-2048: {weight: 50, role: canary, backends: [vllm-b]}    # canary: what you want to try

backends:                         # one for each server process; each belongs to one arm
  # vllm serve MODEL --served-model-name llama-3-70b --port 8001 \\
  #   --max-num-batched-tokens 512 --max-num-seqs 128
  vllm-a:
    url: http://127.0.0.1:8001    # without /v1
    # api_key: $${VLLM_KEY}        # what the engine's --api-key asks for; clients never see it
    engine: {max_num_batched_tokens: 512, max_num_seqs: 128, prefix_caching: true}
    max_concurrency: 256          # requests sent to it at a time; more wait in the gateway
  # vllm serve MODEL --served-model-name llama-3-70b --port 8002 \\
  #   --max-num-batched-tokens 2048 --max-num-seqs 128
  vllm-b:
    url: http://127.0.0.1:8002
    engine: {max_num_batched_tokens: 2048, max_num_seqs: 128, prefix_caching: true}
    max_concurrency: 256

keys:                             # one for each user or application; only hashes are ever logged
  - name: dev                     # tells keys apart in logs and metrics
    key: "$key"
    models: ["*"]                 # the models it may use; "*" is all
    max_concurrency: 32           # requests at a time; leave a limit out for none
    # requests_per_minute: 600
    # tokens_per_minute: 200000   # prompt and answer, by what the engine counts
    arms: any                     # may ask for llama-3-70b@chunk-2048: any, none, or a list

admin:                            # for gateway canary, backends, why and reload: GATEWAY_ADMIN_KEY
  key: "$admin_key"

metrics:
  key: null                       # /metrics answers this machine only; with a key, whoever has it

database_url: sqlite:///gateway.db   # weights set while running, and their history
""")


def init(
    path: Annotated[Path, typer.Argument(help="The file to write.", dir_okay=False)] = Path(
        "gateway.yaml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a commented configuration for two vLLM servers, with fresh keys.

    The file holds secrets, so only its owner may read it.

    Example: gateway init gateway.yaml
    """
    text = configuration(new_key(), new_key())
    try:
        _write(path, text, replace=force)
    except FileExistsError:
        raise typer.BadParameter(
            f"{path} exists already; --force replaces it, keys and all", param_hint="PATH"
        ) from None
    typer.echo(_what_next(path))


def configuration(key: str, admin_key: str) -> str:
    """The text of a configuration with these keys in it."""
    return TEMPLATE.substitute(key=key, admin_key=admin_key)


def new_key() -> str:
    """A key of 256 random bits, in the form clients expect of one."""
    return f"sk-{secrets.token_urlsafe(32)}"


def _write(path: Path, text: str, *, replace: bool) -> None:
    """Write a file only its owner may read. A file that is replaced is so at once, or not at all.

    Raises:
        FileExistsError: there is one, and `replace` is off.
    """
    if replace:
        descriptor, temporary = mkstemp(prefix=f".{path.name}.", dir=path.parent)
    else:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    if replace:
        os.replace(temporary, path)


def _what_next(path: Path) -> str:
    return f"""\
Wrote {path}, with a fresh key under keys and another under admin.

1. Start two vLLM servers on ports 8001 and 8002 (their commands stand in the
   file), and put what they call the model under upstream_model. Without a GPU:
     gateway sim --port 8001 --model llama-3-70b --max-num-batched-tokens 512
     gateway sim --port 8002 --model llama-3-70b --max-num-batched-tokens 2048
2. See what the configuration means:  gateway check {path}
3. Run it:                            gateway serve -c {path}

Clients then need three things:
  base URL  http://127.0.0.1:8080/v1 (OpenAI), http://127.0.0.1:8080 (Anthropic)
  key       the one under keys in {path}
  model     llama-3-70b

gateway connect CLIENT says what to set, or sets it; gateway doctor finds out
why a client fails; gateway canary and gateway backends steer it. Where a
gateway.yaml stands they take its keys."""
