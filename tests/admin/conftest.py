from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.admin.fake import ADMIN_KEY, FakeControl, application, settings


@pytest.fixture
def control() -> FakeControl:
    return FakeControl(settings())


@pytest.fixture
async def client(control: FakeControl) -> AsyncIterator[httpx.AsyncClient]:
    """Sends the admin key."""
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(application(control)),
        base_url="http://gateway.test/admin/v1",
        headers={"authorization": f"Bearer {ADMIN_KEY}"},
    ) as client:
        yield client
