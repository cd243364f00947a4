"""Every command of the documentation, run as a reader would, with the real program.

Engines are simulated. A page that goes on from another one begins with that one's steps.
"""

from __future__ import annotations

import re
import shutil
import sys
from itertools import chain
from pathlib import Path

import pytest

from tests.docs.likeness import alike
from tests.docs.page import NOT_RUN, ROOT, Step, kinds, steps
from tests.docs.shell import Shell

pytestmark = pytest.mark.timeout(300)  # a dozen programs one after the other

DOCS = ROOT / "docs"
COMPARE = "compare-chunk-sizes.md"
SET_UP = ("1. Two servers that differ in one thing", "2. One address in front of them")
WITH_TRAFFIC = (*SET_UP, "3. Traffic")

SITTINGS = {
    (COMPARE,): (),
    ("shift-a-canary.md",): SET_UP,
    ("connect-a-client.md", "console.md"): SET_UP,
    ("read-the-dashboard.md", "troubleshooting.md", "plan-a-chunk-size.md"): WITH_TRAFFIC,
    ("configuration.md",): (),
}
"""The pages read in one sitting, and the sections of `COMPARE` that have to come first."""

LEFT_OUT = {
    COMPARE: ["vLLM and two GPUs are needed."],
    "console.md": ["their environment has it."],
    "tracing.md": ["their environment has it."],
    "dashboards.md": [
        "the port is everybody's, and the addresses are yours. They start it with the same files "
        "on a port of their own."
    ],
}
"""What is not run, and why, by page."""

RUN_ELSEWHERE = {
    "bench.md": "tests/bench/test_documentation.py",
    "deploy.md": "tests/deploy",
    "engine-settings.md": "tests/cli/test_engine_page.py",
    "real-engine.md": "tests/real_engine, which make test-engine runs",
}
"""Pages whose commands other tests run."""

README_LEFT_OUT = {
    "make demo": "it ends when somebody ends it; .ci/run has it end by itself",
    "make test": "these are the tests",
    "gateway why": "the request is one of somebody else's",
}


def pages() -> list[Path]:
    return [page for page in sorted(DOCS.glob("*.md")) if page.name not in RUN_ELSEWHERE]


def run(shell: Shell, page: Path, todo: list[Step]) -> None:
    """Do what the page says, and see whether it tells the truth."""
    for step in todo:
        if step.left_out:
            continue
        if step.file:
            shell.write(step.file, step.text)
            continue
        said = shell.run(step.text)
        if step.shown is not None:
            same = alike(step.shown, said, varies=step.varies)
            assert same, f"{page.name}:{step.line}: {step.text} shows\n{said}"


@pytest.mark.parametrize("names", SITTINGS, ids=" ".join)
def test_a_page_works_and_shows_what_comes(names: tuple[str, ...], tmp_path: Path) -> None:
    sections = SITTINGS[names]
    first = [step for step in steps(DOCS / COMPARE) if step.section in sections]
    assert {step.section for step in first} == set(sections)
    with Shell(tmp_path) as shell:
        run(shell, DOCS / COMPARE, first)
        for name in names:
            run(shell, DOCS / name, steps(DOCS / name))


@pytest.mark.service
def test_the_page_about_prometheus_works(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is missing: apt-get install prometheus")
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    page = DOCS / "dashboards.md"
    with Shell(tmp_path) as shell:
        run(shell, page, steps(page))


def test_the_readme_works(tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    page = ROOT / "README.md"
    exports = next(step for step in steps(DOCS / COMPARE) if "export GATEWAY_URL" in step.text)
    with Shell(tmp_path) as shell:
        for step in steps(page):
            if step.section == "Operating":
                shell.run(exports.text.partition("\n")[2])
            for line in step.text.splitlines():
                if not line.startswith(tuple(README_LEFT_OUT)):
                    shell.run(line)


def test_what_is_not_run_is_known_and_says_why() -> None:
    found = {
        page.name: reasons
        for page in pages()
        if (reasons := [step.left_out for step in steps(page) if step.left_out])
    }
    assert found == LEFT_OUT
    marked = {page.name: page.read_text().count(NOT_RUN) for page in pages()}
    assert {name: n for name, n in marked.items() if n} == {
        name: len(reasons) for name, reasons in LEFT_OUT.items()
    }, "a reason without commands below it"
    readme = [line for step in steps(ROOT / "README.md") for line in step.text.splitlines()]
    for command in README_LEFT_OUT:
        assert any(line.startswith(command) for line in readme)


def test_every_page_with_commands_is_run() -> None:
    to_run = {page.name for page in pages() if not all(step.left_out for step in steps(page))}
    assert to_run == {*chain.from_iterable(SITTINGS), "dashboards.md"}


def test_blocks_say_what_they_are() -> None:
    """One that does not might hold commands that nobody runs."""
    known = {"bash", "console", "json", "python", "text", "toml", "yaml"}
    for page in (*pages(), ROOT / "README.md"):
        assert kinds(page) <= known, f"{page.name}: bash for commands, text for what is none"


def test_links_into_pages_lead_to_a_heading() -> None:
    for page in (*DOCS.glob("*.md"), ROOT / "README.md"):
        for target, place in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
            text = (page.parent / target).read_text() if target else page.read_text()
            headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            assert place in map(_anchor, headings), f"{page.name}: {target}#{place}"


def _anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
