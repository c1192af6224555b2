"""Stores the sessions of the OpenAI Agents SDK in threads.

Needs the package `openai-agents`. The items of a session are items of the thread, so every protocol shows them. The thread
has its own form of an item. Where this form differs from the item of the SDK, an object of the kind `openai-agents-item`
with the id of the item has the original. It also has the items that follow and that the thread can't hold, such as calls of
hosted tools. The id `start` stands for the place before the first item.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, cast

from agents import SessionSettings, TResponseInputItem
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from loomline import AsyncLoomline
from loomline._wire import Call, segment
from loomline.errors import InvalidRequestError, NotFoundError

__all__ = ["LoomlineSession"]

logger = logging.getLogger(__name__)

KIND = "openai-agents-item"
START = "start"
MAX_ITEMS = 20
PAGE = 100

Item = dict[str, Any]
Original = dict[str, Any]


class LoomlineSession:
    """A session whose items are those of the thread with the key `session_id`.

    `get_items` also returns what was added to the thread by other protocols and by agents of the server, in the form of the
    server. `clear_session` deletes the thread. `client` is by default made from the environment (`LOOMLINE_SERVER`,
    `LOOMLINE_KEY`): then use the session as a context manager, or close it.

    Methods of one session object wait for each other. Adding more than 20 items takes several requests: an error in between
    leaves the first ones stored. A request whose response is lost is not repeated; it may have added its items.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        client: AsyncLoomline | None = None,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = (
            SessionSettings() if session_settings is None else coerce_session_settings(session_settings)
        )
        self._has_own_client = client is None
        self._client = client or AsyncLoomline()
        self._transport = self._client._transport
        self._lock = asyncio.Lock()

    async def close(self) -> None:
        """Closes the client, unless you passed it."""
        if self._has_own_client:
            await self._client.close()

    async def __aenter__(self) -> LoomlineSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """All items in their order, or the newest `limit` of them."""
        limit = resolve_session_limit(limit, self.session_settings)
        if limit is not None and limit <= 0:
            return []
        async with self._lock:
            newest_first: list[Item] = []
            async for stored, original in self._newest_first(limit):
                newest_first += reversed(original.get("after", []))
                if stored is not None:
                    newest_first.append(original.get("item", stored))
                if limit is not None and len(newest_first) >= limit:
                    break
        return cast("list[TResponseInputItem]", newest_first[:limit][::-1])

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items at the end. Creates the thread if it does not exist."""
        async with self._lock:
            for start in range(0, len(items), MAX_ITEMS):
                await self._add(cast("list[Item]", items[start : start + MAX_ITEMS]))

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the newest item and returns it.

        If an agent of the server wrote the item, the server removes the whole answer of that agent.
        """
        async with self._lock:
            async for stored, original in self._newest_first(1):
                if after := original.get("after"):
                    popped = after.pop()
                    await self._keep(stored["id"] if stored else START, original)
                    return cast("TResponseInputItem", popped)
                if stored is not None:
                    await self._transport.send(Call("DELETE", f"{self._items}/{segment(stored['id'])}"))
                    if original:
                        await self._transport.send(Call("DELETE", f"{self._objects}/{segment(stored['id'])}"))
                    return cast("TResponseInputItem", original.get("item", stored))
        return None

    async def clear_session(self) -> None:
        """Deletes the thread. A thread with forks or an active run can't be deleted."""
        async with self._lock:
            try:
                await self._transport.send(Call("DELETE", f"/api/v1/threads/{segment(self.session_id)}"))
            except NotFoundError:
                pass

    @property
    def _items(self) -> str:
        return f"/v1/conversations/{segment(self.session_id)}/items"

    @property
    def _objects(self) -> str:
        return f"/api/v1/threads/{segment(self.session_id)}/objects/{KIND}"

    async def _newest_first(self, limit: int | None) -> AsyncIterator[tuple[Item | None, Original]]:
        """The items of the thread with their originals, at last no item with the originals at the start."""
        after: str | None = None
        has_more = True
        while has_more:
            query = {"order": "desc", "limit": min(limit or PAGE, PAGE), "after": after}
            try:
                page = await self._transport.json(Call("GET", self._items, query))
            except NotFoundError:
                yield None, {}
                return
            items, has_more = page["data"], page["has_more"]
            originals = await self._originals([item["id"] for item in items])
            for item in items:
                yield item, originals.get(item["id"], {})
                after = item["id"]
        yield None, (await self._originals([START])).get(START, {})

    async def _originals(self, ids: list[str]) -> dict[str, Original]:
        originals: dict[str, Original] = {}
        while ids:
            page = await self._transport.json(Call("GET", self._objects, {"id": ids}))
            originals |= {entry["id"]: entry["value"] for entry in page["objects"]}
            ids = ids[ids.index(page["next"]) + 1 :] if "next" in page else []
        return originals

    async def _add(self, items: list[Item]) -> None:
        call = Call("POST", self._items, raw=json.dumps({"items": items}).encode())
        try:
            try:
                added = await self._transport.json(call)
            except NotFoundError as error:
                if error.code != "conversation_not_found":
                    raise
                await self._create_thread()
                added = await self._transport.json(call)
        except (InvalidRequestError, NotFoundError) as error:
            if len(items) > 1:
                for item in items:
                    await self._add([item])
            else:
                await self._add_beside(items[0], error)
        else:
            pairs = zip(items, added["data"], strict=True)
            await asyncio.gather(*(self._keep(stored["id"], {"item": item}) for item, stored in pairs if stored != item))

    async def _add_beside(self, item: Item, error: Exception) -> None:
        """Adds an item that the thread refuses to the object of the newest item."""
        logger.info("thread %r keeps an item of the type %r beside it: %s", self.session_id, item.get("type"), error)
        async for stored, original in self._newest_first(1):
            original.setdefault("after", []).append(item)
            await self._keep(stored["id"] if stored else START, original)
            return

    async def _keep(self, item_id: str, original: Original) -> None:
        path = f"{self._objects}/{segment(item_id)}"
        raw = json.dumps({"value": original}).encode()
        call = Call("PUT", path, raw=raw)
        try:
            await self._transport.send(call)
        except NotFoundError:
            await self._create_thread()
            await self._transport.send(call)

    async def _create_thread(self) -> None:
        await self._transport.send(Call("POST", "/api/v1/threads", body={"key": self.session_id}))
