"""The parts of the transport that both surfaces share."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

import httpx

DEFAULT_SERVER = "http://127.0.0.1:8787"
RETRIED = (429, 502, 503, 504)
MAX_RETRY_AFTER_SECONDS = 60.0
MAX_PAUSE_SECONDS = 5.0
EVENT_STREAM = "text/event-stream"
# A silent stream sends a comment every 15 s: after three missing ones the connection is dead.
SILENCE_SECONDS = 45.0


@dataclass
class Call:
    """A request."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    """JSON; none if null."""
    raw: bytes | None = None
    """A JSON text, in place of `body`."""
    idempotency_key: str | None = None
    last_event_id: str | None = None
    streams: bool = False

    @property
    def is_repeatable(self) -> bool:
        return self.method in ("GET", "PUT") or self.idempotency_key is not None

    def request(self, client: httpx.Client | httpx.AsyncClient, timeout: float) -> httpx.Request:
        headers = {"accept": EVENT_STREAM if self.streams else "application/json"}
        if self.idempotency_key is not None:
            headers["idempotency-key"] = self.idempotency_key
        if self.last_event_id is not None:
            headers["last-event-id"] = self.last_event_id
        if self.raw is not None:
            headers["content-type"] = "application/json"
        return client.build_request(
            self.method,
            self.path,
            params=[(name, entry) for name, value in self.query.items() for entry in _query_values(value)],
            json=self.body,
            content=self.raw,
            headers=headers,
            timeout=httpx.Timeout(timeout, read=SILENCE_SECONDS if self.streams else timeout),
        )


def settings(base_url: str | None, api_key: str | None) -> dict[str, Any]:
    """The arguments of the HTTP client."""
    key = api_key or os.environ.get("LOOMLINE_KEY")
    headers = {"user-agent": f"loomline-python/{version('loomline')}"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    return {
        "base_url": base_url or os.environ.get("LOOMLINE_SERVER") or DEFAULT_SERVER,
        "headers": headers,
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=20),
    }


def new_idempotency_key() -> str:
    return uuid.uuid4().hex


def segment(text: str) -> str:
    """A key or an id as a segment of a path."""
    if not text:
        raise ValueError("a key or an id in a path has at least one character")
    return quote(text, safe="") if text not in (".", "..") else text.replace(".", "%2E")


def present(**fields: Any) -> dict[str, Any]:
    """The fields that are not null."""
    return {name: value for name, value in fields.items() if value is not None}


def pause_seconds(attempt: int, retry_after: float | None) -> float:
    """The time before the attempt after this one, from 0."""
    if retry_after is not None:
        return retry_after
    return random.uniform(0.5, 1.0) * min(MAX_PAUSE_SECONDS, 0.2 * 2.0**attempt)


def _query_values(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [str(entry) for entry in value]
    if isinstance(value, bool):
        return [str(value).lower()]
    return [value.isoformat() if isinstance(value, datetime) else str(value)]
