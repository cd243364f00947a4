"""The command as a shell runs it: its page, its answer for programs, its status."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from gateway.cli.asking import Asker, Kind, Unanswered
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.command import _Page
from gateway.cli.doctor.examination import STEPS, TOPICS, examine
from gateway.cli.doctor.finding import Finding, Severity
from tests.cli.conftest import Result, Run
from tests.cli.doctor.cases import HANGING, case, found, gateway_yaml, other, reply
from tests.support.ports import nobody
from tests.support.running import ADMIN_KEY, KEY
from tests.support.simulated import Simulated

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(autouse=True)
def clean(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's own settings counts."""
    for name in os.environ:
        if name.startswith(("GATEWAY_", "ANTHROPIC_", "OPENAI_", "CODEX_", "CLAUDE_")) or (
            name.lower().endswith("_proxy")
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "project")


async def doctor(run: Run, *arguments: str) -> Result:
    return await asyncio.to_thread(run, "doctor", *arguments)


async def test_everything_is_fine(
    run: Run, both: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_URL", both.it.url)
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    result = await doctor(run, "--only", "reachability", "--only", "credentials")
    assert (result.status, result.err) == (0, "")
    assert result.out == (
        f"Examining {both.it.url}.\n"
        "\n"
        "Reachability\n"
        f"  ok      {both.it.url} answers.\n"
        "\n"
        "Key and models\n"
        "  ok      The key sk-t… (30 characters) of --key or GATEWAY_KEY is known; it may use m.\n"
        "\n"
        "Nothing is wrong.\n"
    )


async def test_the_whole_list_for_programs(run: Run, both: Simulated) -> None:
    arguments = ("--url", both.it.url, "--key", KEY, "--admin-key", ADMIN_KEY, "--json")
    result = await doctor(run, *arguments)
    answer = json.loads(result.out)
    assert (result.status, result.err) == (0, "")
    assert (answer["url"], answer["errors"]) == (both.it.url, 0)
    assert list(dict.fromkeys(f["topic"] for f in answer["findings"])) == list(TOPICS)
    assert all(f.keys() == {"topic", "severity", "seen", "why", "fix"} for f in answer["findings"])
    assert answer["warnings"] == sum(f["severity"] == "warning" for f in answer["findings"])
    assert KEY not in result.out and ADMIN_KEY not in result.out


async def test_the_documented_shape_is_the_one_there_is() -> None:
    """docs/troubleshooting.md promises these members and topics to programs."""
    page = Path(__file__).parents[3].joinpath("docs/troubleshooting.md").read_text()
    rows = page.partition("## For programs")[2].partition("## ")[0].splitlines()
    cells = {row.split("|")[1]: row for row in rows if row.startswith("| `")}
    members = re.findall(r"`([\w\[\].]+)`", " ".join(cells))
    inner = [f"findings[].{one.name}" for one in fields(Finding)]
    assert members == ["url", "errors", "warnings", "findings", *inner]
    what = cells[" `findings[].topic` "].partition("`--only`")[2]
    topics = re.findall(r"`([\w-]+)`", what)
    assert topics == list(TOPICS)
    listed = re.findall(r"\| `([\w-]+)` \|$", page, re.MULTILINE)
    assert set(listed) - {"--only"} == set(TOPICS), "every topic stands in the list of symptoms"


async def test_an_error_is_status_1(run: Run) -> None:
    with nobody() as url:
        page = await doctor(run, "--url", url)
        answer = await doctor(run, "--url", url, "--json")
    assert page.status == answer.status == 1
    assert "  error   Connection refused" in page.out
    assert "          Fix: gateway serve -c gateway.yaml\n" in page.out
    assert page.out.endswith("1 error, 5 warnings.\n")
    assert json.loads(answer.out)["errors"] == 1


async def test_one_bad_key_is_one_error(run: Run, both: Simulated) -> None:
    """What follows from it is told as what it is."""
    for key in (KEY[:8], KEY[:-1]):
        words = ("--url", both.it.url, "--key", key, "--admin-key", ADMIN_KEY, "--json")
        answer = json.loads((await doctor(run, *words)).out)
        errors = [f for f in answer["findings"] if f["severity"] == "error"]
        assert [f["topic"] for f in errors] == ["credentials"]
        reply = next(f for f in answer["findings"] if f["topic"] == "reply")
        assert reply["severity"] == "warning" and "the key was refused" in reply["seen"]
        alone = await doctor(run, *words[:-1], "--only", "reply")
        assert alone.status == 1, "alone it is the error"


async def test_how_long_to_watch_is_said_in_seconds(run: Run) -> None:
    for wrong in ("-1", "601", "soon"):
        assert (await doctor(run, "--watch", wrong)).status == 2


async def test_with_nothing_given_it_says_what_it_examines(run: Run) -> None:
    result = await doctor(run, "--only", "claude-code")
    assert result.status == 0
    assert result.out.startswith(
        "Examining http://127.0.0.1:8080. Another address goes in GATEWAY_URL or --url.\n"
    )


async def test_the_files_of_the_user_and_the_configuration_are_read(
    run: Run, home: Path, tmp_path: Path
) -> None:
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text("model = ")
    file = gateway_yaml(tmp_path, "http://127.0.0.1:1")
    result = await doctor(run, "-c", str(file), "--only", "codex", "--only", "configuration")
    assert result.status == 1
    assert f"{file} has no faults." in result.out
    assert "config.toml is no TOML" in result.out


async def test_the_address_of_the_file(run: Run, home: Path, tmp_path: Path) -> None:
    named = gateway_yaml(tmp_path, "http://127.0.0.1:1", server={"port": 8123})
    usual = gateway_yaml(home / "project", "http://127.0.0.1:1", server={"port": 8124})
    only = ("--only", "configuration")
    assert (await doctor(run, *only)).out.startswith("Examining http://127.0.0.1:8124. Another")
    of_named = await doctor(run, *only, "-c", str(named))
    assert of_named.out.startswith("Examining http://127.0.0.1:8123. Another")
    given = await doctor(run, *only, "-c", str(named), "--url", "http://127.0.0.1:8125")
    assert given.out.startswith("Examining http://127.0.0.1:8125.\n")
    named.write_text("models: 1\n")
    faulty = await doctor(run, *only, "-c", str(named))
    assert faulty.out.startswith("Examining http://127.0.0.1:8080. Another")
    assert f"{named} has faults" in faulty.out
    usual.write_text(usual.read_text().replace('"port": 8124', '"host": "192.0.2.1"'))
    assert (await doctor(run, *only)).out.startswith("Examining http://127.0.0.1:8080. Another")


async def test_gateway_yaml_where_it_runs_counts_unless_another_file_is_named(
    run: Run, home: Path, tmp_path: Path
) -> None:
    named = gateway_yaml(tmp_path, "http://127.0.0.1:1")
    only = ("--only", "configuration")
    before = await doctor(run, *only)
    (home / "project/gateway.yaml").write_text("models: 1\n")
    usual = await doctor(run, *only)
    other_file = await doctor(run, *only, "-c", str(named))
    assert (before.status, usual.status, other_file.status) == (0, 1, 0)
    assert "No file was named with -c" in before.out
    assert "gateway.yaml" in usual.out and "gateway check gateway.yaml" in usual.out
    assert f"{named} has no faults." in other_file.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--url", "127.0.0.1:8080"), "HOST:PORT"),
        (("--url", "http://u:secret-of-mine@"), "HOST:PORT"),
        (("--only", "weather"), "'weather' is none of"),
    ],
)
async def test_wrong_usage(run: Run, arguments: tuple[str, ...], complaint: str) -> None:
    result = await doctor(run, *arguments)
    assert result.status == 2 and complaint in " ".join(result.err.split())
    assert "secret-of-mine" not in result.err


async def test_on_a_terminal(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    with nobody() as url:
        counts = _Page(url_given=True).show(case(url, home), ["reachability"])
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", capsys.readouterr().out).splitlines()
    assert counts == {Severity.ERROR: 1}
    assert max(len(line) for line in lines) <= 60
    assert [line.rstrip() for line in lines[:4]] == [
        f"Examining {url}.",
        "",
        "Reachability",
        f"  error   Connection refused: nothing listens on port {url.rpartition(':')[2]}",
    ]
    assert lines[4].startswith("          of 127.0.0.1.")


async def test_a_check_that_fails_itself_stops_no_other(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Case) -> None:
        raise RuntimeError(f"no {KEY}")

    monkeypatch.setattr(Case, "admin_key", property(broken))
    with nobody() as url:
        findings = await found(case(url, home), "ttft", "codex", "claude-code")
    assert [f.topic for f in findings] == ["codex", "claude-code", "ttft"]
    assert findings[-1].severity is Severity.WARNING
    assert findings[-1].seen == "This check failed itself: RuntimeError: no sk-t… (30 characters)"


async def test_a_server_that_drips_holds_nobody_up() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
            for _ in range(200):
                writer.write(b".")
                await writer.drain()
                await asyncio.sleep(0.02)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        async with asyncio.timeout(3):
            dripped = await asyncio.to_thread(Asker(0.3), url)
    finally:
        server.close()
    assert isinstance(dripped, Unanswered) and dripped.kind is Kind.SILENT


async def test_every_topic_has_its_time(home: Path) -> None:
    """A server that never answers anything: the whole list ends all the same."""
    async with other(lambda target, head: HANGING if target != "/" else reply("{}")) as server:
        the = case(server.url, home, ask=Asker(0.2), patience=0.2, given_admin_key="")
        async with asyncio.timeout(10):
            results = await asyncio.to_thread(
                lambda: {step.title: list(findings) for step, findings in examine(the)}
            )
    assert list(results) == [step.title for step in STEPS]
    assert all(results.values())
