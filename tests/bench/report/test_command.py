"""The report as a user gets it: with a run, and from what a run wrote."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

from gateway.bench.results import Sources, encode, read
from tests.bench.report.made import result_of, two_arms
from tests.simulator.running import serving
from tests.support.gateway_process import command


async def test_a_run_writes_its_report_and_its_file_makes_the_same_again(tmp_path: Path) -> None:
    file, page, again = (tmp_path / name for name in ("out.json", "out.html", "again.html"))
    async with serving(max_num_batched_tokens=512, max_num_seqs=64, speed=20) as engine:
        asked = ("--url", engine.url, "--engine", f"sim={engine.url}", "--requests", "12")
        rest = ("--rounds", "1", "--json", str(file), "--html", str(page))
        status, said = await command("bench", *asked, *rest)
        assert status == 0, said
    text = page.read_text()
    assert "<strong>Simulated.</strong>" in text
    assert 'id="plot-kv-usage"' in text and 'id="plot-gpu-memory"' not in text
    status, said = await command("bench", "--from", str(file), "--html", str(again))
    assert status == 0, said
    assert "TTFT P50" in said, "the tables are printed again, too"
    assert again.read_text() == text
    assert re.findall(r"<td>12</td>", text), "the requests"


async def test_the_command_of_a_report_does_the_run_again(tmp_path: Path) -> None:
    file, page, again = (tmp_path / name for name in ("out.json", "out.html", "again.json"))
    async with serving(max_num_batched_tokens=512, max_num_seqs=64, speed=20) as engine:
        asked = ("--url", engine.url, "--key", "sk-secret", "--engine", f"sim={engine.url}")
        load = ("--workload", "sessions", "--turns", "2", "--think", "0.01", "--no-warm-up")
        sizes = ("--requests", "6", "--rounds", "2", "--prefix-tokens", "64", "--timeout", "20.5")
        rest = ("--request-rate", "200", "--burstiness", "0.7", "--threshold", "memory=off")
        written = ("--json", str(file), "--html", str(page))
        status, said = await command("bench", *asked, *load, *sizes, *rest, *written)
        assert status == 0, said
        assert "sk-secret" not in file.read_text() + page.read_text() + said
        (shown,) = re.findall("<pre[^>]*>(.*?)</pre>", page.read_text(), re.DOTALL)
        _, *words = shlex.split(html.unescape(shown).replace("\\\n", " "))
        status, said = await command(*words, "--json", str(again))
        assert status == 0, said
    first, second = read(file), read(again)
    assert first.load.turns == 2 and first.load.prefix_tokens == 64
    assert second.load == first.load
    assert second.sources == first.sources != Sources()
    assert [(one.name, one.limit) for one in second.thresholds] == [
        (one.name, one.limit) for one in first.thresholds
    ]
    texts = [
        [(sample.session, sample.turn, sample.prompt_characters) for sample in one.samples]
        for found in (first, second)
        for one in found.rounds
    ]
    assert list(map(sorted, texts[:2])) == list(map(sorted, texts[2:]))


async def test_a_saved_run_needs_no_gateway(tmp_path: Path) -> None:
    file, page = tmp_path / "out.json", tmp_path / "out.html"
    file.write_bytes(encode(two_arms()))
    env = {"GATEWAY_URL": "http://127.0.0.1:9"}
    status, said = await command("bench", "--from", str(file), "--html", str(page), env=env)
    assert status == 0, said
    assert "chunk-64 answers later than chunk-512" in page.read_text()


async def test_a_file_that_is_no_result_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    file, page = tmp_path / "out.json", tmp_path / "out.html"
    file.write_text("{}")
    status, said = await command("bench", "--from", str(file), "--html", str(page))
    assert (status, page.exists()) == (1, False)
    assert "out.json is no result of gateway bench" in said and "Traceback" not in said
    status, said = await command("bench", "--from", str(tmp_path / "none.json"))
    assert status == 1 and "none.json: No such file" in said
    status, said = await command("bench", "--from", "/dev/zero")
    assert status == 1 and "/dev/zero: it is no regular file" in said


async def test_a_report_that_cannot_be_written_is_found_out_first(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_bytes(encode(result_of([])))
    status, said = await command("bench", "--from", str(file), "--html", "/nowhere/out.html")
    assert status == 1 and "/nowhere/out.html: No such file" in said
