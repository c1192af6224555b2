"""The events of a thread, and the notices about all threads."""

from __future__ import annotations

from typing import Any, Literal, cast, get_args

from loomline import models
from loomline._model import Model


class UnknownEvent(Model):
    """An event of a type that this version of the client does not know. Its fields are in `model_extra`."""

    id: str
    type: str
    seq: int | None = None


class SubagentEvent(Model):
    """An event of the thread of a sub-agent."""

    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    type: Literal["subagent"] = "subagent"
    path: list[models.PathView]
    """The calls that lead to the sub-agent, the thread's own call first."""
    thread_key: str
    """The thread of the sub-agent."""
    event: ThreadEvent
    """The event in the log of that thread."""


class Notice(Model):
    """A change of any thread that the API key may see."""

    id: str
    """Send it as `after` to resume behind this notice."""
    type: Literal["ready", "thread", "reset"] | str
    """`thread`: the thread changed. `ready`, `reset`: read the list of threads again."""
    thread: str | None = None
    """The key of the thread."""
    seq: int | None = None
    """The last event of the thread."""
    status: Literal["open", "streaming", "closed", "failed"] | str | None = None
    """The status of the thread."""
    waits: bool | None = None
    """Whether a pending call or an open request of the thread itself waits for a person."""


ThreadEvent = (
    models.ChunkEmittedEvent
    | models.ContextCreatedEvent
    | models.ContextResolvedEvent
    | models.ContextStatusChangedEvent
    | models.ExecutionCreatedEvent
    | models.ExecutionStatusChangedEvent
    | models.ItemCreatedEvent
    | models.ItemStatusChangedEvent
    | models.PartCreatedEvent
    | models.PartUpdatedEvent
    | models.StepCreatedEvent
    | models.StepStatusChangedEvent
    | models.ThreadCreatedEvent
    | models.ThreadFinishedEvent
    | models.ThreadResolvedEvent
    | models.ThreadStatusChangedEvent
    | UnknownEvent
)
"""An event in the log of a thread."""

Event = ThreadEvent | SubagentEvent
"""An event of a stream."""

SubagentEvent.model_rebuild()

_CLASSES: dict[str, type[Model]] = {
    get_args(event_class.model_fields["type"].annotation)[0]: event_class
    for event_class in get_args(ThreadEvent)
    if event_class is not UnknownEvent
}


def read_event(event_id: str, name: str, data: dict[str, Any]) -> Event:
    """The event with this id, name and data."""
    if name == "subagent":
        above = {"id": event_id, "path": data["path"], "thread_key": data["threadKey"]}
        below = {field: value for field, value in data.items() if field not in ("path", "threadKey")}
        return SubagentEvent.model_validate({**above, "event": _thread_event(event_id, below)})
    return _thread_event(event_id, {"type": name, **data})


def _thread_event(event_id: str, data: dict[str, Any]) -> ThreadEvent:
    event_class = _CLASSES.get(data["type"], UnknownEvent)
    return cast(ThreadEvent, event_class.model_validate({**data, "id": event_id}))
