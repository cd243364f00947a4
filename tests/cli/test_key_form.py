"""What is wrong with a key by its form."""

from __future__ import annotations

from gateway.cli.key_form import flaws
from tests.cli.doctor.cases import FILE_KEY
from tests.support.running import KEY


def test_a_key_that_may_be_right_has_no_flaw() -> None:
    assert flaws(KEY) == flaws(FILE_KEY) == []
    assert flaws(" ") == ["it is empty"]
