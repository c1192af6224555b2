"""Stores the conversation of a Pydantic AI agent in a thread.

Needs the package `pydantic-ai-slim`. The thread keeps the messages unchanged, so they come back equal. Every protocol shows
them, and what an agent of the server or a person adds to the thread is part of the history, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from loomline import AsyncThread, Thread
from loomline._wire import Call, present, segment
from loomline.adapters._steps import Steps, arun, run
from loomline.errors import ApiError, LoomlineError, NotFoundError

__all__ = ["AsyncHistory", "History", "HistoryDiffersError", "Run"]


class HistoryDiffersError(LoomlineError):
    """The thread and the local history differ. Nothing was appended: load the history again."""


class Run(Protocol):
    """A result of an agent, such as `AgentRunResult`."""

    def all_messages(self) -> list[ModelMessage]: ...

    def new_messages(self) -> list[ModelMessage]: ...


class _Steps:
    """What this process knows of a thread, and how it reads and extends the thread."""

    def __init__(self, key: str, agent: str | None) -> None:
        self._key = key
        self._agent = agent
        self._messages: list[ModelMessage] = []
        self._seq: int | None = None

    def load(self) -> Steps[list[ModelMessage]]:
        self._seq, self._messages = yield from self._read()
        return list(self._messages)

    def append(self, messages: Run | Sequence[ModelMessage]) -> Steps[None]:
        new = _normal(messages if isinstance(messages, Sequence) else self._new_messages(messages))
        if not new:
            return
        expected = self._messages + new
        if self._seq is None:
            created = yield Call("POST", "/api/v1/threads", body={"key": self._key})
            self._seq = created.json()["seq"]
            if created.status_code == 200 and (yield from self._has(expected)):
                return
        try:
            yield from self._send(new)
        except LoomlineError as error:
            is_conflict = isinstance(error, ApiError) and error.code == "conflict"
            if isinstance(error, ApiError) and error.status < 500 and not is_conflict:
                raise
            if not (yield from self._has(expected)):
                if not is_conflict:
                    raise
                yield from self._send(new)
        self._messages = expected

    def _new_messages(self, result: Run) -> list[ModelMessage]:
        everything, new = result.all_messages(), result.new_messages()
        before = everything[: len(everything) - len(new)]
        if _normal(before) != self._messages:
            raise HistoryDiffersError(
                f"thread {self._key!r}: the run began with {len(before)} messages that are not the {len(self._messages)} "
                "messages of the history; nothing was appended: pass the messages of load() as message_history"
            )
        return new

    def _send(self, messages: list[ModelMessage]) -> Steps[None]:
        query = present(**{"from": "pydantic-ai", "agent": self._agent, "seq": self._seq})
        raw = ModelMessagesTypeAdapter.dump_json(messages)
        response = yield Call("POST", f"{self._path}/import", query, raw=raw)
        self._seq = response.json()["thread"]["seq"]

    def _has(self, expected: list[ModelMessage]) -> Steps[bool]:
        """Whether the thread has these messages already. If not, it has those that this process knows, and no others."""
        seq, stored = yield from self._read()
        if stored not in (expected, self._messages):
            raise HistoryDiffersError(
                f"thread {self._key!r} has {len(stored)} messages that are not the {len(self._messages)} messages of the "
                "history; nothing was appended: load() the history again"
            )
        self._seq, self._messages = seq, stored
        return stored == expected

    def _read(self) -> Steps[tuple[int | None, list[ModelMessage]]]:
        try:
            # Events between the two responses make the next append fail, so nothing is lost.
            seq = (yield Call("GET", self._path)).json()["seq"]
            document = yield Call("GET", f"{self._path}/document", {"format": "pydantic-ai"})
        except NotFoundError:
            return None, []
        return seq, ModelMessagesTypeAdapter.validate_json(document.content)

    @property
    def _path(self) -> str:
        return f"/api/v1/threads/{segment(self._key)}"


class History:
    """The messages of a thread. `agent` is the name of the agent that produces the new ones."""

    def __init__(self, thread: Thread, *, agent: str | None = None) -> None:
        self._thread = thread
        self._steps = _Steps(thread.key, agent)

    def load(self) -> list[ModelMessage]:
        """The messages of the thread, for `message_history`. Empty if the thread does not exist."""
        return run(self._thread, self._steps.load())

    def append(self, messages: Run | Sequence[ModelMessage]) -> None:
        """Appends the new messages of a run, or these messages. Creates the thread if it does not exist.

        Raises `HistoryDiffersError`, and appends nothing, if the thread has other messages than those of `load()` and of
        the earlier `append()`, or if the run began with other messages. It is safe to repeat a call that failed.
        """
        run(self._thread, self._steps.append(messages))


class AsyncHistory:
    """The messages of a thread. `agent` is the name of the agent that produces the new ones."""

    def __init__(self, thread: AsyncThread, *, agent: str | None = None) -> None:
        self._thread = thread
        self._steps = _Steps(thread.key, agent)

    async def load(self) -> list[ModelMessage]:
        """The messages of the thread, for `message_history`. Empty if the thread does not exist."""
        return await arun(self._thread, self._steps.load())

    async def append(self, messages: Run | Sequence[ModelMessage]) -> None:
        """Appends the new messages of a run, or these messages. Creates the thread if it does not exist.

        Raises `HistoryDiffersError`, and appends nothing, if the thread has other messages than those of `load()` and of
        the earlier `append()`, or if the run began with other messages. It is safe to repeat a call that failed.
        """
        await arun(self._thread, self._steps.append(messages))


def _normal(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages as they are after a way through JSON."""
    return ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(list(messages)))
