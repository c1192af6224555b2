"""Follows one run in the events of its thread."""

from __future__ import annotations

from typing import Any

from loomline import models
from loomline.events import Event

_HANDOFF = "data-tp-agent_handoff"
_WAITING_STATES = ("input-available", "approval-requested")


class RunSelector:
    """Picks the events of one run, as the server does: from its message to the end of its last execution."""

    def __init__(self) -> None:
        self.is_over = False
        self._item: str | None = None
        self._execution: str | None = None
        self._hands_over = False
        self._continues = False

    def select(self, event: Event) -> bool:
        """Whether the next event belongs to the run."""
        if self._execution is None:
            return self._while_waiting(event)
        if isinstance(event, models.ExecutionCreatedEvent):
            self._hands_over = False
        elif isinstance(event, models.PartCreatedEvent):
            self._hands_over |= isinstance(event.part, dict) and event.part.get("type") == _HANDOFF
        elif isinstance(event, models.ThreadFinishedEvent) and event.execution_id == self._execution:
            self._execution = None
            self._continues = self._hands_over
            self.is_over = not self._hands_over
        return True

    def _while_waiting(self, event: Event) -> bool:
        if isinstance(event, models.ItemCreatedEvent) and self._item is None:
            self._item = event.item.id
            return True
        if isinstance(event, models.ExecutionCreatedEvent):
            execution = event.execution
            if self._continues or self._item in (None, execution.trigger_item_id):
                self._execution = execution.id
                self._hands_over = self._continues = False
                return True
        return self._continues


class RunFold:
    """What the events of a run say about its end."""

    def __init__(self) -> None:
        self.text = ""
        self.status = "executing"
        self.execution_id = ""
        self.interruption: models.Interruption | None = None
        self._parts: dict[str, Any] = {}

    def add(self, event: Event) -> None:
        """Reads the next event."""
        if isinstance(event, models.ExecutionCreatedEvent):
            self.execution_id = event.execution.id
            self._parts = {}
        elif isinstance(event, (models.PartCreatedEvent, models.PartUpdatedEvent)):
            self._parts[event.part_key] = event.part
            self.text = self._texts() or self.text
        elif isinstance(event, models.ExecutionStatusChangedEvent):
            self.interruption = event.interruption
        elif isinstance(event, models.ThreadFinishedEvent):
            self.status = event.result

    @property
    def has_open_calls(self) -> bool:
        return any(part.get("state") in _WAITING_STATES for part in self._parts.values())

    def _texts(self) -> str:
        """The texts of the last execution, as the tool `run` of MCP joins them."""
        texts = (part.get("text") for part in self._parts.values() if part.get("type") == "output_text")
        return "\n\n".join(text for text in texts if text)
