"""What is stored comes back, after a restart too; a change is stored whole or not at all."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gateway.state import store as store_module
from gateway.state.store import (
    Override,
    RevisionTaken,
    StateFailed,
    Store,
    Switch,
    WeightChange,
    WeightUpdate,
)


def change(model: str, revision: int, at: float = 0.0) -> WeightChange:
    before = {"a": float(revision - 1), "b": 1.0}
    return WeightChange(model, revision, at, "me", "why", before, {"a": float(revision), "b": 1.0})


OVERRIDE = Override(weight=0.1, baseline=50.0, revision=3, by="me", reason="test", at=1.7e9 + 0.25)


def again(file: Path) -> Store:
    store = Store(f"sqlite:///{file}")
    store.open()
    return store


def test_an_empty_store(store: Store) -> None:
    assert store.overrides() == {}
    assert store.latest_changes() == {}
    assert store.history() == []
    assert store.switches() == {}
    assert store.disabled_backends() == set()


def test_everything_comes_back_after_a_restart(store: Store, file: Path) -> None:
    other = Override(0.0, 1.5, 4, "you", "ünïcode \U0001f600 'quoted\"", 2.0)
    store.save_weights(
        [
            WeightUpdate("m/1", {"a": OVERRIDE, "b": other}, change("m/1", 1, at=10.0)),
            WeightUpdate("m2", {}, change("m2", 7, at=20.0)),
        ]
    )
    store.switch_backend("x", Switch(False, "me", 5.0))
    store.close()
    store = again(file)
    assert store.overrides() == {"m/1": {"a": OVERRIDE, "b": other}}
    assert store.latest_changes() == {"m/1": change("m/1", 1, 10.0), "m2": change("m2", 7, 20.0)}
    assert store.switches() == {"x": Switch(False, "me", 5.0)}
    store.close()


def test_saved_overrides_take_the_place_of_the_model_s_former_ones(store: Store) -> None:
    store.save_weights([WeightUpdate("m", {"a": OVERRIDE, "b": OVERRIDE}, None)])
    store.save_weights([WeightUpdate("n", {"a": OVERRIDE}, None)])
    store.save_weights([WeightUpdate("m", {"b": OVERRIDE}, None)])
    assert store.overrides() == {"m": {"b": OVERRIDE}, "n": {"a": OVERRIDE}}
    store.save_weights([WeightUpdate("n", {}, None)])
    assert store.overrides() == {"m": {"b": OVERRIDE}}


def test_the_latest_change_of_each_model_is_the_one_of_highest_revision(store: Store) -> None:
    for model, revision in (("m", 1), ("n", 1), ("m", 2), ("m", 3)):
        store.save_weights([WeightUpdate(model, {}, change(model, revision, at=-revision))])
    latest = store.latest_changes()
    assert {model: one.revision for model, one in latest.items()} == {"m": 3, "n": 1}


def test_history_is_the_newest_first_and_no_longer_than_asked(store: Store) -> None:
    # The clock was set back between the second and the third change.
    for revision, at in ((1, 100.0), (2, 200.0), (3, 50.0)):
        store.save_weights([WeightUpdate("m", {}, change("m", revision, at))])
    store.save_weights([WeightUpdate("n", {}, change("n", 1, 150.0))])
    assert [one.revision for one in store.history("m")] == [3, 2, 1]
    assert [one.revision for one in store.history("m", limit=2)] == [3, 2]
    assert [one.at for one in store.history()] == [200.0, 150.0, 100.0, 50.0]
    assert store.history("unknown") == []
    assert store.history("m")[0] == change("m", 3, 50.0)


def test_history_is_bounded_and_never_loses_the_latest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "HISTORY", 3)
    store.save_weights([WeightUpdate("n", {}, change("n", 1))])
    for revision in range(1, 8):
        store.save_weights([WeightUpdate("m", {}, change("m", revision))])
    assert [one.revision for one in store.history("m")] == [7, 6, 5]
    assert [one.revision for one in store.history("n")] == [1]


def test_a_revision_is_taken_once_and_nothing_else_of_the_update_is_stored(store: Store) -> None:
    store.save_weights([WeightUpdate("m", {"a": OVERRIDE}, change("m", 1))])
    with pytest.raises(RevisionTaken):
        store.save_weights(
            [
                WeightUpdate("n", {"a": OVERRIDE}, change("n", 1)),
                WeightUpdate("m", {}, change("m", 1)),
            ]
        )
    assert store.overrides() == {"m": {"a": OVERRIDE}}
    assert set(store.latest_changes()) == {"m"}


def test_switches_keep_the_last_word(store: Store) -> None:
    store.switch_backend("x", Switch(False, "me", 1.0))
    store.switch_backend("y", Switch(False, "me", 2.0))
    store.switch_backend("x", Switch(True, "you", 3.0))
    assert store.disabled_backends() == {"y"}
    assert store.switches()["x"] == Switch(True, "you", 3.0)


def test_threads_may_share_a_store(store: Store) -> None:
    def work(name: str) -> None:
        for revision in range(1, 21):
            store.save_weights([WeightUpdate(name, {"a": OVERRIDE}, change(name, revision))])
            store.history(name)

    threads = [threading.Thread(target=work, args=(f"m{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {one.revision for one in store.latest_changes().values()} == {20}
    assert len(store.overrides()) == 4


def test_what_was_committed_survives_a_process_that_is_killed(file: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from gateway.state.store import Store, Switch\n"
        "store = Store('sqlite:///' + sys.argv[1])\n"
        "store.open()\n"
        "store.switch_backend('x', Switch(False, 'me', 1.0))\n"
        "with store._transaction() as connection:\n"
        "    connection.exec_driver_sql('delete from backend_switches')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(file)], check=False, timeout=50)
    assert done.returncode == -9
    store = again(file)
    assert store.disabled_backends() == {"x"}
    store.close()


def test_a_failing_database_is_told_and_nothing_changed(store: Store, file: Path) -> None:
    store.switch_backend("x", Switch(False, "me", 1.0))
    with store._transaction(reads=True) as connection:
        connection.exec_driver_sql("PRAGMA query_only=ON")
    with pytest.raises(StateFailed) as caught:
        store.switch_backend("x", Switch(True, "me", 2.0))
    assert caught.value.status == 503
    assert "nothing was changed" in caught.value.message
    assert "readonly" in (caught.value.detail or "")
    assert str(file) not in caught.value.message
    assert store.disabled_backends() == {"x"}


def test_a_closed_store_says_so(file: Path) -> None:
    store = Store(f"sqlite:///{file}")
    with pytest.raises(RuntimeError, match="not open"):
        store.overrides()
    store.open()
    store.close()
    store.close()
    with pytest.raises(RuntimeError, match="not open"):
        store.overrides()
