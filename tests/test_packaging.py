"""What is shipped, what it is installed from, and house rules that hold for every file."""

from __future__ import annotations

import re
import secrets
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from hatchling.build import build_wheel
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from gateway import __version__
from gateway.settings import load

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

LONGEST = 300
LONGER = {
    "gateway/edge/protocol.py": "one class, since uvicorn calls all of it on one object; "
    "what could stand alone is in cycle.py",
}

TEXT = {"", ".c", ".cfg", ".json", ".lua", ".md", ".py", ".svg", ".toml", ".yaml", ".yml", ".lock"}
ELSEWHERE = re.compile(
    r"(?<![\w.$}])/(?:root|home/\w+|Users/\w+|work)/|index-url|find-links|pythonhosted|pypi\.org"
)
"""Places that exist on one machine only, and addresses of package indexes."""

WAIVER = re.compile(r"#\s*(?:type: ?ignore|noqa)\b(?!(?:\[[a-z-]+\]|: [A-Z]+\d+)  # \w).*")
"""One that does not say which rule it lifts, and behind that for what reason."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = build_wheel(str(folder))
    with zipfile.ZipFile(folder / name) as built:
        yield built


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return message_from_bytes(_read(wheel, "METADATA"))


def _read(wheel: zipfile.ZipFile, name: str) -> bytes:
    return wheel.read(f"ttft_gateway-{__version__}.dist-info/{name}")


def _pins() -> dict[NormalizedName, tuple[str, list[str]]]:
    """Every package of the lock file: its version and its hashes."""
    entries = LOCK.replace("\\\n", " ").splitlines()
    pins: dict[NormalizedName, tuple[str, list[str]]] = {}
    for entry in entries:
        requirement, *hashes = re.split(r"\s+--hash=", entry.strip())
        name, _, version = requirement.partition(";")[0].strip().partition("==")
        pins[canonicalize_name(name)] = (version, hashes)
    return pins


def _asked_for() -> Iterator[Requirement]:
    for line in PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["dev"]:
        yield Requirement(line)


def _files() -> Iterator[tuple[str, str]]:
    """Every text file of the project, but this one: its path from the root, and its text."""
    for name in _tracked():
        path = ROOT / name
        if path.suffix in TEXT and path.is_file() and path != Path(__file__):
            yield name, path.read_text()


def _tracked() -> list[str]:
    """What belongs to the project, by path from the root: what git keeps; without git, as in an
    archive, whatever is not hidden."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        found = (path.relative_to(ROOT) for path in ROOT.rglob("[!.]*"))
        return [p.as_posix() for p in found if not any(part[0] == "." for part in p.parts)]
    return listing.stdout.split("\0")[:-1]


def test_the_version_option_and_the_metadata_agree(metadata: Message) -> None:
    command = [sys.executable, "-m", "gateway", "--version"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == f"gateway {metadata['Version']}"


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == __version__


def test_the_wheel_has_the_command_the_licence_and_the_migrations(
    wheel: zipfile.ZipFile, metadata: Message
) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert b"gateway = gateway.__main__:main" in _read(wheel, "entry_points.txt")
    assert b"Apache License" in _read(wheel, "licenses/LICENSE")
    shipped = set(wheel.namelist())
    ours = {path.relative_to(ROOT).as_posix() for path in (ROOT / "gateway").rglob("*.py")}
    assert ours <= shipped
    assert not {name for name in shipped if name.startswith(("tests/", "benchmarks/"))}


def test_every_locked_package_has_a_version_and_hashes() -> None:
    pins = _pins()
    assert len(pins) > len(list(_asked_for()))
    for name, (version, hashes) in pins.items():
        assert version, name
        assert hashes, name
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes), name


def test_the_lock_file_names_no_address() -> None:
    assert "://" not in LOCK
    assert " @ " not in LOCK


def test_what_the_project_asks_for_is_locked() -> None:
    pins = _pins()
    for requirement in _asked_for():
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} is not locked: make lock"
        assert requirement.specifier.contains(pins[name][0]), f"{requirement}: make lock"


def test_files_are_short_but_for_those_with_a_reason() -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines())
        for path in (ROOT / "gateway").rglob("*.py")
    }
    assert {name for name, length in lengths.items() if length > LONGEST} <= set(LONGER)


def test_no_file_names_a_place_on_one_machine_or_an_index() -> None:
    found = {name: match.group() for name, text in _files() if (match := ELSEWHERE.search(text))}
    assert not found


def test_a_waiver_names_its_rule_and_its_reason() -> None:
    assert WAIVER.search("x = 1  # type: ignore[misc]") and WAIVER.search("# noqa  # for no rule")
    sources = ((name, text) for name, text in _files() if name.endswith(".py"))
    found = {name: match.group() for name, text in sources if (match := WAIVER.search(text))}
    assert not found


def test_the_configuration_in_the_readme_is_valid(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    environment = {"GATEWAY_KEY": secrets.token_hex(32), "GATEWAY_ADMIN_KEY": secrets.token_hex(32)}
    for number, block in enumerate(blocks):
        path = tmp_path / f"{number}.yaml"
        path.write_text(block)
        assert load(path, environment).models


def test_links_between_documents_lead_somewhere() -> None:
    for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "benchmarks/README.md"):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"
