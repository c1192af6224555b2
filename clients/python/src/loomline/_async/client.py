"""The client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from types import TracebackType
from typing import Any, Literal

from loomline import models
from loomline._async.stream import AsyncStream
from loomline._async.thread import AsyncImported, AsyncThread, imported, json_text
from loomline._async.transport import AsyncTransport
from loomline._types import Format
from loomline._wire import Call, present
from loomline.events import Notice


class AsyncLoomline:
    """A client of a Loomline server.

    `base_url` is by default `LOOMLINE_SERVER` of the environment, else `http://127.0.0.1:8787`. `api_key` is by default
    `LOOMLINE_KEY`; development mode needs none. `timeout` is the maximum time in seconds to connect and between two pieces
    of a response. A request that is safe to repeat is sent at most `max_retries` times again. A stream that lost its
    connection gives up after `reconnect_for` seconds without a server.

    Close it with `close()`, or use it as a context manager.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 60.0,
        max_retries: int = 2,
        reconnect_for: float = 60.0,
    ) -> None:
        self._transport = AsyncTransport(base_url, api_key, timeout, max_retries, reconnect_for)

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    async def __aenter__(self) -> AsyncLoomline:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def thread(self, key: str) -> AsyncThread:
        """The thread with this key. Sends no request; the first message creates the thread."""
        return AsyncThread(self._transport, key)

    async def create_thread(
        self, key: str | None = None, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> AsyncThread:
        """Creates a thread, or returns the thread that has the key, unchanged. Its `info` has the fields of the thread.

        `key` is by default the id of the new thread.
        """
        body = present(key=key, title=title, metadata=metadata)
        info = models.ThreadView.model_validate(await self._transport.json(Call("POST", "/api/v1/threads", body=body)))
        return AsyncThread(self._transport, info.key or info.id, info)

    def threads(
        self,
        *,
        prefix: str | None = None,
        status: Literal["open", "streaming", "failed", "closed"] | None = None,
        agent: str | None = None,
        waits: bool | None = None,
        since: datetime | str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[models.ListedThread]:
        """Lists the threads, the one that changed last first.

        Only threads whose key has the `prefix`; of this `status`; whose last run was by this `agent`; with a pending call or
        an open request (`waits=True`); that changed at the time `since` (RFC 3339 or with a time zone) or later.

        `limit` is the number of threads of one response, by default 50, at most 500. The iterator reads all pages.
        """
        return self._listed(prefix=prefix, status=status, agent=agent, waits=waits, since=since, limit=limit)

    def search(
        self,
        words: str,
        *,
        prefix: str | None = None,
        status: Literal["open", "streaming", "failed", "closed"] | None = None,
        agent: str | None = None,
        waits: bool | None = None,
        since: datetime | str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[models.ListedThread]:
        """Lists the threads with a text or a title that has all words. The last word may be the beginning of a word.

        `snippets` of a thread shows where the words are. The other arguments are those of `threads()`; `limit` is at most
        100.
        """
        return self._listed(q=words, prefix=prefix, status=status, agent=agent, waits=waits, since=since, limit=limit)

    async def import_document(
        self, document: Any, source: Format = "thread", *, key: str | None = None, agent: str | None = None
    ) -> AsyncImported:
        """Imports a conversation as a new thread.

        `document` is a JSON value, or a JSON text as `str` or `bytes`, in the format `source`. `key` is by default the id
        of the new thread. `agent` is the agent of the runs for which the document names none.

        Raises `InvalidRequestError` if the document does not have the format, `ConflictError` if the key is taken.
        """
        query = {"from": source, "key": key, "agent": agent}
        call = Call("POST", "/api/v1/import", query, raw=json_text(document))
        return imported(self._transport, await self._transport.json(call))

    async def waiting(
        self,
        *,
        kind: Literal["approval", "external", "request"] | None = None,
        agent: str | None = None,
        prefix: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[models.WaitingView]:
        """Lists the pending calls and open requests of all threads, in the order in which the threads began to wait.

        Only of this `kind`; of this `agent`; of threads whose key has the `prefix`; that began to wait at `since` or later,
        at `until` or earlier. `limit` is the number of entries of one response, at most 200. The iterator reads all pages.
        """
        query = {"kind": kind, "agent": agent, "prefix": prefix, "since": since, "until": until, "limit": limit}
        cursor: str | None = None
        while True:
            call = Call("GET", "/api/v1/waiting", {**query, "cursor": cursor})
            page = models.WaitingList.model_validate(await self._transport.json(call))
            for entry in page.entries:
                yield entry
            if page.next is None:
                return
            cursor = page.next

    def follow(self, after: str | None = None) -> AsyncStream[Notice]:
        """Streams a notice for each change of any thread that the API key may see.

        `after` is the `id` of the last notice that you received. A lost connection is resumed: then each thread that
        changed since has a notice, and the last one may be repeated. After `reconnect_for` seconds of the client without a
        server it raises `LoomlineConnectionError`.
        """
        return AsyncStream(self._follow(after))

    async def agents(self) -> list[models.AgentView]:
        """Lists the agents of the server by name."""
        return models.AgentList.model_validate(await self._transport.json(Call("GET", "/api/v1/agents"))).agents

    async def web_token(
        self,
        agent: str,
        thread_prefix: str,
        *,
        actor: str | None = None,
        scopes: Sequence[Literal["read", "write"]] | None = None,
        may_answer: bool = False,
    ) -> models.WebToken:
        """Creates a token for the chat in a page of another site. It is valid for 10 minutes.

        The token is valid for threads whose key has the prefix. `scopes` are by default `read` and `write`. `may_answer`
        allows to answer pending calls. Raises `NotFoundError` if the configuration has no `embed_origins`.
        """
        body = present(
            agent=agent, threadPrefix=thread_prefix, actor=actor, scopes=scopes, mayAnswer=may_answer or None
        )
        return models.WebToken.model_validate(
            await self._transport.json(Call("POST", "/api/v1/web/tokens", body=body))
        )

    async def _listed(self, **query: Any) -> AsyncIterator[models.ListedThread]:
        cursor: str | None = None
        while True:
            call = Call("GET", "/api/v1/threads", {**query, "cursor": cursor})
            page = models.ThreadList.model_validate(await self._transport.json(call))
            for thread in page.threads:
                yield thread
            if page.next is None:
                return
            cursor = page.next

    async def _follow(self, after: str | None) -> AsyncGenerator[Notice, None]:
        def call_after(last_id: str | None) -> Call:
            return Call("GET", "/api/v1/events", last_event_id=last_id or after, streams=True)

        async with aclosing(self._transport.stream(call_after)) as messages:
            async for message in messages:
                if message is not None:
                    yield Notice.model_validate({**message.data, "id": message.id, "type": message.name})
