# Written by generate.py from src/loomline/_async/stream.py: do not edit.
"""A stream as an iterator."""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class Stream(Generic[T]):
    """An iterator over the events of a stream. The connection opens with the first event that is asked for.

    Leaving the loop early does not close the connection at once: use `with`, or call `close()`.
    """

    def __init__(self, events: Generator[T, None]) -> None:
        self._events = events

    def __iter__(self) -> Stream[T]:
        return self

    def __next__(self) -> T:
        return self._events.__next__()

    def close(self) -> None:
        """Closes the connection. A run continues on the server."""
        self._events.close()

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
