"""Small types of the surface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypedDict

from loomline import models

Content = str | Sequence[Mapping[str, Any]]
"""A text, or a list of parts such as `{"type": "input_text", "text": "…"}`."""

Policy = Literal["queue", "reject", "interrupt"]
Format = Literal["thread", "archive", "pydantic-ai", "ai-sdk-ui"]
MessageFormat = Literal["pydantic-ai", "ai-sdk-ui"]


class Unset(Enum):
    """The mark of an argument that was not given, where `None` has a meaning."""

    UNSET = "unset"


UNSET = Unset.UNSET


class _Call(TypedDict):
    tool_call_id: str


class Answer(_Call, total=False):
    """The answer to a pending call.

    An approval needs `approved`; `arguments` replace those of the model, `message` is the reason of a denial. A call that
    waits for a result of the client needs `output` or `error_text`. `thread_key` is needed only if several threads below
    this one have a call with this id.
    """

    approved: bool
    arguments: Any
    message: str
    output: Any
    error_text: str
    thread_key: str


@dataclass(frozen=True)
class Document:
    """A thread as a document."""

    content: Any
    """The JSON value: an object, or a list of messages."""
    losses: list[models.LossView]
    """Data that the format can't hold; the first 16."""
    n_losses: int
    """Number of all losses."""
    hash: str | None
    """For the format `thread`: the hash of the canonical form, such as `sha256:…`."""
    hash_warning: str | None
    """Why the hash is inexact; none if it is exact."""


@dataclass(frozen=True)
class PartContent:
    """The bytes of an image or a file."""

    data: bytes
    media_type: str


@dataclass(frozen=True)
class RunResult:
    """The end of a run."""

    text: str
    """The text of the answer; empty if there is none."""
    status: Literal["completed", "failed"] | str
    """`completed`, also with pending calls; `failed` if it ended early, see `interruption`."""
    execution_id: str
    """The execution that ended the run."""
    pending: list[models.PendingView]
    """The calls that wait for an approval or for a result of the client."""
    interruption: models.Interruption | None
    """Why the run ended early: its `reason` and a `detail` for people."""
