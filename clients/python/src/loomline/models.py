"""The types of the HTTP API. Written by generate.py from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from pydantic import AwareDatetime, Field
from loomline._model import Model
from typing import Any, Literal


class AcceptedView(Model):
    """A stored message whose execution has started or is queued."""
    key: str
    """The thread's key."""
    thread_id: str = Field(..., alias='threadId')
    """The thread."""
    item_id: str = Field(..., alias='itemId')
    """The message."""
    execution_id: str | None = Field(None, alias='executionId')
    after: int
    """The event to follow the run from: later events show all of it."""
    queued: bool
    """Whether it is queued."""


class ActorLeft(Model):
    """The event with which an actor left."""
    seq: int
    """Its position in the log."""


class ActorView(Model):
    """An actor of a thread."""
    actor: dict[str, Any]
    """The actor in AITP's form: `id`, `client_id`, `capabilities` and further members."""
    is_initiator: bool = Field(..., alias='isInitiator')
    """Whether it is the thread's initiator: its messages have the role `user`."""
    is_bound: bool = Field(..., alias='isBound')
    """Whether it is bound to a key; only that key may speak as it."""
    is_own: bool = Field(..., alias='isOwn')
    """Whether it is bound to the caller's key."""


class AttemptView(Model):
    """An attempt at the model's answer."""
    started_at: AwareDatetime = Field(..., alias='startedAt')
    """When it began."""
    first_chunk_at: AwareDatetime | None = Field(None, alias='firstChunkAt')
    """When its first chunk was stored."""
    ended_at: AwareDatetime | None = Field(None, alias='endedAt')
    """When it ended. If its process died, the time of its last event."""
    reason: Literal['completed', 'failed', 'restarted', 'retried'] | str | None = None


class BranchView(Model):
    """A branch of a conversation, and its thread."""
    key: str
    """The thread's key."""
    id: str
    """The thread's id."""
    node: str
    """The id of the tree's node."""
    name: str | None = None
    """The name of the branch."""
    parent: str | None = None
    """The key of the thread that it was forked from."""
    forked_at: int | None = Field(None, alias='forkedAt')
    current: bool
    """Whether it is the current branch."""
    status: Literal['open', 'streaming', 'closed', 'failed'] | str
    """`open`, `streaming`, `closed` or `failed`."""
    seq: int
    """The last event."""


class CallView(Model):
    """A tool call of a step."""
    tool_call_id: str = Field(..., alias='toolCallId')
    """Its id."""
    tool_name: str = Field(..., alias='toolName')
    """The tool's name."""
    effect: str | None = None
    """
    `pure`, `idempotent`, `reconcilable` or `effect`, as the agent is configured now; absent for a
    tool that it does not have.
    """
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When the step stored the call."""
    started_at: AwareDatetime | None = Field(None, alias='startedAt')
    """When the tool started, if known."""
    ended_at: AwareDatetime | None = Field(None, alias='endedAt')
    """When the result was stored; absent while there is none."""
    outcome: str | None = None
    """`ok`, `error`, or a more specific outcome such as `denied` or `interrupted`."""
    needs_approval: bool | None = Field(None, alias='needsApproval')
    """Whether it waited for an approval."""


class CancelledView(Model):
    """The result of a cancellation."""
    execution_id: str | None = Field(None, alias='executionId')
    seq: int
    """The last event."""


class Changed(Model):
    """The end of a log after a change."""
    seq: int
    """The last event."""


class ChunkEmittedEvent(Model):
    """A chunk for clients that watch the run. State depends only on the markers among them."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    chunk_type: str = Field(..., alias='chunkType')
    context_id: str = Field(..., alias='contextId')
    """The id of a context (EK §4.2)."""
    execution_id: str | None = Field(None, alias='executionId')
    step_id: str | None = Field(None, alias='stepId')
    data: Any = None
    """
    A JSON value stored as its text: key order, number spellings and explicit nulls are preserved.

    Cloning shares the text. Equality is equality of the text.
    """
    type: Literal['chunk.emitted']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class Context(Model):
    """Typed state attached to a thread (EK §4.2)."""
    id: str
    """Internal."""
    key: str | None = None
    """Mirrors the thread's key."""
    thread_id: str = Field(..., alias='threadId')
    """The thread that has the context."""
    status: Literal['open', 'streaming', 'closed'] | str
    """The status of the context."""
    content: Any = None
    """The application's state."""
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it was made."""
    updated_at: AwareDatetime | None = Field(None, alias='updatedAt')
    """When it last changed."""


class ContextCreatedEvent(Model):
    """A context was made."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    context: Context
    type: Literal['context.created']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class ContextResolvedEvent(Model):
    """A context was found again."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    context_id: str = Field(..., alias='contextId')
    """The id of a context (EK §4.2)."""
    type: Literal['context.resolved']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class ContextStatusChangedEvent(Model):
    """A context moved."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    context_id: str = Field(..., alias='contextId')
    """The id of a context (EK §4.2)."""
    from_: Literal['open', 'streaming', 'closed'] | str = Field(..., alias='from')
    to: Literal['open', 'streaming', 'closed'] | str
    type: Literal['context.status.changed']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class CurrentCompaction(Model):
    """The compaction of a thread that counts."""
    id: str
    """Its id."""
    execution_id: str = Field(..., alias='executionId')
    """The last execution that its summary replaces."""
    event: int | None = None


class DocumentDiff(Model):
    """The differences between two documents, as `loomline diff --json` prints them."""
    from_: str = Field(..., alias='from')
    """The hash of the text of the thread's document."""
    to: str
    """The hash of the text of the other document."""
    changes: list[dict[str, Any]]
    """The changes of the root, the agents and the turns; those of messages and parts are in `inner`."""


class Failure(Model):
    """A refusal or a failure."""
    code: str
    """Stable, for programs."""
    message: str
    """The error's text for people; it may change between versions."""
    pointer: str | None = None
    """The JSON pointer of the error in the request's body."""
    details: dict[str, Any] | None = None
    """Details that the code does not state."""
    request_id: str | None = Field(None, alias='requestId')
    """The request's id, also in the server's log."""


class Fork(Model):
    """The origin of a fork: the events of `thread_id` up to `seq` precede its own log."""
    thread_id: str = Field(..., alias='threadId')
    """The parent."""
    seq: int
    """The last event of the parent that belongs to the fork."""


class Interruption(Model):
    """The reason why an execution ended early (ThreadProtocol 0.0.4 `interruption`)."""
    reason: str
    """
    [`user_cancelled`](Self::USER_CANCELLED), `timeout`, `network_failure`, `safety_halt`,
    [`poisoned`](Self::POISONED), `error`, or another name.
    """
    detail: str | None = None
    """An explanation for people."""


class Item(Model):
    """An item (EK §4.3). A reaction's content is derived from its parts and absent here."""
    id: str
    """Internal and public."""
    type: Literal['message', 'action_execute', 'action_result', 'item_reference'] | str
    """The type of the item."""
    role: Literal['user', 'assistant', 'system', 'developer'] | str | None = None
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it was made."""
    status: Literal['stored', 'pending', 'completed'] | str | None = None
    """The status of the item. An item without one is stored (EK §4.3)."""
    channel: str | None = None
    """The channel through which it arrived: `web`, `whatsapp`, `email`, or another name."""
    content: Any = None
    """The content of the item."""
    execution_id: str | None = Field(None, alias='executionId')
    run: Any = None
    """The parameters of its execution, while it waits for it."""
    metadata: Any = None
    """Fields of the client or of another format; never interpreted here."""


class ItemCreatedEvent(Model):
    """An item was stored."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    item: Item
    type: Literal['item.created']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class ItemStatusChangedEvent(Model):
    """An item moved."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    item_id: str = Field(..., alias='itemId')
    """The id of an item (EK §4.3)."""
    from_: Literal['stored', 'pending', 'completed'] | str = Field(..., alias='from')
    to: Literal['stored', 'pending', 'completed'] | str
    type: Literal['item.status.changed']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class LatencyView(Model):
    """Durations since the process started. A percentile is the upper end of its bucket; the buckets double."""
    count: int
    """Number of durations."""
    p50_seconds: float | None = Field(None, alias='p50Seconds')
    """Seconds that half of them took at most; absent if there are none."""
    p95_seconds: float | None = Field(None, alias='p95Seconds')
    """Seconds that 95 % of them took at most; absent if there are none."""
    p99_seconds: float | None = Field(None, alias='p99Seconds')
    """Seconds that 99 % of them took at most; absent if there are none."""


class LeaseView(Model):
    """The state of a lease."""
    state: str
    """`running`, or `cancelled` if nobody needs the answer: the worker can stop."""
    lease_ms: int | None = Field(None, alias='leaseMs')
    """How long the lease lasts without another heartbeat, in milliseconds."""


class LossView(Model):
    """One conversion loss."""
    pointer: str
    """The JSON pointer of the place in the file."""
    what: str
    """The thing that was lost."""


class PartCreatedEvent(Model):
    """A part was written."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    part_key: str = Field(..., alias='partKey')
    step_id: str = Field(..., alias='stepId')
    """The id of a step (EK §4.6)."""
    idx: int
    part: Any
    """
    A JSON value stored as its text: key order, number spellings and explicit nulls are preserved.

    Cloning shares the text. Equality is equality of the text.
    """
    type: Literal['part.created']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class PartUpdatedEvent(Model):
    """A part was written again: a tool call got its result."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    part_key: str = Field(..., alias='partKey')
    step_id: str = Field(..., alias='stepId')
    """The id of a step (EK §4.6)."""
    idx: int
    part: Any
    """
    A JSON value stored as its text: key order, number spellings and explicit nulls are preserved.

    Cloning shares the text. Equality is equality of the text.
    """
    type: Literal['part.updated']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class PartView(Model):
    """A part of a message or of a step: an object whose `type` names its kind, such as `text` or `tool`."""
    type: str
    """The kind of the part."""


class PartyView(Model):
    """The party that sent a message."""
    kind: Literal['initiator', 'actor', 'agent', 'assistant'] | str
    id: str | None = None


class PathView(Model):
    """A call on the path to another one."""
    thread_key: str = Field(..., alias='threadKey')
    """The key of the call's thread."""
    tool_call_id: str = Field(..., alias='toolCallId')
    """The call's id."""


class PendingView(Model):
    """A pending call."""
    tool_call_id: str = Field(..., alias='toolCallId')
    """The call's id."""
    tool_name: str = Field(..., alias='toolName')
    """The tool's name."""
    kind: Literal['approval', 'external', 'others', 'child'] | str
    """
    `approval`: waits for an approval. `external`: waits for a result. `others`: can't be answered
    yet, because an earlier call is pending. `child`: waits for its sub-agent, and continues when the
    sub-agent's calls are answered.
    """
    input: dict[str, Any] | None = None
    """The arguments."""
    execution_id: str = Field(..., alias='executionId')
    """The execution that ended with it."""
    thread_key: str = Field(..., alias='threadKey')
    """The key of the call's thread: this one, or that of a sub-agent."""
    path: list[PathView]
    """The calls of sub-agents that led to it, outermost first; empty for the thread's own calls."""


class RelativeView(Model):
    """A thread in a tree."""
    key: str
    """The thread's key."""
    id: str
    """The thread's id."""
    title: str | None = None
    """The thread's title."""
    parent: str | None = None
    """
    The key of the thread that it was forked from, or that has the calling tool call; absent for the
    root.
    """
    forked_at: int | None = Field(None, alias='forkedAt')
    tool_call_id: str | None = Field(None, alias='toolCallId')
    """The calling tool call of a sub-agent's thread."""
    current: bool
    """Whether it is the requested thread."""
    status: Literal['open', 'streaming', 'closed', 'failed'] | str
    """`open`, `streaming`, `closed` or `failed`."""
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it was created."""
    updated_at: AwareDatetime | None = Field(None, alias='updatedAt')
    """When it last changed."""
    seq: int
    """The last event."""


class Replaced(Model):
    """The size of what a compaction replaces."""
    executions: int
    """Number of executions."""
    messages: int
    """Number of messages that a model would read."""
    bytes: int
    """The size of these messages as JSON, in bytes."""


class RestartView(Model):
    """Another process took up the run."""
    seq: int
    """The event."""
    at: AwareDatetime
    """When."""
    orderly: bool
    """Whether the process before it shut down in order."""


class ShardView(Model):
    """The state of a further database."""
    name: str
    """Its name in the configuration."""
    ready: bool
    """Whether requests of its tenants are answered."""
    reason: str | None = None
    """Why not, as the code of `/readyz`."""


class Snippet(Model):
    """A piece of a text that has the words."""
    seq: int | None = None
    """The event with the text; absent for the title."""
    role: Literal['user', 'assistant', 'system', 'developer'] | str | None = None
    text: str
    """The piece, about 160 characters. It begins or ends with `…` where the text continues."""
    matches: list[list[int]]
    """The start and the end of each found word in `text`, in UTF-16 code units, as JavaScript counts."""


class StepOutcome(Model):
    """The result of a step (EK §4.6)."""
    tool_calls: Any = Field(None, alias='toolCalls')
    """The calls the model made: ids and names; their content is in the parts."""
    tool_execution_results: Any = Field(None, alias='toolExecutionResults')
    """Their outcomes: ids and states; their content is in the parts."""
    continue_loop: bool | None = Field(None, alias='continueLoop')
    """Whether another step follows."""
    error_text: str | None = Field(None, alias='errorText')
    """The error message of a failed step."""
    agent_state: Any = Field(None, alias='agentState')
    """
    Extension to EK: what the step added to its agent's state, except messages. The format is
    the agent's own; this crate never interprets it.
    """
    open_calls: Any = Field(None, alias='openCalls')
    """
    Extension to EK: the calls that the step intentionally leaves without results
    ([`OpenCall`]s). Absent if every call has a result.
    """
    cut_short: str | None = Field(None, alias='cutShort')
    """
    Extension to EK: the reason why the agent stopped before it was done, such as
    [`StepOutcome::SPENT`]. Readers accept unknown reasons. Absent if a step follows, and if the
    agent was done.
    """


class StepRequest(Model):
    """The request for a worker."""
    system: str | None = None
    """The system prompt."""
    messages: list[dict[str, Any]]
    """The messages for the model, as messages of UPP."""
    tools: list[dict[str, Any]]
    """The tools: `name`, `description` and the JSON Schema `parameters` of each."""
    tool_choice: Any = Field(..., alias='toolChoice')
    """`auto`, `none`, `required`, or an object with the name of a `tool`."""
    params: dict[str, Any]
    """The parameters of the agent and of the run."""
    structure: Any = None
    """The JSON Schema of the answer, if it must have a structure."""


class StepStatusChangedEvent(Model):
    """A step ended."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    tool_calls: Any = Field(None, alias='toolCalls')
    """The calls the model made: ids and names; their content is in the parts."""
    tool_execution_results: Any = Field(None, alias='toolExecutionResults')
    """Their outcomes: ids and states; their content is in the parts."""
    continue_loop: bool | None = Field(None, alias='continueLoop')
    """Whether another step follows."""
    error_text: str | None = Field(None, alias='errorText')
    """The error message of a failed step."""
    agent_state: Any = Field(None, alias='agentState')
    """
    Extension to EK: what the step added to its agent's state, except messages. The format is
    the agent's own; this crate never interprets it.
    """
    open_calls: Any = Field(None, alias='openCalls')
    """
    Extension to EK: the calls that the step intentionally leaves without results
    ([`OpenCall`]s). Absent if every call has a result.
    """
    cut_short: str | None = Field(None, alias='cutShort')
    """
    Extension to EK: the reason why the agent stopped before it was done, such as
    [`StepOutcome::SPENT`]. Readers accept unknown reasons. Absent if a step follows, and if the
    agent was done.
    """
    step_id: str = Field(..., alias='stepId')
    """The id of a step (EK §4.6)."""
    from_: Literal['running', 'completed', 'failed'] | str = Field(..., alias='from')
    to: Literal['running', 'completed', 'failed'] | str
    type: Literal['step.status.changed']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class StepView(Model):
    """One model call with its tools."""
    id: str
    """Its id."""
    iteration: int
    """Its number in the run, from 0."""
    status: Literal['running', 'completed', 'failed'] | str
    """`running`, `completed` or `failed`."""
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it began."""
    ended_at: AwareDatetime | None = Field(None, alias='endedAt')
    """When it ended."""
    response: dict[str, Any] | None = None
    """The model's data about its response: its name, the usage, the stop reason."""
    tool_calls: list[dict[str, Any]] | None = Field(None, alias='toolCalls')
    """The calls: ids and names."""
    tool_execution_results: list[dict[str, Any]] | None = Field(None, alias='toolExecutionResults')
    """The results of the calls: ids and whether they succeeded."""
    error_text: str | None = Field(None, alias='errorText')
    """The error."""
    first_chunk_at: AwareDatetime | None = Field(None, alias='firstChunkAt')
    """When the first chunk of its last attempt was stored."""
    attempts: list[AttemptView]
    """The attempts at the model's answer, in order."""
    calls: list[CallView]
    """The tool calls with their times, in order."""
    parts: list[PartView]
    """Its text, reasoning and tool calls."""


class StoreView(Model):
    """The state of the store."""
    health: str
    """`healthy`, `commits_fail` or `damaged`."""
    file_bytes: int = Field(..., alias='fileBytes')
    """The bytes of its file."""
    wal_bytes: int = Field(..., alias='walBytes')
    """The bytes of its write-ahead log."""
    commits: int
    """Transactions committed since the process started."""
    failures: int
    """Commits and writes that failed since the process started."""


class SubmittedAnswerView(Model):
    """An answer."""
    item_id: str = Field(..., alias='itemId')
    """The id of its message."""
    at: AwareDatetime
    """When it was stored."""
    by: PartyView
    """The party that answered."""
    message_type: str = Field(..., alias='messageType')
    """The member of the message that holds the payload: `decision`, `data`, …"""
    payload: dict[str, Any] | None = None
    """The payload."""


class SummaryTokens(Model):
    """The tokens of a call that wrote a summary."""
    input: int
    """Tokens that the model read."""
    output: int
    """Tokens that it wrote."""


class Thread(Model):
    """A thread (EK §4.1)."""
    id: str
    """Internal."""
    key: str | None = None
    """Public, stable, unique in its tenant."""
    status: Literal['open', 'streaming', 'closed', 'failed'] | str
    """The status of the thread."""
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it was made."""
    updated_at: AwareDatetime | None = Field(None, alias='updatedAt')
    """When it last changed."""
    title: str | None = None
    """The title."""
    metadata: Any = None
    """The application's own."""
    fork: Fork | None = None


class ThreadCreatedEvent(Model):
    """A thread was made."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    thread: Thread
    type: Literal['thread.created']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class ThreadFinishedEvent(Model):
    """An execution is over and the thread at rest."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    thread_id: str = Field(..., alias='threadId')
    """The internal id of a thread (EK §4.1)."""
    context_id: str = Field(..., alias='contextId')
    """The id of a context (EK §4.2)."""
    execution_id: str = Field(..., alias='executionId')
    """The id of an execution (EK §4.5)."""
    result: Literal['completed', 'failed'] | str
    """How an execution ended."""
    type: Literal['thread.finished']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class ThreadNews(Model):
    """A change of a thread: the data of an event `thread`."""
    thread: str
    """The key of the thread."""
    seq: int
    """The last event of its log."""
    status: Literal['open', 'streaming', 'closed', 'failed'] | str
    """Its status."""
    waits: bool
    """
    Whether a call or a request of its own waits for a person. A thread whose sub-agent waits has
    `false`; the sub-agent's thread has `true`.
    """


class ThreadObject(Model):
    """A stored value of a thread."""
    id: str
    """Its id, unique among the thread's objects of its kind."""
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it was first stored."""
    updated_at: AwareDatetime = Field(..., alias='updatedAt')
    """When its value was stored."""
    value: Any
    """The value."""


class ThreadObjectList(Model):
    """Objects of one kind."""
    objects: list[ThreadObject]
    """The objects."""
    next: str | None = None
    """The `after` of the next page; absent at the end."""


class ThreadResolvedEvent(Model):
    """A thread was found again."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    thread_id: str = Field(..., alias='threadId')
    """The internal id of a thread (EK §4.1)."""
    type: Literal['thread.resolved']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class ThreadStatusChangedEvent(Model):
    """A thread moved."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    thread_id: str = Field(..., alias='threadId')
    """The internal id of a thread (EK §4.1)."""
    from_: Literal['open', 'streaming', 'closed', 'failed'] | str = Field(..., alias='from')
    to: Literal['open', 'streaming', 'closed', 'failed'] | str
    type: Literal['thread.status.changed']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class ThreadTreeView(Model):
    """The threads around a thread, each after its parent."""
    threads: list[RelativeView]
    """
    The threads, the root first: the path to the thread, then its forks and sub-agents' threads, then
    those of the others.
    """
    more: bool
    """Whether there are more."""


class ThreadView(Model):
    """A thread."""
    key: str | None = None
    """Its key."""
    id: str
    """The thread's id, which a fork's `threadId` refers to."""
    status: Literal['open', 'streaming', 'closed', 'failed'] | str
    """`open`, `streaming`, `closed` or `failed`."""
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it was created."""
    updated_at: AwareDatetime | None = Field(None, alias='updatedAt')
    """When it last changed."""
    title: str | None = None
    """For people."""
    metadata: dict[str, Any] | None = None
    """The application's own."""
    fork: Fork | None = None
    seq: int
    """The last event."""
    bytes: int
    """The bytes its events take."""
    compaction: CurrentCompaction | None = None


class ToolView(Model):
    """A tool of an agent."""
    name: str
    """Its name."""
    description: str
    """The description for the model."""
    effect: str
    """
    The effect of a call: `pure`, `idempotent`, `reconcilable` or `effect`. It decides whether a call
    with an unknown outcome runs again.
    """
    needs_approval: bool = Field(..., alias='needsApproval')
    """Whether each call needs an approval."""
    external: bool
    """Whether the client executes the calls and sends the results."""
    result: dict[str, Any] | None = None
    """The JSON Schema of the results of an external tool, if it declares one."""


class VersionView(Model):
    """A version of a message or an answer."""
    id: str
    """The id of its message, or of the first item of its answer."""
    seq: int | None = None
    last_seq: int | None = Field(None, alias='lastSeq')
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it was created."""
    role: Literal['user', 'assistant', 'system', 'developer'] | str | None = None
    agent: str | None = None
    """The agent that answered."""
    execution_id: str | None = Field(None, alias='executionId')
    content: Any = None
    """Its content; absent for an answer."""
    current: bool
    """Whether the conversation has it."""


class WaitingView(Model):
    """A call or a request that waits for a person."""
    id: str
    """The id of the entry. It stays the same while the entry waits."""
    kind: str
    """
    `approval`: a call waits for an approval. `external`: a call waits for a result. `request`: a request
    of AITP is open.
    """
    thread_key: str = Field(..., alias='threadKey')
    """
    The key of the thread to answer on. For a sub-agent's call it is the thread that the person began, if
    the caller may access that.
    """
    title: str | None = None
    """The title of that thread."""
    agent: str | None = None
    """The agent that made the call or the request, if it has a name."""
    tool_name: str | None = Field(None, alias='toolName')
    """The tool of a call."""
    tool_call_id: str | None = Field(None, alias='toolCallId')
    """The id of a call."""
    call_thread_key: str | None = Field(None, alias='callThreadKey')
    """The key of the thread with the call: that one, or that of a sub-agent."""
    request_id: str | None = Field(None, alias='requestId')
    """The id to answer a request under, such as `decision:seat`."""
    topic: str | None = None
    """The topic of a request: `decision`, `data`, `payment`, `top_up`, or a topic of wallets."""
    summary: str | None = None
    """One line: the first argument of a call, the title of a request."""
    since: AwareDatetime
    """Since when it waits. For a call it is the end of the run that left it open."""
    expires_at: AwareDatetime | None = Field(None, alias='expiresAt')
    """The last instant at which an answer counts."""
    may_answer: bool = Field(..., alias='mayAnswer')
    """Whether the caller may answer it."""


class WebToken(Model):
    """A token for the chat within a page of another site."""
    token: str
    """The token. The server stores its hash only."""
    expires_at: AwareDatetime = Field(..., alias='expiresAt')
    """When it expires: after ten minutes, or with the key of the request."""


class ActorChanged(ActorView):
    """An actor after a change."""
    seq: int
    """The event of the change."""


class ActorList(Model):
    """The actors of a thread."""
    actors: list[ActorView]
    """By their ids."""
    seq: int
    """The last event that the list covers."""


class AgentView(Model):
    """An agent."""
    name: str
    """Its name."""
    provider: str
    """Its provider's name."""
    model: str
    """The model's name."""
    description: str | None = None
    """The configured description."""
    tools: list[str]
    """The names of its tools."""
    tool_details: list[ToolView] = Field(..., alias='toolDetails')
    """Its tools, in the order of their names."""
    sub_agents: list[str] = Field(..., alias='subAgents')
    """The names of the agents that it calls as tools."""
    handoffs: list[str]
    """The names of the agents that it can hand over to."""
    is_default: bool = Field(..., alias='isDefault')
    """Whether it answers messages that name no agent."""


class BranchList(Model):
    """The branches of a conversation, the root first."""
    branches: list[BranchView]
    """The branches."""


class ErrorBody(Model):
    """The body of every error response."""
    error: Failure
    """The error."""


class Execution(Model):
    """One run of an agent (EK §4.5)."""
    id: str
    """Internal and public."""
    thread_id: str = Field(..., alias='threadId')
    """The thread."""
    context_id: str = Field(..., alias='contextId')
    """The context."""
    trigger_item_id: str = Field(..., alias='triggerItemId')
    """The item that the execution responds to."""
    reaction_item_id: str = Field(..., alias='reactionItemId')
    """The item that the execution writes."""
    workflow_run_id: str | None = Field(None, alias='workflowRunId')
    """An outer workflow's id."""
    status: Literal['executing', 'completed', 'failed'] | str
    """The status of the execution."""
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it began."""
    updated_at: AwareDatetime | None = Field(None, alias='updatedAt')
    """When it last changed."""
    interruption: Interruption | None = None
    run: Any = None
    """The agent and its parameters, in the reactor's own format."""


class ExecutionCreatedEvent(Model):
    """An execution began."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    execution: Execution
    type: Literal['execution.created']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class ExecutionStatusChangedEvent(Model):
    """An execution ended."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    execution_id: str = Field(..., alias='executionId')
    """The id of an execution (EK §4.5)."""
    from_: Literal['executing', 'completed', 'failed'] | str = Field(..., alias='from')
    to: Literal['executing', 'completed', 'failed'] | str
    interruption: Interruption | None = None
    type: Literal['execution.status.changed']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class ImportedView(Model):
    """An imported thread."""
    thread: ThreadView
    """The thread."""
    losses: list[LossView]
    """The data that could not be imported."""


class LeasedStepView(Model):
    """A leased step."""
    step_id: str = Field(..., alias='stepId')
    """The id of the step."""
    lease: str
    """The id of the lease. Each further request for the step needs it."""
    lease_ms: int = Field(..., alias='leaseMs')
    """How long the lease lasts without a heartbeat, in milliseconds."""
    attempt: int
    """The number of the attempt, from 1."""
    agent: str
    """The agent."""
    thread_id: str = Field(..., alias='threadId')
    """The id of the thread."""
    thread_key: str = Field(..., alias='threadKey')
    """The key of the thread."""
    execution_id: str = Field(..., alias='executionId')
    """The id of the execution."""
    iteration: int
    """The number of the step in the execution, from 0."""
    request: StepRequest
    """The messages for the model, the tools and the parameters."""


class ListedThread(ThreadView):
    """A thread in a list."""
    agent: str | None = None
    """The agent of its last own run."""
    last_text: str | None = Field(None, alias='lastText')
    """The first 200 characters of its newest own text. Absent if that text's event is larger than 256 KiB."""
    forked_from: str | None = Field(None, alias='forkedFrom')
    """The key of the thread that it was forked from, if the caller may access that."""
    waits: bool
    """Whether a call or a request of its own waits for a person."""
    snippets: list[Snippet] | None = None
    """
    With `q`: where the words are, the title first, then the newest text. At least 1, at most 3; older
    ones may be left out.
    """


class MessageView(Model):
    """A message of a user or an item of an agent; an agent's content is that of its parts."""
    id: str
    """Its id."""
    type: Literal['message', 'action_execute', 'action_result', 'item_reference'] | str
    """`message`, `action_execute`, `action_result` or `item_reference`."""
    role: Literal['user', 'assistant', 'system', 'developer'] | str | None = None
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it was made."""
    status: Literal['stored', 'pending', 'completed'] | str
    """`stored`, `pending` or `completed`."""
    waiting: bool | None = None
    """Whether it is queued."""
    channel: str | None = None
    """The channel that it came through."""
    content: list[PartView]
    """Its content."""
    execution_id: str | None = Field(None, alias='executionId')
    interruption: Interruption | None = None
    metadata: dict[str, Any] | None = None
    """The client's own fields."""


class PendingCalls(Model):
    """The pending calls of a thread."""
    calls: list[PendingView]
    """
    The calls, each before the pending calls of its sub-agent. While an execution runs, the thread's
    own calls are not listed.
    """
    seq: int
    """The last event that the list covers."""


class ProcessHealth(Model):
    """The health of the process."""
    ready: bool
    """Whether the server is ready for requests."""
    reason: str | None = None
    """Why it is not ready, as the code of `/readyz`."""
    version: str
    """The version of the server."""
    uptime_seconds: int = Field(..., alias='uptimeSeconds')
    """Seconds since the process opened its store."""
    store: StoreView
    """The store. With shards, the figures are those of all databases together, and the health is the worst one."""
    shards: list[ShardView] | None = None
    """The further databases of tenants; empty without any. One that is not ready does not make the server not ready."""
    open_streams: int = Field(..., alias='openStreams')
    """Event streams that are open."""
    running_runs: int = Field(..., alias='runningRuns')
    """Executions that run in this process."""
    runs_limit: int | None = Field(None, alias='runsLimit')
    """Maximum number of concurrent runs; absent without a limit."""
    queued_messages: int = Field(..., alias='queuedMessages')
    """Messages that wait in the queues of threads."""
    waiting_runs: int = Field(..., alias='waitingRuns')
    """Resumed runs that wait for a slot."""
    unrecovered_threads: int = Field(..., alias='unrecoveredThreads')
    """Unfinished threads of the last process that are not recovered yet."""
    requests: LatencyView
    """The durations of requests until the head of the response."""
    runs: LatencyView
    """The durations of runs."""


class RequestView(Model):
    """A request, described for clients that don't speak AITP."""
    id: str
    """The id to answer it under, such as `decision:seat`."""
    topic: str
    """`decision`, `data`, `payment`, `top_up`, or a topic of wallets."""
    state: str
    """`open`, `answered`, `declined`, `cancelled`, `expired` or `superseded`."""
    capability: str
    """The `$schema` of the message."""
    message_type: str = Field(..., alias='messageType')
    """The member of the message that holds the payload: `request_decision`, …"""
    by: PartyView
    """The party that made the request."""
    answerers: list[PartyView]
    """The parties that may answer."""
    item_id: str = Field(..., alias='itemId')
    """The message with the request."""
    seq: int
    """The event with the message."""
    asked_at: AwareDatetime = Field(..., alias='askedAt')
    """When the request was made."""
    expires_at: AwareDatetime | None = Field(None, alias='expiresAt')
    """The last instant at which an answer counts."""
    title: str | None = None
    """A short title for people."""
    description: str | None = None
    """All that people must know to answer, first what they sign."""
    signed: dict[str, Any] | None = None
    """The data that the answerer signs or sends."""
    answer_schema: dict[str, Any] | None = Field(None, alias='answerSchema')
    """The JSON Schema of the `value` of an answer."""
    payload: dict[str, Any]
    """The payload of the request, unchanged."""
    n_answers: int = Field(..., alias='nAnswers')
    """Number of answers; the last one counts."""
    answer: SubmittedAnswerView | None = None
    n_late: int = Field(..., alias='nLate')
    """Number of answers that came too late."""
    declined_by: PartyView | None = Field(None, alias='declinedBy')
    reason: str | None = None
    """Why it was declined or cancelled, for people."""
    code: str | None = None
    """Why it can't be answered, for programs."""
    settlement: str | None = None
    """The result of a payment: `success`, `failure` or `pending`."""


class RunView(Model):
    """One run of an agent."""
    id: str
    """The execution's id."""
    status: Literal['executing', 'completed', 'failed'] | str
    """`executing`, `completed` or `failed`."""
    agent: str | None = None
    """The agent; absent for imported runs."""
    trigger_item_id: str = Field(..., alias='triggerItemId')
    """The item that it responds to."""
    reaction_item_id: str = Field(..., alias='reactionItemId')
    """The item that it writes."""
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it began."""
    ended_at: AwareDatetime | None = Field(None, alias='endedAt')
    """When it ended."""
    interruption: Interruption | None = None
    queued_at: AwareDatetime | None = Field(None, alias='queuedAt')
    """When its trigger was posted; absent in a list."""
    usage: dict[str, int] | None = None
    """The tokens of all steps, by their kind, such as `inputTokens`; absent in a list."""
    restarts: list[RestartView] | None = None
    """The processes that took it up; absent in a list."""
    n_steps: int = Field(..., alias='nSteps')
    """Number of its steps."""
    steps: list[StepView] | None = None
    """Its steps; absent in a list."""


class Step(StepOutcome):
    """One request/response cycle with its tools (EK §4.6)."""
    id: str
    """Internal and public."""
    execution_id: str = Field(..., alias='executionId')
    """The execution."""
    iteration: int
    """Its number in the execution, from 0."""
    status: Literal['running', 'completed', 'failed'] | str
    """The status of the step."""
    event_id: str = Field(..., alias='eventId')
    """The reaction item it writes to."""
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it began."""
    updated_at: AwareDatetime | None = Field(None, alias='updatedAt')
    """When it last changed."""


class StepCreatedEvent(Model):
    """A step began."""
    id: str
    """The id in the stream: send it as `after` to resume behind this event."""
    step: Step
    type: Literal['step.created']
    seq: int
    """The position in the log; the first is 1."""
    at: AwareDatetime
    """When the event was written."""


class SummaryAuthor(Model):
    """The author of a summary; a field is absent if it does not apply."""
    client: str | None = None
    """The name of the client's key."""
    agent: str | None = None
    """The agent whose configuration requested the summary."""
    model: str | None = None
    """The model that wrote it."""
    tokens: SummaryTokens | None = None


class ThreadList(Model):
    """
    A page of threads, last changed first. With `q`: first those whose title has the words, then the one
    with the newest text.
    """
    threads: list[ListedThread]
    """The threads."""
    next: str | None = None
    """
    The cursor of the next page; absent at the end. With `q`, a page with fewer threads than the limit
    can have one.
    """


class VersionList(Model):
    """The versions of a message or an answer, oldest first."""
    message_id: str | None = Field(None, alias='messageId')
    versions: list[VersionView]
    """The versions."""
    more: bool
    """Whether there may be more versions, because the search reached its limit."""


class WaitingList(Model):
    """A page of pending calls and open requests. The entries of one thread follow each other."""
    entries: list[WaitingView]
    """The entries."""
    next: str | None = None
    """
    The cursor of the next page; absent at the end. A page with fewer entries than the limit can have
    one: the server limits how many threads it examines for a page.
    """


class AgentList(Model):
    """All agents."""
    agents: list[AgentView]
    """By name."""


class AnsweredView(Model):
    """The result of an answer, a refusal or a cancellation."""
    request: RequestView | None = None
    item_id: str = Field(..., alias='itemId')
    """The message that was posted."""
    execution_id: str | None = Field(None, alias='executionId')
    queued: bool
    """Whether the message is queued behind a running agent."""


class CompactionView(Model):
    """A summary that replaces the oldest runs of a thread when a model reads it."""
    id: str
    """Its id."""
    execution_id: str = Field(..., alias='executionId')
    """The last execution that it replaces."""
    event: int | None = None
    summary: str
    """The text for the model."""
    author: SummaryAuthor
    """The author of the text."""
    replaced: Replaced
    """The size of what it replaces."""
    created_at: AwareDatetime = Field(..., alias='createdAt')
    """When it was made."""
    seq: int | None = None
    withdrawn: bool
    """Whether it was withdrawn."""
    counts: bool
    """Whether models read it: it is the newest one that is not withdrawn."""


class MessageList(Model):
    """The conversation."""
    messages: list[MessageView]
    """The messages, in order."""
    seq: int
    """
    The last event of the thread's log that the list covers; follow the events after it. For a page
    before a cursor it is the thread's last event.
    """
    before: int | None = None
    """The cursor of the previous page, for `before`; absent if this page begins with the thread."""


class RequestList(Model):
    """Requests, in the order of their messages."""
    requests: list[RequestView]
    """The requests."""
    next_end: AwareDatetime | None = Field(None, alias='nextEnd')
    """When the next open request expires."""
    next: int | None = None
    """The cursor of the next page; absent on the last one."""
    seq: int
    """The last event that the list covers."""


class RunList(Model):
    """The runs of a thread, oldest first."""
    runs: list[RunView]
    """The runs."""
    before: int | None = None
    """The cursor of the previous page, for `before`; absent if this page begins with the thread."""


class CompactionList(Model):
    """A page of the compactions of a thread, newest first."""
    compactions: list[CompactionView]
    """The compactions."""
    before: int | None = None
    """The cursor of the page with older ones, for `before`; absent at the end."""