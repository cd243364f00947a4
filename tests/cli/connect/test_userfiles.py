"""How a user's file is shown, kept and replaced."""

from __future__ import annotations

import os
import stat
from datetime import datetime
from pathlib import Path

import pytest

from gateway.cli.connect.userfiles import Change, Home, apply, readable_by_others
from gateway.clients.setup import UserFile
from gateway.errors import GatewayError

NOW = datetime(2026, 3, 4, 5, 6, 7)
KEY = "sk-test-0123456789abcdefghijkl"
FILE = UserFile(".tool/settings.json", "json", {"apiKey": KEY}, moved=("TOOL_HOME", "s.json"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, {})


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def existing(tmp_path: Path, text: str, bits: int) -> Path:
    path = tmp_path / FILE.path
    path.parent.mkdir()
    path.write_text(text)
    path.chmod(bits)
    return path


def test_a_new_file_is_its_owners_only(home: Home, tmp_path: Path) -> None:
    change = home.change(FILE)
    assert change.needed and change.before is None
    assert apply(change, NOW) is None
    path = tmp_path / FILE.path
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert not readable_by_others(path)
    assert not home.change(FILE).needed
    assert os.listdir(path.parent) == ["settings.json"]


@pytest.mark.parametrize("bits", [0o600, 0o644, 0o640])
def test_an_old_file_keeps_its_mode_and_is_kept(home: Home, tmp_path: Path, bits: int) -> None:
    path = existing(tmp_path, '{"a": 1}', bits)
    backup = apply(home.change(FILE), NOW)
    assert backup == path.with_name("settings.json.bak-20260304-050607")
    assert backup.read_text() == '{"a": 1}'
    assert mode(path) == mode(backup) == bits
    assert readable_by_others(path) == (bits != 0o600)


def test_no_backup_is_replaced(home: Home, tmp_path: Path) -> None:
    path = existing(tmp_path, "{}", 0o600)
    names = []
    for text in ("{}", '{"b": 1}', '{"c": 1}'):
        path.write_text(text)
        backup = apply(home.change(FILE), NOW)
        assert backup is not None and backup.read_text() == text
        names.append(backup.name.removeprefix("settings.json.bak-20260304-050607"))
    assert names == ["", "-2", "-3"]


def test_a_link_stays_one(home: Home, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.json"
    kept.write_text("{}")
    path = tmp_path / FILE.path
    path.parent.mkdir()
    path.symlink_to(kept)
    apply(home.change(FILE), NOW)
    assert path.is_symlink() and KEY in kept.read_text()


def test_what_another_program_wrote_meanwhile_is_not_lost(home: Home, tmp_path: Path) -> None:
    path = existing(tmp_path, "{}", 0o600)
    change = home.change(FILE)
    path.write_text('{"newer": 1}')
    with pytest.raises(GatewayError, match="was changed by another program"):
        apply(change, NOW)
    assert path.read_text() == '{"newer": 1}'
    path.unlink()
    with pytest.raises(GatewayError, match="was changed by another program"):
        apply(change, NOW)


def test_a_failure_leaves_the_old_file_and_nothing_else(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = existing(tmp_path, "{}", 0o600)
    change = home.change(FILE)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        apply(change, NOW)
    assert os.listdir(path.parent) == ["settings.json"]
    assert path.read_text() == "{}"


def test_files_that_are_not_what_their_names_say(home: Home, tmp_path: Path) -> None:
    path = existing(tmp_path, "{ // mine\n", 0o600)
    with pytest.raises(GatewayError, match=r"is no JSON that can be edited safely .*line 2"):
        home.change(FILE)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(GatewayError, match="is not UTF-8 text"):
        home.change(FILE)


def test_a_variable_moves_the_file(tmp_path: Path) -> None:
    home = Home(tmp_path, {"TOOL_HOME": str(tmp_path / "else")})
    assert home.path(FILE) == tmp_path / "else" / "s.json"
    assert home.shown(FILE) == "~/else/s.json"
    assert Home(tmp_path, {"TOOL_HOME": "/opt/tool"}).shown(FILE) == "/opt/tool/s.json"
    assert Home(tmp_path, {"TOOL_HOME": ""}).shown(FILE) == "~/.tool/settings.json"


@pytest.mark.parametrize("there", [[], ["s.json"], ["s.jsonc"], ["s.json", "s.jsonc"]])
def test_the_file_that_wins_is_the_one_that_is_edited(tmp_path: Path, there: list[str]) -> None:
    for name in there:
        (tmp_path / name).write_text("{ // mine\n}")
    path = Home(tmp_path, {}).change(UserFile("s.json", "json", {"a": "1"}, wins=("s.jsonc",))).path
    assert path.name == ("s.jsonc" if "s.jsonc" in there else "s.json")


SECRETS = """\
  "OPENAI_API_KEY": "sk-old-abcdefghijklmnop",
  apiKey: abc-def-ghi
  auth_token = 'tok tok'
  "Authorization": "Bearer xyz.123"
  header: x sk-inline-0123456789
  env_key = "GATEWAY_KEY"
  "model": "llama"
"""


def test_a_change_is_shown_without_secrets(tmp_path: Path) -> None:
    change = Change(tmp_path / "f", SECRETS, SECRETS + f'  "key": "{KEY}"\n')
    shown = change.shown(show_secrets=False)
    assert '+  "key": "sk-t… (30 characters)"' in shown
    for secret in (KEY, "abcdefghijklmnop", "abc-def", "tok tok", "xyz.123", "inline"):
        assert secret not in shown
    whole = Change(tmp_path / "f", None, SECRETS).shown(show_secrets=False)
    for secret in ("abcdefghijklmnop", "abc-def", "tok tok", "xyz.123", "inline"):
        assert secret not in whole
    assert 'env_key = "GATEWAY_KEY"' in whole and '"model": "llama"' in whole
    assert KEY in change.shown(show_secrets=True)
