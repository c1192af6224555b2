"""The client of Loomline, the record and the runtime of agent threads.

    from loomline import Loomline

    client = Loomline()
    print(client.thread("hello").run("Good morning").text)

`AsyncLoomline` has the same methods for asyncio.
"""

from loomline import models
from loomline._async.client import AsyncLoomline
from loomline._async.stream import AsyncStream
from loomline._async.thread import AsyncImported, AsyncObjects, AsyncThread, AsyncThreadRequest
from loomline._sync.client import Loomline
from loomline._sync.stream import Stream
from loomline._sync.thread import Imported, Objects, Thread, ThreadRequest
from loomline._types import UNSET, Answer, Content, Document, PartContent, RunResult, Unset
from loomline.errors import (
    ApiError,
    AuthenticationError,
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    LoomlineConnectionError,
    LoomlineError,
    NotFoundError,
    RateLimitedError,
    ServerError,
)
from loomline.events import Event, Notice, SubagentEvent, ThreadEvent, UnknownEvent
from loomline.models import ChunkEmittedEvent, ThreadObject

__all__ = [
    "UNSET",
    "Answer",
    "ApiError",
    "AsyncImported",
    "AsyncLoomline",
    "AsyncObjects",
    "AsyncStream",
    "AsyncThread",
    "AsyncThreadRequest",
    "AuthenticationError",
    "ChunkEmittedEvent",
    "ConflictError",
    "Content",
    "Document",
    "Event",
    "ForbiddenError",
    "Imported",
    "InvalidRequestError",
    "Loomline",
    "LoomlineConnectionError",
    "LoomlineError",
    "NotFoundError",
    "Notice",
    "Objects",
    "PartContent",
    "RateLimitedError",
    "RunResult",
    "ServerError",
    "Stream",
    "SubagentEvent",
    "Thread",
    "ThreadEvent",
    "ThreadObject",
    "ThreadRequest",
    "UnknownEvent",
    "Unset",
    "models",
]
