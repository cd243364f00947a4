"""`--strict-services`: CI rests on it to say that nothing was left out."""

from __future__ import annotations

from pathlib import Path

import pytest

SKIPS = """
import pytest

@pytest.mark.skipif(True, reason="no PostgreSQL here")
def test_marked(): ...

def test_called():
    pytest.skip("no browser here")

@pytest.mark.xfail(reason="known")
def test_known():
    assert False

def test_runs(): ...
"""
BARE = ("-p", "no:asyncio", "-p", "no:cacheprovider")
SKIPS_WHOLE = "import pytest\npytest.skip('no Valkey here', allow_module_level=True)\n"


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text())
    pytester.makepyfile(test_parts=SKIPS, test_whole=SKIPS_WHOLE)
    return pytester


def test_a_skip_is_a_skip_by_default(suite: pytest.Pytester) -> None:
    result = suite.runpytest(*BARE)
    result.assert_outcomes(passed=1, skipped=3, xfailed=1)
    assert result.ret == 0


def test_a_skip_fails_when_services_are_required(suite: pytest.Pytester) -> None:
    result = suite.runpytest(*BARE, "--strict-services")
    result.assert_outcomes(passed=0, errors=1)
    assert result.ret != 0
    result.stdout.fnmatch_lines("*no Valkey here*")


def test_each_skipped_test_fails_with_its_reason(suite: pytest.Pytester) -> None:
    result = suite.runpytest(*BARE, "--strict-services", "test_parts.py")
    result.assert_outcomes(passed=1, failed=1, errors=1, xfailed=1)
    result.stdout.fnmatch_lines(["*no PostgreSQL here*", "*no browser here*"])
