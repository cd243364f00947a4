"""The proxies under comparison: how each is set up and started.

Every proxy gets the same two upstreams (two stubs) and is asked to share requests between them,
by round robin where it offers a choice, which is the cheapest policy of each.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import gateway_config, peers
from benchmarks.site import Site
from benchmarks.workloads import MODEL


@dataclass(frozen=True, slots=True)
class Contender:
    """One proxy.

    Attributes:
        command: writes the files it needs into the site's folder and returns what to run.
        obstacle: why it cannot run on this machine (installing it first), or None.
        ready: the path that answers 200 once it serves.
        model: what its clients call the stub's model.
        max_connections: the most requests to have under way; a slow proxy would otherwise
            finish none within a round.
        process_of: another contender whose process this one shares.
    """

    name: str
    command: Callable[[Site], list[str]]
    obstacle: Callable[[], str | None]
    ready: str = "/health"
    start_timeout: float = 30.0
    env: dict[str, str] = field(default_factory=dict)
    model: str = MODEL
    max_connections: int = 10_000
    process_of: str | None = None


def _nginx_command(site: Site) -> list[str]:
    first, second = site.upstreams
    temporary = "\n".join(
        f"  {kind}_temp_path {site.folder / kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = site.folder / "nginx.conf"
    config.write_text(f"""\
worker_processes 1;
daemon off;
pid {site.folder / "nginx.pid"};
error_log {site.folder / "error.log"};
events {{ worker_connections 8192; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  client_max_body_size 32m;
  client_body_buffer_size 1m;
{temporary}
  upstream stubs {{
    server 127.0.0.1:{first};
    server 127.0.0.1:{second};
    keepalive 512;
    keepalive_requests 100000000;
  }}
  server {{
    listen 127.0.0.1:{site.port} backlog=4096;
    location / {{
      proxy_pass http://stubs;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 1h;
    }}
  }}
}}
""")
    return [_nginx_binary(), "-c", str(config), "-p", str(site.folder)]


def _nginx_binary() -> str:
    # Debian keeps it in /usr/sbin, which is not on every user's path.
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin") or ""


def _nginx_obstacle() -> str | None:
    return None if _nginx_binary() else "nginx is not installed (apt: nginx-light)"


def _gateway_command(site: Site) -> list[str]:
    return _serve(site, gateway_config.write(site))


def _wide_gateway_command(site: Site) -> list[str]:
    return _serve(site, gateway_config.write_wide(site))


def _serve(site: Site, config: Path) -> list[str]:
    command = [sys.executable, "-m", "gateway", "serve", "-c", str(config)]
    return [*command, "--access-log", str(site.folder / "access.jsonl")]


def _peer(name: str, peer: peers.Peer, max_connections: int = 10_000) -> Contender:
    return Contender(
        name=name,
        command=peer.command,
        obstacle=peer.obstacle,
        ready=peer.ready,
        start_timeout=120.0,
        env=peer.env,
        max_connections=max_connections,
    )


GATEWAY = Contender("gateway", _gateway_command, lambda: None, ready="/ready")
RENAMED = Contender(
    "gateway-renamed",
    _gateway_command,
    lambda: None,
    ready="/ready",
    model=gateway_config.RENAMED_MODEL,
    process_of="gateway",
)
WIDE_GATEWAY = Contender(
    "gateway",
    _wide_gateway_command,
    lambda: None,
    ready="/ready",
    model=gateway_config.wide_models()[0],
)
"""With many models; for `scrape.py` only."""
NGINX = Contender("nginx", _nginx_command, _nginx_obstacle)

ALL: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        NGINX,
        GATEWAY,
        RENAMED,
        _peer("vllm-router", peers.VLLM_ROUTER),
        _peer("sglang-router", peers.SGLANG_ROUTER),
        _peer("smg", peers.SMG),
        _peer("litellm", peers.LITELLM, max_connections=4),
    )
}


def chosen(names: str) -> list[Contender]:
    """The contenders of a comma-separated list, in the order in which they are shown.

    Raises:
        SystemExit: a name is unknown.
    """
    wanted = [name.strip() for name in names.split(",")]
    if unknown := [name for name in wanted if name not in ALL]:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are: {', '.join(ALL)}")
    return [contender for contender in ALL.values() if contender.name in wanted]
