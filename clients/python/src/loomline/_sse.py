"""Server-sent events: bytes in, events out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass
class ServerSentEvent:
    """An event as it was sent."""

    id: str | None
    name: str
    text: str

    @property
    def data(self) -> Any:
        """The JSON value."""
        return json.loads(self.text)


class Decoder:
    """Cuts the bytes of a stream into events. An event that is cut off is never returned."""

    def __init__(self) -> None:
        self._rest = b""
        self._id: str | None = None
        self._name = "message"
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """The events that end in this chunk."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            text = line.removesuffix(b"\r").decode()
            if text:
                self._field(text)
            else:
                if self._data:
                    yield ServerSentEvent(self._id, self._name, "\n".join(self._data))
                self._id, self._name, self._data = None, "message", []

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            self._id = value
        elif name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
