from __future__ import annotations

import pytest

from tests.docs.likeness import alike


@pytest.mark.parametrize(
    ("shown", "said", "varies", "same"),
    [
        (["a 50 %"], "a 50 %\n", False, True),
        (["a 50 %"], "a 75 %\n", False, False),
        (["a 50 %"], "a 75 %\n", True, True),
        (["a  b"], "a b  \n\n", False, True),
        (["a"], "a\nb\n", False, False),
        (["a", "b"], "a\n", False, False),
        (["…", "c"], "a\nb\nc\n", False, True),
        (["a", "…"], "a\n", False, True),
        (["…", "c"], "a\nc\nd\n", False, False),
        (["a: …"], "a: whatever\n", False, True),
        (["a: …"], "b: whatever\n", False, False),
        (["a … d"], "a b c d\n", False, True),
        (["a … d"], "a b c\n", False, False),
        (["key sk-a1b2…"], "key sk-x_9-z\n", False, True),
        (["after 1.5 s"], "after 30 ms\n", False, True),
        (["req_5f2c by ada (cli)"], "req_00ff by root (cli)\n", False, True),
    ],
)
def test_a_page_is_held_to_all_but_the_days_figures(
    shown: list[str], said: str, varies: bool, same: bool
) -> None:
    assert alike(shown, said, varies=varies) is same
