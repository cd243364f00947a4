"""When a changed file is taken over, and that nothing ends the watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.errors import ConfigError, GatewayError
from gateway.reload import Reloader, signature
from gateway.settings import Settings

KEPT = "configuration not reloaded, the old one stays in force: "


class Bench:
    """A file whose text says what becomes of it, and what was put in force."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "gateway.yaml"
        self.file.write_text("old")
        self.seen = signature(self.file)
        self.applied: list[str] = []
        self.read: list[str] = []
        self.changed: list[str] = []

    def load(self) -> Settings:
        text = self.file.read_text()
        self.read.append(text)
        if text == "faulty":
            raise ConfigError(["a: is wrong", "b: is wrong"])
        if text == "odd":
            raise RuntimeError("odd")
        return Settings()

    async def apply(self, settings: Settings) -> list[str]:
        if self.read[-1] == "no weights":
            raise ConfigError(["database_url: the weights cannot be stored"])
        if self.read[-1] == "no database":
            raise GatewayError("sorry", detail="disk I/O error")
        self.applied.append(self.read[-1])
        return self.changed

    @asynccontextmanager
    async def watching(self, interval: float = 0.01) -> AsyncIterator[Reloader]:
        reloader = Reloader(self.file, self.seen, self.load, self.apply, interval)
        task = asyncio.create_task(reloader.watch())
        yield reloader
        assert not task.done(), "the watch has ended"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def until(self, *applied: str) -> None:
        async with asyncio.timeout(2):
            while self.applied != list(applied):
                await asyncio.sleep(0.005)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_a_change_is_taken_over_once(bench: Bench) -> None:
    async with bench.watching():
        await asyncio.sleep(0.05)
        assert bench.read == []
        bench.file.write_text("new")
        await bench.until("new")
        await asyncio.sleep(0.05)
        assert bench.read == ["new"]


async def test_a_change_between_the_first_read_and_the_watch_is_noticed(bench: Bench) -> None:
    bench.file.write_text("changed before the watch began")
    async with bench.watching():
        await bench.until("changed before the watch began")


async def test_a_link_that_is_swapped_is_a_change(bench: Bench, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    bench.file.unlink()
    bench.file.symlink_to("one")
    async with bench.watching():
        await bench.until("one")
        (tmp_path / "fresh").symlink_to("two")
        (tmp_path / "fresh").replace(bench.file)
        await bench.until("one", "two")


async def test_a_file_that_is_gone_for_a_while_is_waited_for(bench: Bench) -> None:
    async with bench.watching():
        bench.file.unlink()
        await asyncio.sleep(0.05)
        assert bench.read == []
        bench.file.write_text("back")
        await bench.until("back")


async def test_who_asks_gets_a_reload_at_once_of_an_unchanged_file(bench: Bench) -> None:
    async with bench.watching(interval=60) as reloader:
        await asyncio.sleep(0)
        reloader.ask()
        await bench.until("old")


@pytest.mark.parametrize(
    ("changed", "told"),
    [([], " without a change"), (["a: 1 → 2", "b: added"], "\n  a: 1 → 2\n  b: added")],
)
async def test_what_changed_is_told(
    bench: Bench, caplog: pytest.LogCaptureFixture, changed: list[str], told: str
) -> None:
    caplog.set_level(logging.INFO)
    bench.changed = changed
    async with bench.watching(interval=60) as reloader:
        await reloader.reload()
    assert caplog.messages == [f"configuration reloaded from {bench.file}{told}"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("faulty", f"{KEPT}\n  a: is wrong\n  b: is wrong"),
        ("no weights", f"{KEPT}\n  database_url: the weights cannot be stored"),
        ("no database", f"{KEPT}disk I/O error"),
        ("odd", f"{KEPT}an unexpected error"),
    ],
)
async def test_whatever_fails_is_told_and_the_next_change_is_taken(
    bench: Bench, caplog: pytest.LogCaptureFixture, text: str, told: str
) -> None:
    async with bench.watching():
        bench.file.write_text(text)
        async with asyncio.timeout(2):
            while not caplog.records:
                await asyncio.sleep(0.005)
        assert [one.message for one in caplog.records] == [told]
        assert caplog.records[0].levelno == logging.ERROR
        assert bench.applied == []
        bench.file.write_text("good")
        await bench.until("good")


@pytest.mark.parametrize(
    ("text", "error"), [("faulty", ConfigError), ("no database", GatewayError)]
)
async def test_who_waits_for_the_answer_gets_the_error(
    bench: Bench, text: str, error: type[Exception]
) -> None:
    async with bench.watching(interval=60) as reloader:
        bench.file.write_text(text)
        with pytest.raises(error):
            await reloader.reload()
        bench.file.write_text("good")
        await reloader.reload()
        assert bench.applied == ["good"]


async def test_two_reloads_at_a_time_end_with_what_the_file_says(bench: Bench) -> None:
    async with bench.watching(interval=60) as reloader:
        first = asyncio.create_task(reloader.reload())
        await asyncio.sleep(0)
        bench.file.write_text("newest")
        await asyncio.gather(first, reloader.reload())
        assert bench.applied[-1] == "newest"
