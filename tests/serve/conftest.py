import pytest_asyncio

from support.served import serving


@pytest_asyncio.fixture
async def served(tmp_path):
    async with serving(tmp_path / "home") as found:
        yield found
