"""A request on a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loomline import models
from loomline._async.transport import AsyncTransport
from loomline._wire import Call, new_idempotency_key, present


class AsyncThreadRequest:
    """A request on a thread: a decision, data or a payment that a party asks for."""

    id: str
    """The id, such as `decision:seat`."""

    def __init__(self, transport: AsyncTransport, path: str, request_id: str) -> None:
        self.id = request_id
        self._transport = transport
        self._path = path

    async def read(self) -> models.RequestView:
        """Reads the request. `answer_schema` is the JSON Schema of an answer."""
        return models.RequestView.model_validate(await self._transport.json(Call("GET", self._path)))

    async def answer(
        self,
        value: Mapping[str, Any],
        *,
        actor: str | None = None,
        agent: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.AnsweredView:
        """Answers the request. If an agent of the server made it, the agent continues.

        `value` is valid against `answer_schema`. `actor` is the actor that answers, by default the one of the API key or
        the initiator of the thread. `agent` is the agent that continues, by default the one that asked.

        Raises `InvalidRequestError` if the value does not fit (`details["violations"]`), `ConflictError` if the request is
        not open any more, and `ForbiddenError` if this party may not answer.
        """
        return await self._post("answer", idempotency_key, value=value, actor=actor, agent=agent)

    async def decline(
        self,
        reason: str | None = None,
        *,
        code: str | None = None,
        actor: str | None = None,
        agent: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.AnsweredView:
        """Declines the request. `reason` is for people; `code` is for programs if nobody can answer."""
        return await self._post("decline", idempotency_key, reason=reason, code=code, actor=actor, agent=agent)

    async def cancel(
        self, reason: str | None = None, *, actor: str | None = None, idempotency_key: str | None = None
    ) -> models.AnsweredView:
        """Cancels the request. Raises `ForbiddenError` if another party made it."""
        return await self._post("cancel", idempotency_key, reason=reason, actor=actor)

    async def _post(self, action: str, idempotency_key: str | None, **fields: Any) -> models.AnsweredView:
        key = idempotency_key or new_idempotency_key()
        call = Call("POST", f"{self._path}/{action}", body=present(**fields), idempotency_key=key)
        return models.AnsweredView.model_validate(await self._transport.json(call))
