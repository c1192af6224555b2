"""Sends requests, repeats them where that is safe, and resumes streams."""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx

from loomline._sse import Decoder, ServerSentEvent
from loomline._wire import EVENT_STREAM, MAX_RETRY_AFTER_SECONDS, RETRIED, Call, pause_seconds, settings
from loomline.errors import (
    LoomlineConnectionError,
    LoomlineError,
    error_of_event,
    error_of_response,
    foreign,
    json_of_response,
)


class AsyncTransport:
    """The connection to a server."""

    def __init__(
        self, base_url: str | None, api_key: str | None, timeout: float, max_retries: int, reconnect_for: float
    ) -> None:
        self._http = httpx.AsyncClient(**settings(base_url, api_key))
        self._timeout = timeout
        self._max_retries = max_retries
        self._reconnect_for = reconnect_for

    async def close(self) -> None:
        await self._http.aclose()

    async def send(self, call: Call) -> httpx.Response:
        """The response to a request that succeeded."""
        attempt = 0
        while True:
            pause: float | None = None
            error: LoomlineError
            try:
                response = await self._http.send(call.request(self._http, self._timeout))
            except httpx.RequestError as cause:
                error = _lost(call, cause)
            else:
                if response.is_success:
                    return response
                error = error_of_response(response)
                pause = error.retry_after
                if response.status_code not in RETRIED or (pause or 0) > MAX_RETRY_AFTER_SECONDS:
                    raise error
            if not call.is_repeatable or attempt >= self._max_retries:
                raise error
            await asyncio.sleep(pause_seconds(attempt, pause))
            attempt += 1

    async def json(self, call: Call) -> Any:
        return json_of_response(await self.send(call))

    async def stream(
        self, call_after: Callable[[str | None], Call]
    ) -> AsyncGenerator[ServerSentEvent | None, None]:
        """The events of a stream over all of its connections, and `None` when the server ends one of them.

        `call_after` is the request that continues behind the event of an id. The caller stops reading when the stream is
        over. Until the server has answered once, attempts are counted; then the time since it was last heard is.
        """
        last_id: str | None = None
        has_connected = False
        attempt = 0
        lost_at: float | None = None
        while True:
            pause: float | None = None
            call = call_after(last_id)
            error: LoomlineError = LoomlineConnectionError(f"{call.method} {call.path}: the server ended the stream")
            try:
                response = await self._http.send(call.request(self._http, self._timeout), stream=True)
                try:
                    if response.is_success and not response.headers.get("content-type", "").startswith(EVENT_STREAM):
                        error = foreign(response, EVENT_STREAM)
                    elif response.is_success:
                        has_connected = True
                        decoder = Decoder()
                        async for chunk in response.aiter_bytes():
                            attempt, lost_at = 0, None
                            for event in decoder.feed(chunk):
                                if event.name == "error":
                                    raise error_of_event(event.data)
                                last_id = event.id or last_id
                                yield event
                        yield None
                    else:
                        await response.aread()
                        error = error_of_response(response)
                        pause = error.retry_after
                        if response.status_code not in RETRIED or (pause or 0) > MAX_RETRY_AFTER_SECONDS:
                            raise error
                finally:
                    await response.aclose()
            except httpx.RequestError as cause:
                error = _lost(call, cause)
            now = clock.monotonic()
            lost_at = now if lost_at is None else lost_at
            if now - lost_at > self._reconnect_for if has_connected else attempt >= self._max_retries:
                raise error
            await asyncio.sleep(pause_seconds(attempt, pause))
            attempt += 1


def _lost(call: Call, cause: httpx.RequestError) -> LoomlineConnectionError:
    error = LoomlineConnectionError(f"{call.method} {call.path}: {cause or type(cause).__name__}")
    error.__cause__ = cause
    return error
