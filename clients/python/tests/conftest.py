from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from loomline import AsyncLoomline, AsyncThread, Loomline, Thread
from rig import Server, Wire

CONFIG = """
[web]
embed_origins = ["https://shop.example"]
"""


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server with the agents of development mode."""
    server = Server(CONFIG)
    yield server
    server.stop()


@pytest.fixture
def wire(server: Server) -> Iterator[Wire]:
    """A wire to the server."""
    wire = Wire(server.base)
    yield wire
    wire.close()


@pytest.fixture
def mortal() -> Iterator[Server]:
    """A server that the test may end."""
    server = Server(CONFIG)
    yield server
    server.stop()


@pytest.fixture
def key() -> str:
    """The key of a new thread."""
    return f"test/{uuid.uuid4()}"


@pytest.fixture
def client(server: Server) -> Iterator[Loomline]:
    with Loomline(server.base) as client:
        yield client


@pytest.fixture
def thread(client: Loomline, key: str) -> Thread:
    return client.thread(key)


@pytest_asyncio.fixture
async def async_client(server: Server) -> AsyncIterator[AsyncLoomline]:
    async with AsyncLoomline(server.base) as client:
        yield client


@pytest.fixture
def async_thread(async_client: AsyncLoomline, key: str) -> AsyncThread:
    return async_client.thread(key)
