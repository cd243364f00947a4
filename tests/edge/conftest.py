from __future__ import annotations

import pytest

from tests.support.running import Way


@pytest.fixture(params=["protocol", "asgi"])
def way(request: pytest.FixtureRequest) -> Way:
    """Both writers of replies stand under the same tests."""
    value: Way = request.param
    return value
