"""Data of other programs beside a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

from loomline import models
from loomline._async.transport import AsyncTransport
from loomline._wire import Call, segment


class AsyncObjects:
    """The objects of one kind of a thread."""

    def __init__(self, transport: AsyncTransport, path: str) -> None:
        self._transport = transport
        self._path = path

    async def list(
        self,
        ids: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        order: Literal["asc", "desc"] = "asc",
    ) -> AsyncIterator[models.ThreadObject]:
        """Lists the objects in the order of their creation, or only those of `ids` that exist.

        `ids` has at most 100 entries. `after` begins behind the object with this id. `limit` is the number of objects of
        one response, at most 100. The iterator reads all pages.
        """
        wanted = None if ids is None else [*dict.fromkeys(ids)]
        while wanted != []:
            call = Call("GET", self._path, {"id": wanted, "limit": limit, "order": order, "after": after})
            page = models.ThreadObjectList.model_validate(await self._transport.json(call))
            for entry in page.objects:
                yield entry
            if page.next is None:
                return
            if wanted is None:
                after = page.next
            else:
                wanted = wanted[wanted.index(page.next) + 1 :]

    async def get(self, object_id: str) -> models.ThreadObject:
        """Reads an object. Raises `NotFoundError` if it does not exist."""
        call = Call("GET", f"{self._path}/{segment(object_id)}")
        return models.ThreadObject.model_validate(await self._transport.json(call))

    async def put(self, object_id: str, value: Any) -> models.ThreadObject:
        """Creates an object, or replaces its value: any JSON of at most 4 MiB. The thread exists already.

        `object_id` has 1 to 256 bytes of UTF-8 without control characters.
        """
        call = Call("PUT", f"{self._path}/{segment(object_id)}", body={"value": value})
        return models.ThreadObject.model_validate(await self._transport.json(call))

    async def delete(self, object_id: str) -> None:
        """Deletes an object. Raises `NotFoundError` if it does not exist."""
        await self._transport.send(Call("DELETE", f"{self._path}/{segment(object_id)}"))
