"""`gateway bench` as a user runs it: a process of its own against simulated engines."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.bench.results import BenchResult, Sources, read
from tests.settings.samples import KEY as STRONG_KEY
from tests.settings.samples import OTHER_KEY
from tests.simulator.running import Server, serving
from tests.support.gateway_process import command, write
from tests.support.ports import nobody
from tests.support.running import ADMIN_KEY, KEY, Running, configuration, running
from tests.support.scripted import scripted
from tests.support.site import silent

SMALL = ("--requests", "16", "--concurrency", "8", "--question-tokens", "400")


@dataclass
class Site:
    """A gateway before two simulated engines, `a0` with chunk 512 and `a1` with chunk 64."""

    it: Running
    engines: tuple[Server, Server]
    folder: Path

    async def bench(self, *arguments: str, admin: bool = True) -> tuple[int, str]:
        env = {"GATEWAY_URL": self.it.url, "GATEWAY_KEY": KEY}
        env |= {"GATEWAY_ADMIN_KEY": ADMIN_KEY} if admin else {}
        return await command("bench", "--seed", "1", *arguments, env=env)

    async def result(self, *arguments: str, admin: bool = True) -> tuple[BenchResult, str]:
        file = self.folder / "out.json"
        status, said = await self.bench(*arguments, "--json", str(file), admin=admin)
        assert status == 0, said
        return read(file), said


@asynccontextmanager
async def site(folder: Path, speed: float = 1.0, **changes: Any) -> AsyncIterator[Site]:
    async with (
        serving(max_num_batched_tokens=512, max_num_seqs=64, speed=speed) as large,
        serving(max_num_batched_tokens=64, max_num_seqs=64, speed=speed) as small,
    ):
        settings = configuration(folder, large.url, small.url, **changes)
        chunk = {"b0": 512, "b1": 64}
        for name, tokens in chunk.items():
            settings["backends"][name]["engine"] = {"max_num_batched_tokens": tokens}
        settings["backends"]["b1"]["engine"]["block_size"] = 32
        async with running(settings, folder) as it:
            yield Site(it, (large, small), folder)


async def test_two_arms_are_compared_round_by_round(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        found, said = await here.result("--arm", "a0", "--arm", "a1", *SMALL)
        asked = {record.arm for record in here.it.records}
        forced = {record.forced for record in here.it.records}
    large, small = found.arms
    assert (large.arm, small.arm) == ("a0", "a1")
    assert (large.rounds, large.requests, small.requests) == (3, 48, 48)
    assert (large.backends, small.served) == ({"b0": 48}, {"a1": 48})
    assert not large.errors and not small.errors
    # 400 tokens of its own a request, eight at a time: chunk 64 takes some fifty short steps,
    # chunk 512 seven longer ones, half as long in all.
    p90 = next(one for one in found.comparisons if one.figure == "p90_ttft_ms")
    assert p90.separate and p90.ratio is not None and p90.ratio > 1.3, p90
    # The shared prompt of 1,600 tokens was found by each of them, whatever the chunk.
    for arm in found.arms:
        assert arm.figures["hit_rate"].low == pytest.approx(1600 / 2020, abs=0.03)
        assert 0 < arm.figures["kv_usage_peak"].high < 0.1
        assert "gpu_memory_peak" not in arm.figures
    assert small.engine["max_num_batched_tokens"] == 64
    assert small.engine["block_size"] == 16, "the engine itself knows better"
    assert asked == {"a0", "a1"} and forced == {True}
    assert [one.arm for one in found.rounds] == ["a1", "a0", "a0", "a1", "a1", "a0"]
    assert found.simulated
    assert found.sources == Sources(), "addresses that the admin key told are not for the file"
    for words in (
        "An engine is simulated: these times say nothing about a real machine.",
        "P90 TTFT: a1",
        "Load per backend was equal in all arms.",
        "GPU memory peak ≤ 70 %: not measured",
        "hit rate ≥ 80 %: does not hold, at 79",
        "The client's own cost",
        "Backend b1 is not what its configuration says: block_size is declared as 32",
        "P90 TTFT by round, in ms: o a0, x a1",
        "One backend served a0 and a1",
    ):
        assert words in said


@pytest.mark.parametrize("api", ["chat", "completions", "messages", "responses"])
async def test_an_engine_itself_in_every_api(tmp_path: Path, api: str) -> None:
    # As fast as real, so that no pause of the machine puts all tokens of an answer into one read.
    async with serving(max_num_batched_tokens=512, max_num_seqs=64, speed=1.0) as engine:
        file = tmp_path / "out.json"
        arguments = ("--url", engine.url, "--engine", f"sim={engine.url}", "--api", api)
        load = ("--requests", "16", "--rounds", "1", "--output-tokens", "8", "--json", str(file))
        status, said = await command("bench", *arguments, *load)
        assert status == 0, said
    found = read(file)
    (arm,) = found.arms
    assert not arm.errors and found.simulated
    (one,) = found.rounds
    assert one.figures["total_output_tokens"] == 16 * 8
    # An answer has none where this process was held up until all of it had come.
    assert any(sample.itl_ms for sample in one.samples)
    assert one.engines[0].requests == 16
    assert "Confounded" not in said and "Differences" not in said


async def test_an_admin_key_left_over_does_not_keep_anybody_from_asking_an_engine() -> None:
    async with serving(speed=20) as engine:
        arguments = ("--url", engine.url, "--requests", "4", "--rounds", "1", "--no-warm-up")
        status, said = await command("bench", *arguments, env={"GATEWAY_ADMIN_KEY": ADMIN_KEY})
    assert status == 0, said
    assert f"The admin API of {engine.url} named no engines: " in said


async def test_address_and_keys_of_the_gateway_yaml_beside_it(tmp_path: Path) -> None:
    load = ("--requests", "4", "--rounds", "1", "--no-warm-up")
    keys = {"keys": [{"name": "dev", "key": STRONG_KEY}], "admin": {"key": OTHER_KEY}}
    async with site(tmp_path, speed=20, **keys) as here:
        urls = [engine.url for engine in here.engines]
        server = {"port": here.it.port}
        write(tmp_path, configuration(tmp_path, *urls, server=server, **keys))
        status, said = await command("bench", *load, folder=tmp_path)
    assert status == 0, said
    assert "Backend b1 is not what its configuration says" in said, "which the admin key tells"


async def test_an_open_loop_of_sessions(tmp_path: Path) -> None:
    async with site(tmp_path, speed=20) as here:
        arguments = ("--workload", "sessions", "--request-rate", "40", "--slo-ttft-ms", "2000")
        found, _ = await here.result(*arguments, "--requests", "30", "--rounds", "1", admin=False)
        sources = {record.session_source for record in here.it.records[1:]}
    (arm,) = found.arms
    (one,) = found.rounds
    assert arm.requests == 30 and not arm.errors
    assert found.simulated, "known by its answers, without an admin key"
    assert set(arm.served) == {"a0", "a1"}, "without --arm the gateway splits"
    assert found.load.concurrency is None and found.load.request_rate == 40
    assert one.figures["request_goodput"] == one.figures["request_throughput"]
    assert [sample.turn for sample in one.samples].count(2) == 10
    longest = {sample.session: sample.prompt_characters for sample in one.samples}
    assert len(longest) == 10
    assert sources == {"x-session-id"}


async def test_the_access_log_of_one_run_is_replayed_by_another(tmp_path: Path) -> None:
    async with site(tmp_path, speed=20) as here:
        await here.result("--requests", "12", "--rounds", "1", "--no-warm-up")
        log = tmp_path / "access.jsonl"
        async with asyncio.timeout(5):
            while len(log.read_text().splitlines()) < 13:
                await asyncio.sleep(0.05)
        arguments = ("--workload", "replay", "--dataset", str(log), "--no-warm-up")
        found, said = await here.result(*arguments, "--rounds", "1")
    (one,) = found.rounds
    assert len(one.samples) == 13, "the trial request is in the log, too"
    prompts = sorted(sample.prompt_tokens or 0 for sample in one.samples)
    assert prompts[1:] == pytest.approx([1640] * 12, abs=20)
    assert "access.jsonl holds 13 requests" in said


# What goes wrong


async def test_an_arm_that_is_none_is_left_out_and_the_rest_goes_on(tmp_path: Path) -> None:
    async with site(tmp_path, speed=20) as here:
        arguments = ("--arm", "a0", "--arm", "a7", "--requests", "8", "--rounds", "1")
        found, said = await here.result(*arguments)
    assert [arm.arm for arm in found.arms] == ["a0"]
    told = "Arm a7 was left out: its trial request failed (status 400): Model `m`"
    assert said.startswith(told), "before the rounds"
    assert said.count(told) == 2, "and among the remarks"


async def test_no_arm_that_answers_is_an_error(tmp_path: Path) -> None:
    async with site(tmp_path, speed=20) as here:
        status, said = await here.bench("--arm", "a7")
    assert status == 1
    assert "Traceback" not in said and "has no arm `a7`" in said


async def test_more_at_once_than_the_key_may_have_is_said_with_what_to_do(tmp_path: Path) -> None:
    keys = [{"name": "dev", "key": KEY, "max_concurrency": 1}]
    async with site(tmp_path, keys=keys) as here:
        arguments = ("--arm", "a0", *SMALL, "--rounds", "1", "--threshold", "p90=100000")
        found, said = await here.result(*arguments)
    (refused,) = found.arms[0].errors.values()
    assert found.arms[0].errors == {"status 429": refused} and refused > 4
    assert f"not judged, {refused} of 16 requests failed, more than 10 %." in said
    assert (
        f"The key may have fewer requests at once than were sent, and {refused} were refused: "
        "raise its max_concurrency, or lower --concurrency."
    ) in said


async def test_engines_that_cannot_be_asked_are_said_and_absent(tmp_path: Path) -> None:
    async with site(tmp_path, speed=20) as here:
        with nobody() as url:
            engines = ("--engine", f"a0={url}", "--engine", f"self={here.it.url}")
            found, said = await here.result(
                "--arm", "a0", *engines, "--requests", "8", "--rounds", "1", admin=False
            )
    uses = {use.name: use for use in found.rounds[0].engines}
    assert uses["a0"].absent and uses["a0"].kv_usage_peak is None
    assert uses["self"].absent == "its /metrics is no vLLM engine's"
    assert f"Engine a0 was not looked at: {url}/metrics does not answer." in said
    assert "hit rate ≥ 80 %: not measured" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file here is always full")
async def test_a_full_disk_does_not_cost_what_was_measured(tmp_path: Path) -> None:
    async with serving() as engine:
        status, said = await command(
            *("bench", "--url", engine.url, "--rounds", "1", "--json", "/dev/full", *SMALL)
        )
    assert status == 1 and "No space left" in said
    assert "TTFT P50" in said, "the result is printed all the same"


async def test_ctrl_c_before_the_first_round_says_so_at_once() -> None:
    async with scripted(silent) as backend:
        child = await interruptible("--url", backend.url, "--model", "m")
        async with asyncio.timeout(20):
            while not backend.requests:
                await asyncio.sleep(0.01)
        child.send_signal(signal.SIGINT)
        output, _ = await asyncio.wait_for(child.communicate(), 10)
    assert child.returncode == 1
    assert output == b"Ended before the first round.\n"


async def test_ctrl_c_within_the_first_round_prints_no_empty_tables(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        child = await interruptible(
            *("--arm", "a0", "--requests", "100000"), GATEWAY_URL=here.it.url, GATEWAY_KEY=KEY
        )
        async with asyncio.timeout(20):
            while len(here.it.records) < 5:
                await asyncio.sleep(0.01)
        child.send_signal(signal.SIGINT)
        output, _ = await asyncio.wait_for(child.communicate(), 20)
    assert child.returncode == 1
    assert output == b"No round was complete.\n"


async def interruptible(*arguments: str, **env: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "bench", *arguments),
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"} | env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def test_ctrl_c_prints_what_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    async with site(tmp_path) as here:
        child = await interruptible(
            *("--arm", "a0", "--rounds", "100", "--requests", "8", "--json", str(file)),
            GATEWAY_URL=here.it.url,
            GATEWAY_KEY=KEY,
        )
        async with asyncio.timeout(20):
            while len(here.it.records) < 30:
                await asyncio.sleep(0.01)
        child.send_signal(signal.SIGINT)
        output, _ = await asyncio.wait_for(child.communicate(), 20)
    assert child.returncode == 0, output
    found = json.loads(file.read_text())
    assert found["interrupted"] and 1 <= len(found["rounds"]) < 20
    assert b"Ended early" in output and b"TTFT P50" in output
