"""What a thread shows of the messages of LangGraph."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from loomline._wire import Call, segment
from loomline.adapters._langgraph_objects import thread_path
from loomline.adapters._memory import Memory
from loomline.adapters._steps import Steps
from loomline.errors import ApiError, LoomlineError

logger = logging.getLogger(__name__)

BATCH_CHARACTERS = 4 * 1024 * 1024
CONTENT_TYPES = ("text", "image_url", "image", "file", "audio", "video")


class ShownMessages:
    """Shows messages as those of their thread, each once."""

    def __init__(self) -> None:
        self._memory = Memory()

    def show(self, thread: str, messages: Any) -> Steps[None]:
        """Appends the messages that the thread does not have. A failure is logged: the checkpoint is stored already."""
        shown = self._memory.get((thread,)) or set()
        self._memory.put((thread,), shown)
        new: dict[str, dict[str, Any]] = {}
        for message in messages if isinstance(messages, (list, tuple)) else ():
            if isinstance(message, BaseMessage) and message.id and message.id not in shown:
                plain = _plain(message)
                if plain is not None:
                    new[message.id] = plain
        try:
            for batch in _batches(list(new.values())):
                yield from self._show_batch(thread, batch, shown)
        except LoomlineError as error:
            logger.warning("thread %r does not show the messages of its checkpoint yet: %s", thread, error)

    def _show_batch(self, thread: str, batch: Sequence[dict[str, Any]], shown: set[str]) -> Steps[None]:
        try:
            yield Call("POST", f"/threads/{segment(thread)}/state", body={"values": {"messages": batch}})
        except ApiError as error:
            if error.status not in (409, 413, 422):
                raise
            if len(batch) > 1:
                half = len(batch) // 2
                yield from self._show_batch(thread, batch[:half], shown)
                yield from self._show_batch(thread, batch[half:], shown)
                return
            if error.status == 409 and (yield Call("GET", thread_path(thread))).json()["status"] == "streaming":
                raise
            logger.warning("thread %r does not show the message %r: %s", thread, batch[0]["id"], error)
        shown.update(message["id"] for message in batch)

    def forget(self, thread: str) -> None:
        self._memory.forget(thread)


def _plain(message: BaseMessage) -> dict[str, Any] | None:
    """What the thread shows of a message: its text and files. None if that is nothing."""
    if isinstance(message, HumanMessage):
        kind = "human"
    elif isinstance(message, AIMessage):
        kind = "ai"
    elif isinstance(message, SystemMessage):
        kind = "system"
    else:
        return None
    content: Any = message.content
    if not isinstance(content, str):
        content = [
            block if isinstance(block, dict) else {"type": "text", "text": block}
            for block in content
            if isinstance(block, str) or block.get("type") in CONTENT_TYPES
        ]
    return {"type": kind, "id": message.id, "content": content} if content else None


def _batches(messages: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The messages in groups that are small enough for one request."""
    batch: list[dict[str, Any]] = []
    size = 0
    for message in messages:
        characters = len(json.dumps(message))
        if batch and size + characters > BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += characters
    if batch:
        yield batch
