"""What a process knows of threads without asking."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

REMEMBERED = 512


class Memory:
    """The newest entries, by keys that begin with a thread."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[Any, ...]) -> Any:
        with self._lock:
            return self._entries.get(key)

    def put(self, key: tuple[Any, ...], entry: Any) -> None:
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            if len(self._entries) > REMEMBERED:
                self._entries.popitem(last=False)

    def forget(self, thread: str) -> None:
        with self._lock:
            for key in [key for key in self._entries if key[0] == thread]:
                del self._entries[key]
