"""The commands of docker-compose.yml, run as they stand there on this machine.

No Docker engine is needed: each process is started with the arguments of its service. What a
container has for itself (a path, an address, a name in the network) is replaced, nothing else.
vLLM, Grafana and dcgm-exporter are not to be had here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.support.deployment import CONFIGURATIONS, ROOT, images, services, write_secrets
from tests.support.ports import free_port
from tests.support.processes import Process, process
from tests.support.prometheus import deployed, program

pytestmark = pytest.mark.timeout(150)

GATEWAY = [sys.executable, "-m", "gateway"]
ENGINES = {"vllm-a": "engine-a", "vllm-b": "engine-b"}
LOOPBACK = {"GATEWAY_SERVER__HOST": "127.0.0.1", "GATEWAY_SERVER__PORT": "0"}


@dataclass
class Composed:
    """What `docker compose up` starts, but for Grafana.

    Attributes:
        secrets: by name.
        ports: by service.
        healthchecks: by service, the command that has to succeed.
    """

    folder: Path
    secrets: dict[str, str]
    processes: dict[str, Process]
    ports: dict[str, int]
    healthchecks: dict[str, list[str]]


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    folder = tmp_path_factory.mktemp("composed")
    with ExitStack() as stack:
        yield _up(folder, stack)


def _up(folder: Path, stack: ExitStack) -> Composed:
    found = Composed(folder, write_secrets(folder), {}, {}, {})
    for name in ENGINES.values():
        command = _moved(services()[name]["command"], {"0.0.0.0": "127.0.0.1", "8000": "0"})
        _start(found, stack, name, [*GATEWAY, *command])
    _start(found, stack, "gateway", [*GATEWAY, *_gateway(found)], LOOPBACK)
    _start(found, stack, "console", _console(found), {"HOME": str(folder)}, _empty(folder))
    return found


def _moved(command: list[str], moves: dict[str, str]) -> list[str]:
    for old, new in moves.items():
        assert any(old in word for word in command), old
        command = [word.replace(old, new) for word in command]
    return command


def _start(
    found: Composed,
    stack: ExitStack,
    name: str,
    command: list[str],
    environment: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    log = found.folder / f"{name}.log"
    found.processes[name] = stack.enter_context(process(command, log, environment, cwd))
    found.ports[name] = found.processes[name].port()
    found.healthchecks[name] = _healthcheck(name, found.ports[name])


def _gateway(found: Composed) -> list[str]:
    """The gateway's command, with its very configuration and nothing but places replaced."""
    text = (CONFIGURATIONS / "simulated.yaml").read_text()
    for host, engine in ENGINES.items():
        text = text.replace(f"http://{host}:8000", f"http://127.0.0.1:{found.ports[engine]}")
    text = text.replace("/run/secrets", str(found.folder))
    (found.folder / "data").mkdir()
    text = text.replace("/var/lib/gateway", str(found.folder / "data"))
    (found.folder / "simulated.yaml").write_text(text)
    return _moved(services()["gateway"]["command"], {"/etc/gateway": str(found.folder)})


def _console(found: Composed) -> list[str]:
    """The console's entry point, a shell that reads the key's file, and its command."""
    service = services()["console"]
    gateway = f"http://127.0.0.1:{found.ports['gateway']}"
    shell = _moved(service["entrypoint"], {"$$": "$", "/run/secrets": str(found.folder)})
    shell = _moved(shell, {"exec gateway": f"exec {sys.executable} -m gateway"})
    places = {"http://gateway:8080": gateway, "0.0.0.0": "127.0.0.1", "8090": "0"}
    return [*shell, *_moved(service["command"], places)]


def _empty(folder: Path) -> Path:
    (folder / "working").mkdir()
    return folder / "working"


def _healthcheck(name: str, port: int) -> list[str]:
    """The command that a container engine would run beside the process."""
    service = services()[name]
    if "healthcheck" in service:
        form, *command = service["healthcheck"]["test"]
        assert form == "CMD"
    else:
        *_, stated = [words for kind, words in images() if kind == "HEALTHCHECK"]
        command = json.loads(stated.partition(" CMD ")[2])
    places = {"/opt/healthcheck.py": str(ROOT / "deploy" / "healthcheck.py")}
    *command, address = _moved(command, {"python3": sys.executable, **places})
    listening = {"engine-a": 8000, "engine-b": 8000, "gateway": 8080, "console": 8090}[name]
    assert address.startswith(f"http://127.0.0.1:{listening}/")
    return [*command, address.replace(str(listening), str(port))]


def _well(command: list[str]) -> bool:
    # A proxy of the environment must not be asked about this machine.
    environment = {"PATH": "/usr/bin:/bin", "http_proxy": "http://127.0.0.1:9"}
    return subprocess.run(command, env=environment, capture_output=True, timeout=10).returncode == 0


def test_every_service_is_well(composed: Composed) -> None:
    assert {name: _well(check) for name, check in composed.healthchecks.items()} == dict.fromkeys(
        ("engine-a", "engine-b", "gateway", "console"), True
    )


def test_a_client_with_the_secret_key_is_answered_by_both_arms(composed: Composed) -> None:
    served = set()
    with _client(composed, "gateway_key") as client:
        for arm in ("chunk-512", "chunk-64"):
            model = f"llama-3-70b@{arm}"
            body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
            answer = client.post("/v1/chat/completions", json={**body, "max_tokens": 2})
            assert answer.status_code == 200, answer.text
            served.add((answer.headers["x-gateway-arm"], answer.headers["x-gateway-backend"]))
    assert served == {("chunk-512", "vllm-a"), ("chunk-64", "vllm-b")}


@pytest.mark.parametrize(
    ("secret", "path", "opens"),
    [
        ("metrics_key", "/metrics", True),
        ("gateway_key", "/metrics", False),
        ("admin_key", "/admin/v1/models", True),
        ("gateway_key", "/admin/v1/models", False),
    ],
)
def test_each_secret_opens_what_it_is_for(
    composed: Composed, secret: str, path: str, opens: bool
) -> None:
    with _client(composed, secret) as client:
        status = client.get(path).status_code
    assert (status == 200) is opens
    assert opens or status in {401, 403}


def _client(composed: Composed, secret: str) -> httpx.Client:
    return httpx.Client(
        base_url=f"http://127.0.0.1:{composed.ports['gateway']}",
        headers={"authorization": f"Bearer {composed.secrets[secret]}"},
        trust_env=False,
    )


def test_the_configuration_has_no_fault_and_no_remark(composed: Composed) -> None:
    arguments = ["check", str(composed.folder / "simulated.yaml"), "--json"]
    done = subprocess.run([*GATEWAY, *arguments], capture_output=True, text=True, timeout=30)
    assert json.loads(done.stdout)["ok"] is True, done.stdout


def test_nothing_is_written_but_to_volumes(composed: Composed) -> None:
    """What would fail in a container, whose root nobody can write to."""
    assert list((composed.folder / "working").iterdir()) == []
    names = {path.name for path in (composed.folder / "data").iterdir()}
    assert names <= {"gateway.db", "gateway.db-wal", "gateway.db-shm"}


@pytest.mark.service
def test_prometheus_runs_with_its_command_and_its_files(tmp_path: Path) -> None:
    home = deployed(tmp_path)
    service = services()["prometheus"]
    moves = {"/etc/prometheus": str(home), "=/prometheus": f"={tmp_path / 'data'}"}
    port = free_port()
    address = f"--web.listen-address=127.0.0.1:{port}"
    command = [program("prometheus"), *_moved(service["command"], moves), address]
    if shutil.which("wget") is None:
        pytest.skip("wget is missing: apt-get install wget")
    form, *check = service["healthcheck"]["test"]
    assert form == "CMD"
    check = _moved(check, {"9090": str(port)})
    with process(command, tmp_path / "log") as running:
        _eventually(lambda: _plainly(check), running)
        # Without a target, dcgm-exporter is no job yet.
        _eventually(lambda: _jobs(port) == {"ttft-gateway", "vllm"}, running)
    assert not _plainly(check)


def _jobs(port: int) -> set[str]:
    answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/scrape_pools", trust_env=False)
    return set(answer.json()["data"]["scrapePools"])


def _plainly(command: list[str]) -> bool:
    return subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, timeout=10).returncode == 0


def _eventually(condition: Callable[[], bool], running: Process) -> None:
    for _ in range(100):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(running.said())


def test_a_service_that_is_down_is_not_well(composed: Composed) -> None:
    """The last test: it ends what the others use, in the order in which compose would."""
    for name in ("console", "gateway", "engine-b", "engine-a"):
        assert _well(composed.healthchecks[name]), name
        composed.processes[name].stop()
        assert not _well(composed.healthchecks[name]), name
