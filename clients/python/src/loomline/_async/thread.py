"""A thread of the server."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from loomline import models
from loomline._async.objects import AsyncObjects
from loomline._async.request import AsyncThreadRequest
from loomline._async.stream import AsyncStream
from loomline._async.transport import AsyncTransport
from loomline._run import RunFold, RunSelector
from loomline._types import (
    UNSET,
    Answer,
    Content,
    Document,
    Format,
    MessageFormat,
    PartContent,
    Policy,
    RunResult,
    Unset,
)
from loomline._wire import Call, new_idempotency_key, present, segment
from loomline.errors import LoomlineConnectionError, LoomlineError, RateLimitedError, ServerError, json_of_response
from loomline.events import Event, read_event

_ANSWER_FIELDS = {"tool_call_id": "toolCallId", "error_text": "errorText", "thread_key": "threadKey"}


class AsyncThread:
    """A thread by its key. Creating this object sends no request.

    Each method can raise `LoomlineConnectionError` and the errors of `ApiError`, such as `NotFoundError` if the server has
    no thread with this key. A method that posts takes an `idempotency_key`: a second call with the same key returns the
    first result, and nothing runs twice. By default each call has a key of its own, so that a lost connection is safe.
    """

    key: str
    """The thread key."""
    info: models.ThreadView | None
    """The fields of the thread as they were last read; none before the first `read()`."""

    def __init__(self, transport: AsyncTransport, key: str, info: models.ThreadView | None = None) -> None:
        self.key = key
        self.info = info
        self._transport = transport
        self._path = f"/api/v1/threads/{segment(key)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key!r})"

    # The thread itself

    async def read(self) -> models.ThreadView:
        """Reads the fields of the thread."""
        return self._known(await self._transport.json(Call("GET", self._path)))

    async def update(
        self, *, title: str | None | Unset = UNSET, metadata: Mapping[str, Any] | None | Unset = UNSET
    ) -> models.ThreadView:
        """Changes the title or the metadata. `None` removes it; an argument that is left out changes nothing.

        `metadata` replaces all of your fields; it does not merge.
        """
        change = {name: value for name, value in (("title", title), ("metadata", metadata)) if value is not UNSET}
        return self._known(await self._transport.json(Call("PATCH", self._path, body=change)))

    async def close(self) -> models.Changed:
        """Closes the thread permanently. Raises `ConflictError` if a run executes or the thread is closed."""
        return models.Changed.model_validate(await self._transport.json(Call("POST", f"{self._path}/close")))

    async def reopen(self) -> models.Changed:
        """Sets the status of a failed thread to `open`. Raises `ConflictError` if it has another status."""
        return models.Changed.model_validate(await self._transport.json(Call("POST", f"{self._path}/reopen")))

    async def delete(self) -> None:
        """Deletes the thread with its events, objects and files, and the threads of its sub-agents.

        Raises `ConflictError` if a run executes or if the thread has forks.
        """
        await self._transport.send(Call("DELETE", self._path))

    # Forks

    async def fork(self, key: str | None = None, at: int | None = None) -> AsyncThread:
        """Creates a thread that shares the log of this one up to an event.

        `key` is the key of the new thread, by default its id. `at` is the `seq` of the last event that both share, by
        default the last one. Raises `ConflictError` if the key is taken or a run executes at this event.
        """
        call = Call("POST", f"{self._path}/fork", body=present(key=key, at=at))
        info = models.ThreadView.model_validate(await self._transport.json(call))
        return AsyncThread(self._transport, info.key or info.id, info)

    async def branches(self) -> list[models.BranchView]:
        """Lists the thread with all of its forks and their forks, the root first."""
        listed = await self._transport.json(Call("GET", f"{self._path}/branches"))
        return models.BranchList.model_validate(listed).branches

    async def tree(self, limit: int | None = None) -> models.ThreadTreeView:
        """Lists the threads around the thread: its path from the root, its forks, and the threads of its sub-agents.

        `limit` is the maximum number of threads, at most 1,000, which is the default.
        """
        call = Call("GET", f"{self._path}/tree", {"limit": limit})
        return models.ThreadTreeView.model_validate(await self._transport.json(call))

    async def diff(self, other: str | AsyncThread) -> models.DocumentDiff:
        """Compares the document of the thread with that of another thread."""
        key = other.key if isinstance(other, AsyncThread) else other
        return models.DocumentDiff.model_validate(
            await self._transport.json(Call("GET", f"{self._path}/diff", {"with": key}))
        )

    # Reading

    async def document(self, format: Format = "thread") -> Document:
        """Exports the thread as a document of this format."""
        response = await self._transport.send(Call("GET", f"{self._path}/document", {"format": format}))
        losses = [_loss(line) for line in response.headers.get_list("loomline-loss")]
        return Document(
            content=json_of_response(response),
            losses=losses,
            n_losses=int(response.headers.get("loomline-losses", len(losses))),
            hash=response.headers.get("loomline-content-hash"),
            hash_warning=response.headers.get("loomline-hash-warning"),
        )

    async def messages(
        self, *, limit: int | None = None, before: int | None = None, at: int | None = None
    ) -> models.MessageList:
        """Reads the conversation: messages and answers, oldest first.

        `limit` reads only the end of the thread, about this many messages with their answers, at most 1,000. `before`
        reads the page before this cursor, the `before` of another page. `at` reads the thread as it was after the event
        with this `seq`.
        """
        call = Call("GET", f"{self._path}/messages", {"limit": limit, "before": before, "at": at})
        return models.MessageList.model_validate(await self._transport.json(call))

    async def versions(self, message_id: str) -> models.VersionList:
        """Lists the versions of a message or an answer, including removed ones, oldest first."""
        call = Call("GET", f"{self._path}/messages/{segment(message_id)}/versions")
        return models.VersionList.model_validate(await self._transport.json(call))

    async def content(self, message_id: str, part: int) -> PartContent:
        """Reads the bytes of an image or a file that a message contains. `part` is its position from 0."""
        call = Call("GET", f"{self._path}/messages/{segment(message_id)}/parts/{part}/content")
        response = await self._transport.send(call)
        return PartContent(response.content, response.headers.get("content-type", "application/octet-stream"))

    def follow(
        self,
        after: str | int | None = None,
        *,
        until: Literal["forever", "rest"] = "forever",
        subagents: bool = False,
    ) -> AsyncStream[Event]:
        """Streams the log of the thread: the past events, then new ones as they are stored.

        `after` is the `id` or the `seq` of the last event to leave out, by default none. With `until="rest"` the stream
        ends when all events are sent and no run executes. `subagents` adds a `SubagentEvent` for each event of a sub-agent.

        A lost connection is resumed: each event comes once, in order. After `reconnect_for` seconds of the client without a
        server it raises `LoomlineConnectionError`. If the thread is deleted, it raises `NotFoundError`.

        It raises `ConflictError` with the code `foreign_event_id` if the thread was deleted and created again. The code is
        `ahead_of_log` if the server has lost the end of the log.
        """
        return AsyncStream(self._follow(after, until, subagents))

    # Messages and runs

    async def post(
        self,
        content: Content,
        *,
        agent: str | None = None,
        policy: Policy | None = None,
        max_steps: int | None = None,
        timeout_ms: int | None = None,
        metadata: Any = None,
        channel: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.AcceptedView:
        """Posts a message and returns when it is stored; the run of the agent continues on the server.

        The thread is created if it does not exist. `policy` decides what a busy thread does: `queue` (default), `reject`
        or `interrupt`. `max_steps` and `timeout_ms` (milliseconds) limit the run. `metadata` is stored with the message.

        Raises `InvalidRequestError` for an unknown agent or wrong content, `ConflictError` if the thread is closed or
        rejects the message, `RateLimitedError` if too many messages wait.
        """
        message = _message(content, agent, policy, max_steps, timeout_ms, metadata, channel)
        return await self._accepted("messages", message, idempotency_key)

    async def run(
        self,
        content: Content,
        *,
        agent: str | None = None,
        policy: Policy | None = None,
        max_steps: int | None = None,
        timeout_ms: int | None = None,
        metadata: Any = None,
        channel: str | None = None,
        idempotency_key: str | None = None,
    ) -> RunResult:
        """Posts a message and waits for the end of its run. The arguments and the errors are those of `post()`.

        A run that fails raises nothing: read `status` and `interruption` of the result.
        """
        fold = RunFold()
        message = _message(content, agent, policy, max_steps, timeout_ms, metadata, channel)
        async with aclosing(self._stream(message, idempotency_key, False)) as events:
            async for event in events:
                fold.add(event)
        if not fold.execution_id:
            raise LoomlineError("the run never began: the thread was closed, or the message was removed")
        pending = await self.pending() if fold.has_open_calls else []
        return RunResult(fold.text, fold.status, fold.execution_id, pending, fold.interruption)

    def stream(
        self,
        content: Content,
        *,
        agent: str | None = None,
        policy: Policy | None = None,
        max_steps: int | None = None,
        timeout_ms: int | None = None,
        metadata: Any = None,
        channel: str | None = None,
        subagents: bool = False,
        idempotency_key: str | None = None,
    ) -> AsyncStream[Event]:
        """Posts a message and streams the events of its run, until the run ends. The arguments are those of `post()`.

        The message is posted when the first event is read. A lost connection is resumed as in `follow()`. If you stop
        reading, the run continues; `cancel()` stops it.
        """
        message = _message(content, agent, policy, max_steps, timeout_ms, metadata, channel)
        return AsyncStream(self._stream(message, idempotency_key, subagents))

    async def replace(
        self,
        message_id: str,
        content: Content,
        *,
        agent: str | None = None,
        max_steps: int | None = None,
        timeout_ms: int | None = None,
        metadata: Any = None,
        channel: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.AcceptedView:
        """Replaces a message and removes everything after it; an agent answers the new message.

        Raises `NotFoundError` if there is no such message, `ConflictError` if another request has replaced it.
        """
        message = _message(content, agent, None, max_steps, timeout_ms, metadata, channel)
        return await self._accepted(f"messages/{segment(message_id)}/replace", message, idempotency_key)

    async def regenerate(
        self,
        message_id: str,
        *,
        agent: str | None = None,
        max_steps: int | None = None,
        timeout_ms: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.AcceptedView:
        """Answers a message again and removes everything after the message.

        `message_id` is the message or an item of its answer. `agent` is by default the agent of the last answer.
        """
        body = present(agent=agent, maxSteps=max_steps, timeoutMs=timeout_ms)
        return await self._accepted(f"messages/{segment(message_id)}/regenerate", body, idempotency_key)

    async def runs(
        self, *, limit: int | None = None, before: int | None = None, at: int | None = None
    ) -> models.RunList:
        """Lists the runs of the thread, oldest first. The arguments are those of `messages()`."""
        call = Call("GET", f"{self._path}/runs", {"limit": limit, "before": before, "at": at})
        return models.RunList.model_validate(await self._transport.json(call))

    async def read_run(self, execution_id: str) -> models.RunView:
        """Reads one run with its steps, tool calls, times and tokens."""
        call = Call("GET", f"{self._path}/runs/{segment(execution_id)}")
        return models.RunView.model_validate(await self._transport.json(call))

    async def cancel(self, run: str | None = None, *, reason: str | None = None) -> models.CancelledView:
        """Stops the run that executes, or only the run with this execution id. Withdraws pending calls.

        `reason` is stored as the reason of the interruption, by default `user_cancelled`. Raises `ConflictError` if the
        run has ended.
        """
        path = f"{self._path}/cancel" if run is None else f"{self._path}/runs/{segment(run)}/cancel"
        call = Call("POST", path, body=present(reason=reason))
        return models.CancelledView.model_validate(await self._transport.json(call))

    # Pending calls

    async def pending(self, *, at: int | None = None) -> list[models.PendingView]:
        """Lists the pending calls of the thread and of its sub-agents, now or after the event with the `seq` `at`."""
        call = Call("GET", f"{self._path}/pending", {"at": at})
        return models.PendingCalls.model_validate(await self._transport.json(call)).calls

    async def approve(
        self,
        call_id: str,
        *,
        arguments: Any | Unset = UNSET,
        thread_key: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.AcceptedView:
        """Lets a pending call run. `arguments` replace those of the model. `thread_key` is that of `Answer`.

        The errors are those of `answer()`.
        """
        answer: Answer = {"tool_call_id": call_id, "approved": True}
        if arguments is not UNSET:
            answer["arguments"] = arguments
        if thread_key is not None:
            answer["thread_key"] = thread_key
        return await self.answer([answer], actor=actor, idempotency_key=idempotency_key)

    async def deny(
        self,
        call_id: str,
        reason: str | None = None,
        *,
        thread_key: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.AcceptedView:
        """Refuses a pending call. The model reads the `reason`. `thread_key` is that of `Answer`.

        The errors are those of `answer()`.
        """
        answer: Answer = {"tool_call_id": call_id, "approved": False}
        if reason is not None:
            answer["message"] = reason
        if thread_key is not None:
            answer["thread_key"] = thread_key
        return await self.answer([answer], actor=actor, idempotency_key=idempotency_key)

    async def answer(
        self, answers: Sequence[Answer], *, actor: str | None = None, idempotency_key: str | None = None
    ) -> models.AcceptedView:
        """Answers pending calls of the thread or of one of its sub-agents; if one does not fit, none is written.

        The agent continues when no call is pending any more. `actor` is the person or program that answers.

        Raises `NotFoundError` for an unknown call, `ConflictError` if the call has an answer, was withdrawn or waits for
        another kind of answer, and `InvalidRequestError` if the tool does not accept the value.
        """
        written = [{_ANSWER_FIELDS.get(name, name): value for name, value in answer.items()} for answer in answers]
        return await self._accepted("answers", present(answers=written, actor=actor), idempotency_key)

    # Requests and actors

    async def requests(
        self, all: bool = False, *, actor: str | None = None, limit: int | None = None
    ) -> AsyncIterator[models.RequestView]:
        """Lists the open requests, or with `all` also the closed ones. `actor`: only those that this actor may answer.

        `limit` is the number of requests of one response, at most 200. The iterator reads all pages.
        """
        query = {"state": "all" if all else None, "actor": actor, "limit": limit}
        after: int | None = None
        while True:
            call = Call("GET", f"{self._path}/requests", {**query, "after": after})
            page = models.RequestList.model_validate(await self._transport.json(call))
            for request in page.requests:
                yield request
            if page.next is None:
                return
            after = page.next

    def request(self, request_id: str) -> AsyncThreadRequest:
        """The request with this id, such as `decision:seat`. Sends nothing."""
        return AsyncThreadRequest(self._transport, f"{self._path}/requests/{segment(request_id)}", request_id)

    async def actors(self) -> list[models.ActorView]:
        """Lists the actors of the thread by their ids."""
        listed = await self._transport.json(Call("GET", f"{self._path}/actors"))
        return models.ActorList.model_validate(listed).actors

    async def join(
        self,
        actor: str,
        *,
        capabilities: Sequence[str | Mapping[str, Any]] = (),
        initiator: bool = False,
        fields: Mapping[str, Any] | None = None,
    ) -> models.ActorChanged:
        """Adds an actor to the thread and binds it to the API key.

        `capabilities` are the URLs of the AITP schemas that it reads, `fields` further fields of the actor. `initiator`
        makes it the party that began the thread. Raises `ConflictError` if the actor can't join.
        """
        body = {"actor": {**(fields or {}), "id": actor, "capabilities": list(capabilities)}, "initiator": initiator}
        call = Call("POST", f"{self._path}/actors", body=body)
        return models.ActorChanged.model_validate(await self._transport.json(call))

    async def declare_capabilities(
        self, actor: str, capabilities: Sequence[str | Mapping[str, Any]]
    ) -> models.ActorChanged:
        """Replaces the capabilities of an actor."""
        call = Call("PATCH", f"{self._path}/actors/{segment(actor)}", body={"capabilities": list(capabilities)})
        return models.ActorChanged.model_validate(await self._transport.json(call))

    async def leave(self, actor: str) -> models.ActorLeft:
        """Removes an actor from the thread and cancels its open requests."""
        left = await self._transport.json(Call("DELETE", f"{self._path}/actors/{segment(actor)}"))
        return models.ActorLeft.model_validate(left)

    # Data of other programs

    def objects(self, kind: str) -> AsyncObjects:
        """The objects of a kind that clients store beside the thread. Sends nothing.

        `kind` has 1 to 64 characters of `a-z 0-9 - . _`. Objects are deleted with the thread; agents do not read them.
        """
        return AsyncObjects(self._transport, f"{self._path}/objects/{segment(kind)}")

    async def import_messages(
        self, messages: Any, source: MessageFormat, *, agent: str | None = None, seq: int | None = None
    ) -> AsyncImported:
        """Appends a history to the thread, which exists already. Starts no agent, and withdraws the pending calls.

        `messages` is a list of JSON values, or its JSON text as `str` or `bytes`, in the format `source`. `agent` is the
        agent of the runs for which the messages name none. With `seq` the messages are appended only if this is the last
        event of the thread: that makes it safe to repeat the call.

        Raises `ConflictError` if the thread has a later event or a run executes, and `InvalidRequestError` if the messages
        do not have the format.
        """
        query = {"from": source, "agent": agent, "seq": seq}
        call = Call("POST", f"{self._path}/import", query, raw=json_text(messages))
        return imported(self._transport, await self._transport.json(call))

    # Below

    def _known(self, fields: Any) -> models.ThreadView:
        self.info = models.ThreadView.model_validate(fields)
        return self.info

    async def _accepted(
        self, path: str, body: Mapping[str, Any], idempotency_key: str | None
    ) -> models.AcceptedView:
        call = Call(
            "POST", f"{self._path}/{path}", body=body, idempotency_key=idempotency_key or new_idempotency_key()
        )
        return models.AcceptedView.model_validate(await self._transport.json(call))

    def _events(self, after: str | int | None, until: str, subagents: bool) -> Call:
        query = {"until": until, "subagents": subagents or None}
        last_event_id = None if after is None else str(after)
        return Call("GET", f"{self._path}/events", query, last_event_id=last_event_id, streams=True)

    async def _follow(
        self, after: str | int | None, until: str, subagents: bool
    ) -> AsyncGenerator[Event, None]:
        def call_after(last_id: str | None) -> Call:
            return self._events(after if last_id is None else last_id, until, subagents)

        async with aclosing(self._transport.stream(call_after)) as messages:
            last_id = None if after is None else str(after)
            async for message in messages:
                if message is not None:
                    last_id = message.id or last_id
                    yield read_event(message.id or "", message.name, message.data)
                elif until == "rest" and await self._is_at_rest(last_id):
                    return

    async def _stream(
        self, message: Mapping[str, Any], idempotency_key: str | None, subagents: bool
    ) -> AsyncGenerator[Event, None]:
        post = Call(
            "POST",
            f"{self._path}/messages",
            {"subagents": subagents or None},
            body=message,
            idempotency_key=idempotency_key or new_idempotency_key(),
            streams=True,
        )

        def call_after(last_id: str | None) -> Call:
            return post if last_id is None else self._events(last_id, "rest", subagents)

        selector = RunSelector()
        async with aclosing(self._transport.stream(call_after)) as received:
            last_id = None
            async for sent in received:
                if sent is None:
                    if await self._is_at_rest(last_id):
                        return
                    continue
                last_id = sent.id or last_id
                event = read_event(sent.id or "", sent.name, sent.data)
                if selector.select(event):
                    yield event
                if selector.is_over:
                    return

    async def _is_at_rest(self, last_id: str | None) -> bool:
        """Whether a stream that the server ended at this event is over. A server that stops ends its streams too."""
        try:
            thread = await self.read()
        except (LoomlineConnectionError, RateLimitedError, ServerError):
            return False
        received = 0 if last_id is None else int(last_id.split(".")[0])
        return thread.status != "streaming" and thread.seq <= received


@dataclass(frozen=True)
class AsyncImported:
    """The result of an import."""

    thread: AsyncThread
    """The thread; its `info` has the fields."""
    losses: list[models.LossView]
    """Data that could not be imported."""


def imported(transport: AsyncTransport, response: Any) -> AsyncImported:
    """The result of an import."""
    view = models.ImportedView.model_validate(response)
    return AsyncImported(AsyncThread(transport, view.thread.key or view.thread.id, view.thread), view.losses)


def json_text(content: Any) -> bytes:
    """A JSON text unchanged, or that of a JSON value."""
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()


def _message(
    content: Content,
    agent: str | None,
    policy: str | None,
    max_steps: int | None,
    timeout_ms: int | None,
    metadata: Any,
    channel: str | None,
) -> dict[str, Any]:
    return present(
        content=content,
        agent=agent,
        policy=policy,
        maxSteps=max_steps,
        timeoutMs=timeout_ms,
        metadata=metadata,
        channel=channel,
    )


def _loss(line: str) -> models.LossView:
    pointer, _, what = line.partition(" ")
    return models.LossView(pointer=pointer, what=what)
