"""Runs one description of a conversation with the server on both clients.

Steps are a generator: it yields a `Call` and receives the response. Whatever else it yields is a result.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any, TypeVar

import httpx

from loomline._wire import Call
from loomline.errors import LoomlineError

Result = TypeVar("Result")
Steps = Generator[Any, Any, Result]


def run(client: Any, steps: Steps[Result]) -> Result:
    """The value that the steps return."""
    answer: httpx.Response | LoomlineError | None = None
    while True:
        try:
            call = _next(steps, answer)
        except StopIteration as end:
            value: Result = end.value
            return value
        answer = _send(client, call)


async def arun(client: Any, steps: Steps[Result]) -> Result:
    """The value that the steps return."""
    answer: httpx.Response | LoomlineError | None = None
    while True:
        try:
            call = _next(steps, answer)
        except StopIteration as end:
            value: Result = end.value
            return value
        answer = await _asend(client, call)


def each(client: Any, steps: Steps[None]) -> Iterator[Any]:
    """The results of the steps."""
    answer: httpx.Response | LoomlineError | None = None
    while True:
        try:
            step = _next(steps, answer)
        except StopIteration:
            return
        if isinstance(step, Call):
            answer = _send(client, step)
        else:
            answer = None
            yield step


async def aeach(client: Any, steps: Steps[None]) -> AsyncIterator[Any]:
    """The results of the steps."""
    answer: httpx.Response | LoomlineError | None = None
    while True:
        try:
            step = _next(steps, answer)
        except StopIteration:
            return
        if isinstance(step, Call):
            answer = await _asend(client, step)
        else:
            answer = None
            yield step


def _next(steps: Steps[Any], answer: httpx.Response | LoomlineError | None) -> Any:
    return steps.throw(answer) if isinstance(answer, LoomlineError) else steps.send(answer)


def _send(client: Any, call: Call) -> httpx.Response | LoomlineError:
    try:
        response: httpx.Response = client._transport.send(call)
    except LoomlineError as error:
        return error
    return response


async def _asend(client: Any, call: Call) -> httpx.Response | LoomlineError:
    try:
        response: httpx.Response = await client._transport.send(call)
    except LoomlineError as error:
        return error
    return response
