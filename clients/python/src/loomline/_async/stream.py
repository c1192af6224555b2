"""A stream as an iterator."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class AsyncStream(Generic[T]):
    """An iterator over the events of a stream. The connection opens with the first event that is asked for.

    Leaving the loop early does not close the connection at once: use `async with`, or call `close()`.
    """

    def __init__(self, events: AsyncGenerator[T, None]) -> None:
        self._events = events

    def __aiter__(self) -> AsyncStream[T]:
        return self

    async def __anext__(self) -> T:
        return await self._events.__anext__()

    async def close(self) -> None:
        """Closes the connection. A run continues on the server."""
        await self._events.aclose()

    async def __aenter__(self) -> AsyncStream[T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
