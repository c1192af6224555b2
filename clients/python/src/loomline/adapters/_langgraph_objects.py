"""JSON objects of any size beside a thread.

A text that is too large for one object is stored in parts, and its object is `{"parts": [ID, …]}`. A part never changes: a new
value has new parts, and the old ones are deleted after the object refers to the new ones. Parts that a crash leaves behind are
deleted with the thread.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any

from loomline._wire import Call, new_idempotency_key, segment
from loomline.adapters._steps import Steps
from loomline.errors import NotFoundError

PART = "langgraph-part"
PART_CHARACTERS = 3 * 1024 * 1024
MAX_IDS = 100

Value = dict[str, Any]
"""A JSON object. One that was read from parts has their ids in the field `parts`."""
Named = tuple[str, Value]


def thread_path(thread: str) -> str:
    return f"/api/v1/threads/{segment(thread)}"


def store(thread: str, kind: str, name: str, value: Value, replaced: Value | None = None) -> Steps[None]:
    """Creates an object, or replaces one that has the value `replaced`. Creates the thread if it does not exist."""
    text = _text({field: entry for field, entry in value.items() if field != "parts"})
    if len(text) > PART_CHARACTERS:
        parts = []
        for start in range(0, len(text), PART_CHARACTERS):
            parts.append(uuid.uuid4().hex)
            yield from _put(thread, PART, parts[-1], _text(text[start : start + PART_CHARACTERS]))
        text = _text({"parts": parts})
    yield from _put(thread, kind, name, text)
    yield from _delete_parts(thread, replaced)


def replace(thread: str, kind: str, name: str, value: Value) -> Steps[None]:
    """Creates an object, or replaces one whose value is not known: with one more request."""
    found = dict((yield from named(thread, kind, [name])))
    yield from store(thread, kind, name, value, found.get(name))


def delete(thread: str, kind: str, name: str, value: Value) -> Steps[None]:
    """Deletes an object that has this value."""
    yield from _delete(thread, kind, name)
    yield from _delete_parts(thread, value)


def page(thread: str, kind: str, after: str | None, order: str, limit: int) -> Steps[tuple[list[Named], str | None]]:
    """The objects of one page, and the place of the next one."""
    try:
        response = yield Call("GET", _path(thread, kind), {"after": after, "order": order, "limit": limit})
    except NotFoundError as error:
        if error.code != "thread_not_found":
            raise
        return [], None
    listed = response.json()
    return (yield from _complete(thread, kind, listed["objects"])), listed.get("next")


def every(thread: str, kind: str) -> Steps[list[Named]]:
    """The objects of a kind, in the order of their creation."""
    found: list[Named] = []
    after = None
    while True:
        objects, after = yield from page(thread, kind, after, "asc", MAX_IDS)
        found += objects
        if after is None:
            return found


def named(thread: str, kind: str, names: Sequence[str]) -> Steps[list[Named]]:
    """Those of the named objects that exist."""
    found: list[Named] = []
    while names:
        batch, names = names[:MAX_IDS], names[MAX_IDS:]
        try:
            listed = (yield Call("GET", _path(thread, kind), {"id": batch})).json()
        except NotFoundError:
            return []
        found += yield from _complete(thread, kind, listed["objects"])
        if "next" in listed:
            names = [*batch[batch.index(listed["next"]) + 1 :], *names]
    return found


def _path(thread: str, kind: str, name: str | None = None) -> str:
    path = f"{thread_path(thread)}/objects/{kind}"
    return path if name is None else f"{path}/{segment(name)}"


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _put(thread: str, kind: str, name: str, text: str) -> Steps[None]:
    path = _path(thread, kind, name)
    body = f'{{"value":{text}}}'.encode()
    try:
        yield Call("PUT", path, raw=body)
    except NotFoundError as error:
        if error.code != "thread_not_found":
            raise
        yield Call("POST", "/api/v1/threads", body={"key": thread})
        yield Call("PUT", path, raw=body)


def _delete(thread: str, kind: str, name: str) -> Steps[None]:
    try:
        yield Call("DELETE", _path(thread, kind, name), idempotency_key=new_idempotency_key())
    except NotFoundError:
        pass


def _delete_parts(thread: str, value: Value | None) -> Steps[None]:
    for part in (value or {}).get("parts", ()):
        yield from _delete(thread, PART, part)


def _complete(thread: str, kind: str, listed: Sequence[dict[str, Any]]) -> Steps[list[Named]]:
    """The listed objects with the values that are in parts."""
    found: list[Named] = []
    for entry in listed:
        value = yield from _whole(thread, kind, entry["id"], entry["value"])
        if value is not None:
            found.append((entry["id"], value))
    return found


def _whole(thread: str, kind: str, name: str, value: Value) -> Steps[Value | None]:
    """The value with the contents of its parts; none if the object was deleted while its parts were read."""
    while parts := _part_ids(kind, name, value.get("parts")):
        try:
            text = ""
            for part in parts:
                text += (yield Call("GET", _path(thread, PART, part))).json()["value"]
            return {**json.loads(text), "parts": parts}
        except NotFoundError:
            try:
                value = (yield Call("GET", _path(thread, kind, name))).json()["value"]
            except NotFoundError:
                return None
            if _part_ids(kind, name, value.get("parts")) == parts:
                raise
    return value


def _part_ids(kind: str, name: str, parts: list[str] | int | None) -> list[str]:
    """The ids of the parts. Earlier values have their number instead, and ids of the name."""
    if not isinstance(parts, int):
        return parts or []
    digest = hashlib.sha256(f"{kind}/{name}".encode()).hexdigest()[:32]
    return [f"{digest}/{number}" for number in range(parts)]
