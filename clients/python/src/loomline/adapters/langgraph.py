"""Stores the checkpoints of LangGraph in threads.

Needs the package `langgraph-checkpoint`. A checkpoint is an object of the thread whose key is LangGraph's `thread_id`:

| kind | id | value |
|---|---|---|
| `langgraph-checkpoint[.NS]` | the id of the checkpoint | the checkpoint with the values that changed |
| `langgraph-writes.CHECKPOINT` | the task and the call | the writes of one call of `put_writes` |
| `langgraph-index` | a digest | a namespace and a run that have checkpoints |
| `langgraph-part` | a random one | a piece of a value that is too large for one object |

`owners` of a checkpoint names, for each channel that did not change, the checkpoint that has its value. `NS` and
`CHECKPOINT` are digests of the namespace and of the checkpoint, because a kind is short. The root namespace has no `NS`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from loomline import AsyncLoomline, Loomline
from loomline._wire import Call
from loomline.adapters import _langgraph_objects as objects
from loomline.adapters._langgraph_messages import ShownMessages
from loomline.adapters._langgraph_objects import thread_path
from loomline.adapters._memory import Memory
from loomline.adapters._steps import Steps, aeach, arun, each, run
from loomline.errors import NotFoundError

__all__ = ["LoomlineSaver"]

CHECKPOINTS = "langgraph-checkpoint"
WRITES = "langgraph-writes"
INDEX = "langgraph-index"

PAGE = 20

Record = dict[str, Any]


class LoomlineSaver(BaseCheckpointSaver[int]):
    """A checkpointer of LangGraph that stores its checkpoints in threads of a Loomline server.

    The methods without `a` use `client`, the methods with `a` use `async_client`. Without any client, both are made from
    the environment (`LOOMLINE_SERVER`, `LOOMLINE_KEY`): then use the saver as a context manager, or close it.

    `messages` names the channel whose messages also become messages of the thread; `None` turns this off.
    """

    def __init__(
        self,
        client: Loomline | None = None,
        async_client: AsyncLoomline | None = None,
        *,
        messages: str | None = "messages",
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._has_own_clients = client is None and async_client is None
        if self._has_own_clients:
            client, async_client = Loomline(), AsyncLoomline()
        self._client = client
        self._async_client = async_client
        self._messages = messages
        # What this process knows without asking. All of it may be forgotten at any time.
        self._owners = Memory()
        self._indexed = Memory()
        self._shown = ShownMessages()

    def close(self) -> None:
        """Closes the sync client, unless you passed it."""
        if self._has_own_clients:
            self._sync().close()

    async def aclose(self) -> None:
        """Closes both clients, unless you passed one."""
        if self._has_own_clients:
            self._sync().close()
            await self._async().close()

    def __enter__(self) -> LoomlineSaver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> LoomlineSaver:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # The methods of a checkpointer

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return run(self._sync(), self._get_tuple(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await arun(self._async(), self._get_tuple(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        return each(self._sync(), self._list(config, filter, before, limit))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async for found in aeach(self._async(), self._list(config, filter, before, limit)):
            yield found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return run(self._sync(), self._put(config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await arun(self._async(), self._put(config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        run(self._sync(), self._put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await arun(self._async(), self._put_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Deletes the thread, with its messages. A thread with forks or an active run can't be deleted."""
        run(self._sync(), self._delete_thread(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """Deletes the thread, with its messages. A thread with forks or an active run can't be deleted."""
        await arun(self._async(), self._delete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints whose metadata has one of these `run_id`.

        Reads an index in every thread of the tenant. No other process may run a graph on a thread with such a checkpoint at
        the same time.
        """
        run(self._sync(), self._delete_for_runs(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints whose metadata has one of these `run_id`.

        Reads an index in every thread of the tenant. No other process may run a graph on a thread with such a checkpoint at
        the same time.
        """
        await arun(self._async(), self._delete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        run(self._sync(), self._copy_thread(source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await arun(self._async(), self._copy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes all checkpoints (`delete`), or all but the newest of each namespace (`keep_latest`).

        The messages stay.
        `keep_latest` also keeps the checkpoints from which the newest one computes a `DeltaChannel`. With `delete`, no
        other process may run a graph on the thread at the same time.
        """
        run(self._sync(), self._prune(thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes all checkpoints (`delete`), or all but the newest of each namespace (`keep_latest`).

        The messages stay.
        `keep_latest` also keeps the checkpoints from which the newest one computes a `DeltaChannel`. With `delete`, no
        other process may run a graph on the thread at the same time.
        """
        await arun(self._async(), self._prune(thread_ids, strategy))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return run(self._sync(), self._delta_channel_history(config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await arun(self._async(), self._delta_channel_history(config, channels))

    def _sync(self) -> Loomline:
        if self._client is None:
            raise RuntimeError("LoomlineSaver has only an async_client: use the async methods, or pass client=Loomline(...)")
        return self._client

    def _async(self) -> AsyncLoomline:
        if self._async_client is None:
            raise RuntimeError("LoomlineSaver has only a client: use the sync methods, or pass async_client=AsyncLoomline(...)")
        return self._async_client

    # Checkpoints

    def _put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> Steps[RunnableConfig]:
        thread, ns, parent = _place(config)
        values = checkpoint["channel_values"]
        known = self._owners.get((thread, ns, parent)) or {}
        stored, owners = {}, {}
        for channel, version in checkpoint["channel_versions"].items():
            known_version, owner = known.get(channel, (None, None))
            if channel not in new_versions and owner is not None and known_version == version:
                owners[channel] = owner
            elif channel in values:
                stored[channel] = self._dump(values[channel])
        full_metadata = get_checkpoint_metadata(config, metadata)
        record = {
            "parent": parent,
            "checkpoint": self._dump({name: part for name, part in checkpoint.items() if name != "channel_values"}),
            "metadata": self._dump(full_metadata),
            "values": stored,
            "owners": owners,
        }
        yield from self._index(thread, ns, full_metadata.get("run_id"))
        is_stored = self._owners.get((thread, ns, checkpoint["id"])) is not None
        store = objects.replace if is_stored else objects.store
        yield from store(thread, _checkpoints(ns), checkpoint["id"], record)
        self._remember(thread, ns, checkpoint["id"], checkpoint["channel_versions"], record)
        if ns == "" and self._messages in new_versions:
            yield from self._shown.show(thread, values.get(self._messages))
        return _config(thread, ns, checkpoint["id"])

    def _get_tuple(self, config: RunnableConfig) -> Steps[CheckpointTuple | None]:
        thread, ns, checkpoint_id = _place(config)
        found = yield from self._find(thread, ns, checkpoint_id)
        if found is None:
            if ns == "" and checkpoint_id is None:
                self._forget(thread)
            return None
        return (yield from self._tuple(thread, ns, *found, near={}))

    def _list(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Steps[None]:
        if config is None:
            threads: Sequence[str] = yield from _threads()
            namespace = checkpoint_id = None
        else:
            threads = [str(config["configurable"]["thread_id"])]
            namespace = config["configurable"].get("checkpoint_ns")
            checkpoint_id = get_checkpoint_id(config)
        before_id = get_checkpoint_id(before) if before else None
        left = limit
        for thread in threads:
            namespaces = [namespace] if namespace is not None else (yield from self._namespaces(thread))
            for ns in namespaces:
                after = None
                while left is None or left > 0:
                    page, after = yield from objects.page(thread, _checkpoints(ns), after, "desc", PAGE)
                    near = {name: record["values"] for name, record in page}
                    for name, record in page:
                        if "checkpoint" not in record or (checkpoint_id and name != checkpoint_id):
                            continue
                        if before_id and name >= before_id:
                            continue
                        metadata = self._load(record["metadata"])
                        if any(metadata.get(key) != value for key, value in (filter or {}).items()):
                            continue
                        if left is not None:
                            left -= 1
                        yield (yield from self._tuple(thread, ns, name, record, near))
                        if left == 0:
                            return
                    if after is None:
                        break

    def _find(self, thread: str, ns: str, checkpoint_id: str | None) -> Steps[tuple[str, Record] | None]:
        """The checkpoint of this id, or the newest one."""
        if checkpoint_id is not None:
            for name, record in (yield from objects.named(thread, _checkpoints(ns), [checkpoint_id])):
                return (name, record) if "checkpoint" in record else None
            return None
        after = None
        while True:
            page, after = yield from objects.page(thread, _checkpoints(ns), after, "desc", 1)
            for name, record in page:
                if "checkpoint" in record:
                    return name, record
            if after is None:
                return None

    def _tuple(
        self, thread: str, ns: str, name: str, record: Record, near: dict[str, dict[str, Any]]
    ) -> Steps[CheckpointTuple]:
        """The checkpoint of a record. `near` has the values of other records, and receives those that are read."""
        missing = sorted(set(record["owners"].values()) - near.keys())
        for owner, owning in (yield from objects.named(thread, _checkpoints(ns), missing)):
            near[owner] = owning["values"]
        stored = dict(record["values"])
        for channel, owner in record["owners"].items():
            if channel in near.get(owner, {}):
                stored[channel] = near[owner][channel]
        checkpoint: Checkpoint = self._load(record["checkpoint"])
        checkpoint["channel_values"] = {channel: self._load(value) for channel, value in stored.items()}
        self._remember(thread, ns, name, checkpoint["channel_versions"], record)
        writes = yield from self._writes(thread, ns, name)
        return CheckpointTuple(
            config=_config(thread, ns, name),
            checkpoint=checkpoint,
            metadata=self._load(record["metadata"]),
            parent_config=_config(thread, ns, record["parent"]) if record["parent"] else None,
            pending_writes=[*writes],
        )

    def _remember(self, thread: str, ns: str, name: str, versions: ChannelVersions, record: Record) -> None:
        owners = {**record["owners"], **dict.fromkeys(record["values"], name)}
        self._owners.put(
            (thread, ns, name), {channel: (versions.get(channel), owner) for channel, owner in owners.items()}
        )

    # Writes

    def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Steps[None]:
        thread, ns, checkpoint_id = _place(config)
        channels = [channel for channel, _ in writes]
        # The first write of an ordinary index counts, so each call has an object. The last write of a special channel
        # counts, so they replace each other.
        is_special = all(channel in WRITES_IDX_MAP for channel in channels)
        name = ",".join(sorted(set(channels))) if is_special else uuid.uuid4().hex
        value = {
            "task": task_id,
            "path": task_path,
            "at": time.time_ns(),
            "writes": [
                [WRITES_IDX_MAP.get(channel, index), channel, *self._dump(value)]
                for index, (channel, value) in enumerate(writes)
            ],
        }
        store = objects.replace if is_special else objects.store
        yield from store(thread, _writes(ns, str(checkpoint_id)), f"{task_id}/{name}", value)

    def _writes(self, thread: str, ns: str, checkpoint_id: str) -> Steps[Sequence[PendingWrite]]:
        calls = yield from objects.every(thread, _writes(ns, checkpoint_id))
        found: dict[tuple[str, int], tuple[int, str, PendingWrite]] = {}
        for _, call in calls:
            for index, channel, kind, data in call["writes"]:
                key = (call["task"], index)
                if key in found and (index >= 0 or found[key][0] > call["at"]):
                    continue
                found[key] = (call["at"], call["path"], (call["task"], channel, self._load([kind, data])))
        ordered = sorted(found.items(), key=lambda entry: writes_sort_key(entry[1][1], *entry[0]))
        return [write for _, (_, _, write) in ordered]

    def _delta_channel_history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Steps[dict[str, DeltaChannelHistory]]:
        thread, ns, checkpoint_id = _place(config)
        histories: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
        target = (yield from self._find(thread, ns, checkpoint_id)) if channels else None
        if target is None:
            return histories
        name, record = target
        after: str | None = name
        records: dict[str, Record] = {}
        open_channels = set(channels)
        walked = {name}
        while open_channels and record["parent"] and record["parent"] not in walked:
            name = record["parent"]
            walked.add(name)
            while name not in records and after is not None:
                page, after = yield from objects.page(thread, _checkpoints(ns), after, "desc", PAGE)
                records.update(page)
            if "checkpoint" not in records.get(name, {}):
                break
            record = records[name]
            writes = yield from self._writes(thread, ns, name)
            for channel in sorted(open_channels):
                own = [write for write in writes if write[1] == channel]
                histories[channel]["writes"] = own + histories[channel]["writes"]
                owner = name if channel in record["values"] else record["owners"].get(channel)
                if owner is not None:
                    if owner not in records:
                        records.update((yield from objects.named(thread, _checkpoints(ns), [owner])))
                    histories[channel]["seed"] = self._load(records[owner]["values"][channel])
                    open_channels.remove(channel)
        return histories

    # Whole threads

    def _index(self, thread: str, ns: str, run_id: Any) -> Steps[None]:
        """Makes a namespace and a run findable."""
        if (ns == "" and run_id is None) or self._indexed.get((thread, ns, run_id)):
            return
        value = {"checkpoint_ns": ns, "run_id": run_id}
        yield from objects.store(thread, INDEX, _digest(json.dumps([ns, run_id])), value)
        self._indexed.put((thread, ns, run_id), True)

    def _namespaces(self, thread: str) -> Steps[Sequence[str]]:
        index = yield from objects.every(thread, INDEX)
        return list(dict.fromkeys(["", *(entry["checkpoint_ns"] for _, entry in index)]))

    def _delete_thread(self, thread_id: str) -> Steps[None]:
        thread = str(thread_id)
        try:
            yield Call("DELETE", thread_path(thread))
        except NotFoundError:
            pass
        self._forget(thread)

    def _delete_for_runs(self, run_ids: Sequence[str]) -> Steps[None]:
        doomed_runs = set(run_ids)
        if not doomed_runs:
            return
        for thread in (yield from _threads()):
            index = yield from objects.every(thread, INDEX)
            for ns in {entry["checkpoint_ns"] for _, entry in index if entry["run_id"] in doomed_runs}:
                records = dict((yield from objects.every(thread, _checkpoints(ns))))
                doomed = {
                    name
                    for name, record in records.items()
                    if "checkpoint" in record and self._load(record["metadata"]).get("run_id") in doomed_runs
                }
                yield from self._remove(thread, ns, records, doomed)

    def _prune(self, thread_ids: Sequence[str], strategy: str) -> Steps[None]:
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy is {strategy!r}; expected 'keep_latest' or 'delete'")
        for thread in map(str, thread_ids):
            for ns in (yield from self._namespaces(thread)):
                records = dict((yield from objects.every(thread, _checkpoints(ns))))
                kept = self._kept(records) if strategy == "keep_latest" else set()
                yield from self._remove(thread, ns, records, records.keys() - kept)

    def _kept(self, records: dict[str, Record]) -> set[str]:
        """The newest checkpoint, and those from which it computes its delta channels."""
        name = next((name for name in reversed(records) if "checkpoint" in records[name]), None)
        if name is None:
            return set()
        kept = {name}
        open_channels = set(self._load(records[name]["metadata"]).get("counters_since_delta_snapshot") or {})
        while True:
            record = records[name]
            open_channels -= record["values"].keys() | record["owners"].keys()
            name = record["parent"]
            if not open_channels or name in kept or "checkpoint" not in records.get(name, {}):
                return kept
            kept.add(name)

    def _remove(self, thread: str, ns: str, records: dict[str, Record], doomed: set[str]) -> Steps[None]:
        """Removes checkpoints. Values that other checkpoints refer to stay, in a record without a checkpoint."""
        # What a checkpoint refers to may go away, so the next one stores its values anew.
        self._owners.forget(thread)
        needed = {
            (owner, channel)
            for name, record in records.items()
            if name not in doomed
            for channel, owner in record.get("owners", {}).items()
        }
        for name, record in records.items():
            if name not in doomed and "checkpoint" in record:
                continue
            values = {channel: value for channel, value in record["values"].items() if (name, channel) in needed}
            for write, call in (yield from objects.every(thread, _writes(ns, name))):
                yield from objects.delete(thread, _writes(ns, name), write, call)
            if not values:
                yield from objects.delete(thread, _checkpoints(ns), name, record)
            elif "checkpoint" in record or values != record["values"]:
                yield from objects.store(thread, _checkpoints(ns), name, {"values": values}, record)
        self._owners.forget(thread)

    def _copy_thread(self, source_thread_id: str, target_thread_id: str) -> Steps[None]:
        source, target = str(source_thread_id), str(target_thread_id)
        for ns in (yield from self._namespaces(source)):
            for name, record in (yield from objects.every(source, _checkpoints(ns))):
                for write, value in (yield from objects.every(source, _writes(ns, name))):
                    yield from objects.replace(target, _writes(ns, name), write, value)
                yield from objects.replace(target, _checkpoints(ns), name, record)
        for name, entry in (yield from objects.every(source, INDEX)):
            yield from objects.store(target, INDEX, name, entry)
        self._owners.forget(target)
        latest = yield from self._get_tuple({"configurable": {"thread_id": target}})
        if latest is not None and self._messages is not None:
            yield from self._shown.show(target, latest.checkpoint["channel_values"].get(self._messages))

    def _forget(self, thread: str) -> None:
        for memory in (self._owners, self._indexed, self._shown):
            memory.forget(thread)

    # Values

    def _dump(self, value: Any) -> Sequence[str]:
        kind, data = self.serde.dumps_typed(value)
        return [kind, base64.b64encode(data).decode("ascii")]

    def _load(self, value: Sequence[str]) -> Any:
        return self.serde.loads_typed((value[0], base64.b64decode(value[1])))


def _place(config: RunnableConfig) -> tuple[str, str, str | None]:
    """The thread, the namespace and the checkpoint of a configuration."""
    return (
        str(config["configurable"]["thread_id"]),
        config["configurable"].get("checkpoint_ns", ""),
        get_checkpoint_id(config),
    )


def _config(thread: str, ns: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _checkpoints(ns: str) -> str:
    return f"{CHECKPOINTS}.{_digest(ns)}" if ns else CHECKPOINTS


def _writes(ns: str, checkpoint_id: str) -> str:
    return f"{WRITES}.{_digest(f'{ns}/{checkpoint_id}')}"


def _threads() -> Steps[list[str]]:
    """The keys of all threads of the tenant."""
    keys: list[str] = []
    cursor = None
    while True:
        page = (yield Call("GET", "/api/v1/threads", {"limit": 500, "cursor": cursor})).json()
        keys += [thread["key"] for thread in page["threads"]]
        cursor = page.get("next")
        if cursor is None:
            return keys
