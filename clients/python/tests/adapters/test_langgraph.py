"""LoomlineSaver, as a checkpointer of real graphs."""

from __future__ import annotations

import hashlib
import logging
import operator
import threading
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

from loomline import ApiError, AsyncLoomline, Loomline, LoomlineConnectionError
from loomline._wire import Call
from loomline.adapters._langgraph_objects import PART_CHARACTERS
from loomline.adapters.langgraph import LoomlineSaver
from rig import Server



class Counted:
    """Counts the requests and the bytes of a client."""

    def __init__(self, client: Loomline) -> None:
        self.requests: list[tuple[str, str, int]] = []
        client._transport._http.event_hooks["request"].append(self._count)

    def _count(self, request: httpx.Request) -> None:
        self.requests.append((request.method, request.url.path, len(request.read())))

    def bytes_of(self, part: str) -> list[int]:
        return [size for method, path, size in self.requests if method == "PUT" and f"/{part}/" in path]


@pytest.fixture
def saver(client: Loomline) -> LoomlineSaver:
    return LoomlineSaver(client)


@pytest.fixture
def async_saver(async_client: AsyncLoomline) -> LoomlineSaver:
    return LoomlineSaver(async_client=async_client)


def crash(server: Server) -> None:
    server.kill()
    server.start()


def new_config() -> dict[str, Any]:
    return {"configurable": {"thread_id": str(uuid.uuid4())}}


def key_of(config: dict[str, Any]) -> str:
    return config["configurable"]["thread_id"]


def comparable(tuples: Any) -> list[Any]:
    return [(t.checkpoint, t.metadata, t.parent_config, t.pending_writes) for t in tuples]


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    big: str
    count: int


def asking_graph(checkpointer: Any) -> Any:
    def ask(state: State) -> State:
        name = interrupt("name?")
        age = interrupt("age?")
        return {"log": [f"{name} is {age}"]}

    builder = StateGraph(State)
    builder.add_node("first", lambda state: {"log": ["first"]})
    builder.add_node("ask", ask)
    builder.add_edge(START, "first")
    builder.add_edge("first", "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=checkpointer)


def counting_graph(checkpointer: Any, steps: int) -> Any:
    builder = StateGraph(State)
    builder.add_node("step", lambda state: {"count": state["count"] + 1})
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: END if state["count"] >= steps else "step")
    return builder.compile(checkpointer=checkpointer)


class Chat(MessagesState, total=False):
    note: str


def chat_graph(checkpointer: Any) -> Any:
    def answer(state: Chat) -> Chat:
        question = state["messages"][-1].content
        number = len(state["messages"])
        call = {"name": "look", "args": {"at": question}, "id": f"call-{number}"}
        return {
            "messages": [
                AIMessage("", tool_calls=[call]),
                ToolMessage("seen", tool_call_id=f"call-{number}"),
                AIMessage(f"You said: {question}"),
            ]
        }

    builder = StateGraph(Chat)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=checkpointer)


def n_objects(client: Loomline, config: dict[str, Any], kind: str) -> int:
    return len(list(client.thread(key_of(config)).objects(kind).list()))


def texts(client: Loomline, key: str) -> list[tuple[str | None, str]]:
    messages = client._transport.json(Call("GET", f"/api/v1/threads/{key}/messages"))["messages"]
    return [(message.get("role"), message["content"][0]["text"]) for message in messages if message["content"]]


async def test_passes_all_capabilities_of_the_conformance_suite(mortal: Server) -> None:
    @checkpointer_test(name="LoomlineSaver")
    async def loomline() -> AsyncIterator[LoomlineSaver]:
        async with AsyncLoomline(mortal.base) as made:
            yield LoomlineSaver(async_client=made)

    report = await validate(loomline)
    assert {name: (result.passed, result.failures) for name, result in report.results.items()} == dict.fromkeys(
        ["put", "put_writes", "get_tuple", "list", "delete_thread", "delete_for_runs", "copy_thread", "prune"],
        (True, []),
    )


def test_resumes_two_interrupts_after_a_kill(mortal: Server) -> None:
    config = new_config()
    with Loomline(mortal.base) as client:
        asking_graph(LoomlineSaver(client)).invoke({"log": ["start"]}, config)
    crash(mortal)
    with Loomline(mortal.base) as client:
        graph = asking_graph(LoomlineSaver(client))
        assert graph.get_state(config).interrupts[0].value == "name?"
        graph.invoke(Command(resume="Ada"), config)
    crash(mortal)
    with Loomline(mortal.base) as client:
        graph = asking_graph(LoomlineSaver(client))
        assert graph.get_state(config).interrupts[0].value == "age?"
        assert graph.invoke(Command(resume=36), config)["log"] == ["start", "first", "Ada is 36"]
        assert graph.get_state(config).next == ()


async def test_resumes_an_interrupt_with_the_async_methods(async_saver: LoomlineSaver) -> None:
    graph, config = asking_graph(async_saver), new_config()
    await graph.ainvoke({"log": ["start"]}, config)
    await graph.ainvoke(Command(resume="Ada"), config)
    assert (await graph.ainvoke(Command(resume=36), config))["log"] == ["start", "first", "Ada is 36"]
    assert len([state async for state in graph.aget_state_history(config)]) == 4


def test_sees_the_same_history_as_the_saver_in_memory(saver: LoomlineSaver) -> None:
    seen = []
    for checkpointer in (InMemorySaver(), saver):
        graph, config = asking_graph(checkpointer), new_config()
        graph.invoke({"log": ["start"]}, config)
        graph.invoke(Command(resume="Ada"), config)
        graph.update_state(config, {"log": ["edited"]}, as_node="first")
        graph.invoke(Command(resume={"x": 1}), config)
        seen.append(
            [
                (
                    state.values,
                    state.next,
                    state.metadata["source"],
                    state.metadata["step"],
                    [(task.name, task.error, [i.value for i in task.interrupts]) for task in state.tasks],
                )
                for state in graph.get_state_history(config)
            ]
        )
    assert seen[0] == seen[1]


def test_travels_back_and_keeps_both_branches(saver: LoomlineSaver) -> None:
    graph, config = counting_graph(saver, 4), new_config()
    graph.invoke({"count": 0, "big": "x"}, config)
    history = list(graph.get_state_history(config))
    past = next(state for state in history if state.values.get("count") == 2)
    forked = graph.update_state(past.config, {"count": 3, "big": "y"})
    assert graph.invoke(None, forked) == {"log": [], "count": 4, "big": "y"}
    assert graph.get_state(history[0].config).values == {"log": [], "count": 4, "big": "x"}
    copied = graph.update_state(past.config, None, as_node="__copy__")
    assert graph.get_state(copied).values == past.values


def test_lists_with_before_limit_and_filter(saver: LoomlineSaver) -> None:
    graph, config = counting_graph(saver, 12), new_config()
    graph.invoke({"count": 0}, config)
    everything = list(saver.list(config))
    assert [t.metadata["step"] for t in everything] == list(range(12, -2, -1))
    assert comparable(saver.list(config, before=everything[6].config, limit=3)) == comparable(everything[7:10])
    assert comparable(saver.list(config, filter={"source": "input"})) == comparable(everything[-1:])
    assert comparable(saver.list(everything[3].config)) == comparable(everything[3:4])
    assert list(saver.list(config, limit=0)) == []
    assert key_of(config) in {key_of(t.config) for t in saver.list(None, filter={"step": 12})}


@pytest.mark.parametrize("is_stateful", [True, None])
def test_a_subgraph_has_a_namespace(saver: LoomlineSaver, is_stateful: bool | None) -> None:
    def ask(state: State) -> State:
        return {"log": [interrupt("sub?")]}

    inner = StateGraph(State)
    inner.add_node("ask", ask)
    inner.add_edge(START, "ask")
    builder = StateGraph(State)
    builder.add_node("inner", inner.compile(checkpointer=is_stateful))
    builder.add_edge(START, "inner")
    graph, config = builder.compile(checkpointer=saver), new_config()
    graph.invoke({"count": 1}, config)
    [task] = graph.get_state(config, subgraphs=True).tasks
    assert task.state.next == ("ask",)
    namespaces = {t.config["configurable"]["checkpoint_ns"].split(":")[0] for t in saver.list(config)}
    assert namespaces == {"", "inner"}
    assert graph.invoke(Command(resume="yes"), config)["log"] == ["yes"]
    saver.copy_thread(key_of(config), "copy of " + key_of(config))
    copy = {"configurable": {"thread_id": "copy of " + key_of(config)}}
    assert len(list(saver.list(copy))) == len(list(saver.list(config)))
    assert graph.get_state(copy).values["log"] == ["yes"]
    saver.prune([key_of(config)], strategy="delete")
    assert list(saver.list(config)) == []


def test_a_failed_step_keeps_the_writes_of_its_other_tasks(mortal: Server) -> None:
    runs: list[str] = []
    is_broken = True
    is_stored = threading.Event()

    class TellingSaver(LoomlineSaver):
        def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            super().put_writes(config, writes, task_id, task_path)
            if ("log", ["good"]) in writes:
                is_stored.set()

    def work(name: str) -> Any:
        def node(state: State) -> State:
            runs.append(name)
            if name == "bad" and is_broken:
                assert is_stored.wait(20)
                raise ValueError("broken")
            return {"log": [name]}

        return node

    def graph_of(client: Loomline) -> Any:
        builder = StateGraph(State)
        for name in ("good", "bad"):
            builder.add_node(name, work(name))
            builder.add_edge(START, name)
        return builder.compile(checkpointer=TellingSaver(client))

    config = new_config()
    with Loomline(mortal.base) as client:
        graph = graph_of(client)
        with pytest.raises(ValueError, match="broken"):
            graph.invoke({"log": []}, config)
        assert "ValueError('broken')" in [task.error for task in graph.get_state(config).tasks]
    crash(mortal)
    is_broken = False
    with Loomline(mortal.base) as client:
        assert sorted(graph_of(client).invoke(None, config)["log"]) == ["bad", "good"]
    assert sorted(runs) == ["bad", "bad", "good"]


def test_sends_of_a_map_step_are_stored(saver: LoomlineSaver) -> None:
    builder = StateGraph(State)
    builder.add_node("each", lambda state: {"log": [str(state["count"])]})
    builder.add_conditional_edges(START, lambda state: [Send("each", {"count": n}) for n in range(5)])
    graph, config = builder.compile(checkpointer=saver), new_config()
    assert graph.invoke({"log": []}, config)["log"] == list("01234")
    assert graph.get_state(config).values["log"] == list("01234")


def test_200_steps_grow_by_the_changes_only(client: Loomline, saver: LoomlineSaver) -> None:
    counted = Counted(client)
    graph, config = counting_graph(saver, 200), new_config()
    graph.invoke({"count": 0, "big": "x" * 20_000}, {**config, "recursion_limit": 500})
    _, *sizes = counted.bytes_of("langgraph-checkpoint")  # The first one finds no thread.
    assert len(sizes) == 202
    assert max(sizes[100:]) < 2_000
    assert sum(sizes[2:102]) == pytest.approx(sum(sizes[102:]), rel=0.02)
    assert graph.get_state(config).values == {"log": [], "count": 200, "big": "x" * 20_000}
    past = graph.get_state_history(config, limit=30)
    assert [state.values for state in past][-1] == {"log": [], "count": 171, "big": "x" * 20_000}


def test_a_value_above_the_object_limit_is_split(client: Loomline, saver: LoomlineSaver) -> None:
    graph, config = counting_graph(saver, 2), new_config()
    big = uuid.uuid4().hex * (PART_CHARACTERS // 32)
    graph.invoke({"count": 0, "big": big}, config)
    assert graph.get_state(config).values["big"] == big
    assert n_objects(client, config, "langgraph-part") > 1
    saver.prune([key_of(config)], strategy="delete")
    assert n_objects(client, config, "langgraph-part") == 0


def test_a_value_in_numbered_parts_is_read(client: Loomline, saver: LoomlineSaver) -> None:
    graph, config = counting_graph(saver, 2), new_config()
    big = uuid.uuid4().hex * (PART_CHARACTERS // 32)
    graph.invoke({"count": 0, "big": big}, config)
    thread = client.thread(key_of(config))
    parts, checkpoints = thread.objects("langgraph-part"), thread.objects("langgraph-checkpoint")
    n_renamed = 0
    for found in list(checkpoints.list()):
        if isinstance(ids := found.value.get("parts"), list):
            digest = hashlib.sha256(f"langgraph-checkpoint/{found.id}".encode()).hexdigest()[:32]
            for number, part in enumerate(ids):
                parts.put(f"{digest}/{number}", parts.get(part).value)
                parts.delete(part)
            checkpoints.put(found.id, {"parts": len(ids)})
            n_renamed += 1
    assert n_renamed > 0
    assert LoomlineSaver(client).get_tuple(config).checkpoint["channel_values"]["big"] == big
    saver.prune([key_of(config)], strategy="delete")
    assert n_objects(client, config, "langgraph-part") == 0


def put_checkpoint(saver: LoomlineSaver, config: Any, values: dict[str, Any], *, new: Sequence[str]) -> Any:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = values
    checkpoint["channel_versions"] = dict.fromkeys(values, 1)
    return saver.put(config, checkpoint, {"source": "loop", "step": 0, "parents": {}}, dict.fromkeys(new, 1))


def test_a_replaced_value_leaves_no_parts_behind(client: Loomline, saver: LoomlineSaver) -> None:
    big, config = "x" * PART_CHARACTERS, new_config()
    first = put_checkpoint(saver, config, {"a": big, "b": 1}, new=["a", "b"])
    put_checkpoint(saver, first, {"a": 2, "b": 1}, new=["a"])
    assert n_objects(client, config, "langgraph-part") == 2
    for error in (big, big + "y", "small"):
        saver.put_writes(first, [("__error__", error)], "task")
        found = saver.get_tuple(first)
        assert found is not None
        assert found.pending_writes == [("task", "__error__", error)]
        assert n_objects(client, config, "langgraph-part") == (2 if error == "small" else 4)
    copy = str(uuid.uuid4())
    for _ in range(2):
        saver.copy_thread(key_of(config), copy)
        assert n_objects(client, {"configurable": {"thread_id": copy}}, "langgraph-part") == 2
    saver.prune([key_of(config)])
    assert n_objects(client, config, "langgraph-part") == 0
    [kept] = saver.list(config)
    assert kept.checkpoint["channel_values"] == {"a": 2, "b": 1}


def test_a_crash_while_a_value_is_replaced_leaves_one_of_both(
    client: Loomline, saver: LoomlineSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = client._transport.send
    old, new = ("o" * PART_CHARACTERS, "n" * PART_CHARACTERS)
    config = put_checkpoint(saver, new_config(), {}, new=[])
    seen = []
    for n_requests in range(100):
        saver.put_writes(config, [("__error__", old)], "task")
        left = iter(range(n_requests))

        def lost(call: Call) -> Any:
            if next(left, None) is None:
                raise LoomlineConnectionError("lost")
            return send(call)

        with monkeypatch.context() as patched:
            patched.setattr(client._transport, "send", lost)
            try:
                saver.put_writes(config, [("__error__", new)], "task")
                break
            except LoomlineConnectionError:
                pass
        found = saver.get_tuple(config)
        assert found is not None and found.pending_writes is not None
        seen.append(found.pending_writes[0][2] == new)
    assert seen == sorted(seen)
    assert set(seen) == {False, True}


def test_a_checkpoint_after_a_prune_refers_to_nothing_that_is_gone(saver: LoomlineSaver) -> None:
    config = new_config()
    first = put_checkpoint(saver, config, {"a": 1, "b": 1}, new=["a", "b"])
    second = put_checkpoint(saver, first, {"a": 1, "b": 2}, new=["b"])
    saver.prune([key_of(config)], strategy="delete")
    third = put_checkpoint(saver, second, {"a": 1, "b": 3}, new=["b"])
    found = saver.get_tuple(third)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"a": 1, "b": 3}


def test_a_value_that_changes_while_it_is_read_is_read_again(client: Loomline, saver: LoomlineSaver) -> None:
    config = put_checkpoint(saver, new_config(), {}, new=[])
    saver.put_writes(config, [("__error__", "o" * PART_CHARACTERS)], "task")
    send = client._transport.send

    def replace_first(call: Call) -> Any:
        if "/langgraph-part/" in call.path:
            client._transport.send = send  # type: ignore[method-assign]
            saver.put_writes(config, [("__error__", "n" * PART_CHARACTERS)], "task")
        return send(call)

    client._transport.send = replace_first  # type: ignore[method-assign]
    found = saver.get_tuple(config)
    assert found is not None and found.pending_writes is not None
    assert found.pending_writes[0][2] == "n" * PART_CHARACTERS


def test_prune_keeps_the_values_of_the_newest_checkpoint(client: Loomline, saver: LoomlineSaver) -> None:
    graph, config = counting_graph(saver, 5), new_config()
    graph.invoke({"count": 0, "big": "x"}, config)
    saver.prune([key_of(config)])
    [kept] = saver.list(config)
    assert kept.checkpoint["channel_values"]["big"] == "x"
    graph.invoke({"count": 3}, config)
    assert graph.get_state(config).values == {"log": [], "count": 5, "big": "x"}
    saver.prune([key_of(config)])
    assert graph.get_state(config).values == {"log": [], "count": 5, "big": "x"}
    assert n_objects(client, config, "langgraph-checkpoint") == 2


def joined(state: list[str], writes: list[list[str]]) -> list[str]:
    return [*state, *(entry for write in writes for entry in write)]


class Delta(TypedDict):
    log: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=4)]
    count: int


def delta_graph(checkpointer: Any, steps: int) -> Any:
    builder = StateGraph(Delta)
    for name in ("left", "right"):
        builder.add_node(name, lambda state, name=name: {"log": [f"{name} {state['count']}"]})
    builder.add_node("next", lambda state: {"count": state["count"] + 1})
    builder.add_edge(START, "next")
    builder.add_conditional_edges("next", lambda state: END if state["count"] > steps else ["left", "right"])
    builder.add_edge("left", "next")
    builder.add_edge("right", "next")
    return builder.compile(checkpointer=checkpointer)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_delta_channel_is_computed_from_its_writes(server: Server, durability: Any) -> None:
    config = {**new_config(), "recursion_limit": 60}
    expected = ["start", *(f"{name} {number}" for number in range(1, 11) for name in ("left", "right"))]
    with Loomline(server.base) as client:
        graph = delta_graph(LoomlineSaver(client), 10)
        final = graph.invoke({"log": ["start"], "count": 0}, config, durability=durability)
        assert final["log"] == expected
    with Loomline(server.base) as client:
        saver = LoomlineSaver(client)
        graph = delta_graph(saver, 10)
        assert graph.get_state(config).values["log"] == expected
        target = saver.get_tuple(config)
        assert target is not None
        own = saver.get_delta_channel_history(config=target.config, channels=["log"])
        default = super(LoomlineSaver, saver).get_delta_channel_history(config=target.config, channels=["log"])
        assert own == default
        saver.prune([key_of(config)])
        assert graph.get_state(config).values["log"] == expected
        assert graph.invoke({"log": ["again"], "count": 9}, config)["log"][-3:] == ["again", "left 10", "right 10"]


def test_the_messages_are_messages_of_the_thread(mortal: Server) -> None:
    config = new_config()
    with Loomline(mortal.base) as client:
        chat_graph(LoomlineSaver(client)).invoke({"messages": [HumanMessage("one")]}, config)
    crash(mortal)
    with Loomline(mortal.base) as client:
        graph = chat_graph(LoomlineSaver(client))
        graph.invoke({"messages": [HumanMessage("two")]}, config)
        graph.update_state(config, {"messages": [RemoveMessage(graph.get_state(config).values["messages"][0].id)]})
        assert texts(client, key_of(config)) == [
            ("user", "one"),
            ("assistant", "You said: one"),
            ("user", "two"),
            ("assistant", "You said: two"),
        ]
        assert [found.key for found in client.threads(prefix=key_of(config))] == [key_of(config)]


def test_a_crash_before_the_messages_is_repaired_by_the_next_checkpoint(server: Server) -> None:
    config = new_config()
    with Loomline(server.base) as client:
        saver = LoomlineSaver(client)
        saver._shown.show = lambda thread, messages: iter(())  # type: ignore[assignment,method-assign,misc]
        chat_graph(saver).invoke({"messages": [HumanMessage("one")]}, config)
        assert texts(client, key_of(config)) == []
    with Loomline(server.base) as client:
        chat_graph(LoomlineSaver(client)).invoke({"messages": [HumanMessage("two")]}, config)
        assert [text for _, text in texts(client, key_of(config))] == ["one", "You said: one", "two", "You said: two"]


def test_a_message_that_the_thread_refuses_fails_no_checkpoint(
    client: Loomline, saver: LoomlineSaver, caplog: pytest.LogCaptureFixture
) -> None:
    graph, config = chat_graph(saver), new_config()
    broken = HumanMessage([{"type": "image_url", "image_url": {"url": "ftp://nowhere"}}], id="broken")
    with caplog.at_level(logging.WARNING):
        graph.invoke({"messages": [HumanMessage("one", id="one"), broken]}, config)
    assert "'broken'" in caplog.text
    graph.invoke({"messages": [HumanMessage("changed", id="one"), HumanMessage("two")]}, config)
    shown = [text for _, text in texts(client, key_of(config))]
    assert shown[0] == "one" and "two" in shown and "changed" not in shown
    assert graph.get_state(config).values["messages"][0].content == "changed"


def test_messages_wait_while_an_agent_runs(client: Loomline, saver: LoomlineSaver) -> None:
    def said() -> list[str]:
        return [text for role, text in texts(client, key_of(config)) if role == "user"]

    graph, config = chat_graph(saver), new_config()
    thread = client.thread(key_of(config))
    thread.post("slow say 500 words")
    graph.invoke({"messages": [HumanMessage("one")]}, config)
    assert said() == ["slow say 500 words"]
    assert thread.cancel().execution_id is not None
    for _ in thread.follow(until="rest"):
        pass
    graph.invoke({"messages": [HumanMessage("two")]}, config)
    assert said() == ["slow say 500 words", "one", "two"]


def test_without_a_messages_channel_nothing_is_shown(client: Loomline) -> None:
    config = new_config()
    chat_graph(LoomlineSaver(client, messages=None)).invoke({"messages": [HumanMessage("one")]}, config)
    assert texts(client, key_of(config)) == []


def test_delete_thread_deletes_messages_and_checkpoints(client: Loomline, saver: LoomlineSaver) -> None:
    graph, config = chat_graph(saver), new_config()
    graph.invoke({"messages": [HumanMessage("one")]}, config)
    saver.delete_thread(key_of(config))
    assert saver.get_tuple(config) is None
    with pytest.raises(ApiError, match="thread_not_found"):
        client.thread(key_of(config)).read()
    assert len(graph.invoke({"messages": [HumanMessage("two")]}, config)["messages"]) == 4


def test_the_first_write_of_an_index_counts_and_the_last_error(saver: LoomlineSaver) -> None:
    config = new_config()
    config["configurable"]["checkpoint_ns"] = ""
    stored = saver.put(config, empty_checkpoint(), {"source": "input", "step": -1, "parents": {}}, {})
    saver.put_writes(stored, [("a", 1), ("b", 2)], "task", "~2")
    saver.put_writes(stored, [("a", 9), ("b", 9), ("c", 3)], "task", "~2")
    saver.put_writes(stored, [("__error__", "first")], "other", "~1")
    saver.put_writes(stored, [("__error__", "second")], "other", "~1")
    found = saver.get_tuple(config)
    assert found is not None
    assert found.pending_writes == [
        ("other", "__error__", "second"),
        ("task", "a", 1),
        ("task", "b", 2),
        ("task", "c", 3),
    ]


def test_a_saver_closes_only_clients_of_its_own(
    client: Loomline, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOMLINE_SERVER", server.base)
    with LoomlineSaver() as saver:
        assert saver.get_tuple(new_config()) is None
    assert saver._sync()._transport._http.is_closed
    with LoomlineSaver(client) as saver:
        pass
    assert saver.get_tuple(new_config()) is None


async def test_a_saver_closes_its_own_async_client(
    async_client: AsyncLoomline, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOMLINE_SERVER", server.base)
    async with LoomlineSaver() as saver:
        assert await saver.aget_tuple(new_config()) is None
    assert saver._sync()._transport._http.is_closed and saver._async()._transport._http.is_closed
    async with LoomlineSaver(async_client=async_client) as saver:
        pass
    assert await saver.aget_tuple(new_config()) is None


def test_a_saver_with_one_client_names_the_other(saver: LoomlineSaver) -> None:
    with pytest.raises(RuntimeError, match="async_client"):
        saver._async()


def test_a_lost_server_is_an_error_of_the_run(mortal: Server) -> None:
    with Loomline(mortal.base, max_retries=0) as client:
        graph, config = counting_graph(LoomlineSaver(client), 2), new_config()
        graph.invoke({"count": 0}, config)
        mortal.kill()
        with pytest.raises(LoomlineConnectionError):
            graph.invoke({"count": 0}, config)
        mortal.start()
        assert graph.invoke({"count": 0}, config)["count"] == 2
