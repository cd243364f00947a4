"""What images are built from is what `make lock` pins, and no more than they need."""

from __future__ import annotations

import contextlib
import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = {path.stem: path for path in (ROOT / "deploy" / "locks").glob("*.lock")}
TOOLS = [ROOT / "tests" / "deploy" / f"{name}.lock" for name in ("tools", "compose")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]
ASKED = {
    "build": GROUPS["build"],
    "gateway": RUNTIME + EXTRAS["otel"],
    "console": RUNTIME + EXTRAS["console"],
}

Pin = tuple[str, tuple[str, ...]]


def _pins(path: Path) -> dict[NormalizedName, Pin]:
    """Of each package: its version, with any condition, and its hashes."""
    pins = {}
    for entry in path.read_text().replace("\\\n", " ").splitlines():
        requirement, *hashes = re.split(r"\s+--hash=", entry.strip())
        name, _, version = requirement.partition("==")
        pins[canonicalize_name(name)] = (version.strip(), tuple(sorted(hashes)))
    return pins


def test_every_lock_is_for_something() -> None:
    assert set(LOCKS) == set(ASKED)


@pytest.mark.parametrize("name", ASKED)
def test_a_lock_pins_what_is_asked_for_as_everything_else_does(name: str) -> None:
    """The images run what the tests ran on: the same versions, with the same hashes."""
    pins, tested = _pins(LOCKS[name]), _pins(ROOT / "requirements.lock")
    for line in ASKED[name]:
        requirement = Requirement(line)
        pin = pins.get(canonicalize_name(requirement.name))
        assert pin is not None, f"{line} is not in {name}.lock: make lock"
        assert requirement.specifier.contains(pin[0].partition(";")[0].strip()), "make lock"
    for package, (version, hashes) in pins.items():
        assert package in tested, f"{package}: make lock"
        assert version.partition(";")[0].strip() == tested[package][0].partition(";")[0].strip()
        assert hashes == tested[package][1], f"{package}: make lock"


def test_what_only_tests_need_is_in_no_image() -> None:
    asked = ASKED["gateway"] + ASKED["console"]
    shipped = {canonicalize_name(Requirement(line).name) for line in asked}
    tools = {canonicalize_name(Requirement(line).name) for line in GROUPS["dev"]} - shipped
    for name in ("gateway", "console"):
        pins = set(_pins(LOCKS[name]))
        # Some tools are parts of what ships, too.
        assert tools & pins <= _needed_by(pins), "make lock"
    extra = {canonicalize_name(Requirement(line).name) for line in EXTRAS["console"]}
    assert not extra & set(_pins(LOCKS["gateway"]))


@pytest.mark.parametrize("path", [*LOCKS.values(), *TOOLS], ids=lambda path: path.stem)
def test_a_lock_has_hashes_and_names_no_address(path: Path) -> None:
    assert "://" not in path.read_text()
    for package, (version, hashes) in _pins(path).items():
        assert version and hashes, package
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes)


def test_the_programs_of_the_tests_are_those_asked_for() -> None:
    asked = {canonicalize_name(Requirement(line).name) for line in GROUPS["deploy-tools"]}
    assert asked <= set(_pins(TOOLS[0])), "make lock"
    assert [str(name) for name in _pins(TOOLS[1])] == GROUPS["docker-compose"]


def _needed_by(packages: set[NormalizedName]) -> set[NormalizedName]:
    """What these packages ask for themselves, as far as they are installed here."""
    needed: set[NormalizedName] = set()
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            for line in requires(package) or ():
                requirement = Requirement(line)
                if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                    needed.add(canonicalize_name(requirement.name))
    return needed
