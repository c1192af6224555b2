"""History and AsyncHistory, with real agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from loomline import AsyncLoomline, Loomline, LoomlineConnectionError, Thread
from loomline._wire import Call
from loomline.adapters.pydantic_ai import AsyncHistory, History, HistoryDiffersError
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage
from rig import Server

RICH: list[ModelMessage] = [
    ModelRequest(
        parts=[
            SystemPromptPart("Be brief."),
            UserPromptPart(["look", ImageUrl("https://example.com/a.png"), BinaryContent(b"\x89PNG", media_type="image/png")]),
        ],
        instructions="Answer.",
        metadata={"a": 1},
        run_id="r1",
    ),
    ModelResponse(
        parts=[
            ThinkingPart("hm", signature="sig", id="t1", provider_name="north"),
            TextPart("Let me see."),
            ToolCallPart("look", {"at": 1.50}, tool_call_id="c1"),
            ToolCallPart("hear", '{"at":  2}', tool_call_id="c2"),
        ],
        usage=RequestUsage(input_tokens=3, output_tokens=4, details={"cached": 1}),
        model_name="north-1",
        provider_details={"z": 1},
        provider_response_id="p1",
        finish_reason="tool_call",
        run_id="r1",
    ),
    ModelRequest(
        parts=[
            ToolReturnPart("look", {"seen": [1, 2.5]}, tool_call_id="c1", metadata={"m": 1}),
            ToolReturnPart("hear", "too quiet", tool_call_id="c2", outcome="retried"),
        ],
        run_id="r1",
    ),
    ModelResponse(parts=[FilePart(BinaryContent(b"PDF", media_type="application/pdf")), TextPart("Done.")], run_id="r1"),
]


def normal(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    return ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(list(messages)))


def looking_agent() -> Agent[None, str]:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, UserPromptPart):
            return ModelResponse(parts=[ThinkingPart("hm"), ToolCallPart("look", {"at": -1})])
        if isinstance(last, ToolReturnPart) and last.outcome == "success":
            return ModelResponse(parts=[TextPart(f"It is {last.content}.")])
        return ModelResponse(parts=[ToolCallPart("look", {"at": 1})])

    agent = Agent(FunctionModel(model), instructions="Look.")

    @agent.tool_plain
    def look(at: int) -> str:
        if at < 0:
            raise ModelRetry("at is negative")
        return "sunny"

    return agent


def texts(thread: Thread) -> list[str]:
    path = f"/v1/conversations/{thread.key.replace('/', '%2F')}/items"
    items = thread._transport.json(Call("GET", path, {"order": "asc"}))["data"]
    return [part["text"] for item in items if item["type"] == "message" for part in item["content"] if "text" in part]


def test_messages_of_all_kinds_come_back_equal(thread: Thread) -> None:
    history = History(thread, agent="guide")
    assert history.load() == []
    history.append(RICH)
    assert history.load() == normal(RICH)
    assert History(thread).load() == normal(RICH)
    assert texts(thread) == ["look", "Let me see.", "Done."]


def test_an_agent_continues_its_history_after_a_kill(mortal: Server, key: str) -> None:
    with Loomline(mortal.base) as client:
        history = History(client.thread(key))
        first = looking_agent().run_sync("Which weather?", message_history=history.load())
        history.append(first)
        second = looking_agent().run_sync("And now?", message_history=first.all_messages())
        history.append(second)
    mortal.kill()
    mortal.start()
    with Loomline(mortal.base) as client:
        history = History(client.thread(key))
        loaded = history.load()
        assert loaded == normal(second.all_messages())
        third = looking_agent().run_sync("Thanks", message_history=loaded)
        history.append(third.new_messages())
        assert history.load() == normal(third.all_messages())


async def test_the_async_history_does_the_same(async_client: AsyncLoomline, key: str) -> None:
    history = AsyncHistory(async_client.thread(key), agent="guide")
    async with Agent(TestModel()).run_stream("Which weather?", message_history=await history.load()) as result:
        await result.get_output()
    await history.append(result)
    assert await history.load() == normal(result.all_messages())
    with pytest.raises(HistoryDiffersError):
        await AsyncHistory(async_client.thread(key)).append(RICH)


def test_answers_of_the_server_are_part_of_the_history(thread: Thread) -> None:
    history = History(thread)
    history.append(RICH)
    thread.run("Good morning")
    with pytest.raises(HistoryDiffersError, match="has 6 messages"):
        history.append(RICH)
    *before, question, answer = history.load()
    assert before == normal(RICH)
    assert question.parts[0].content == "Good morning"
    assert answer.parts[0].content == "You said: Good morning"
    history.append(Agent(TestModel()).run_sync("Bye", message_history=[*before, question, answer]))


def test_a_run_that_began_with_another_history_is_refused(thread: Thread) -> None:
    history = History(thread)
    history.append(RICH)
    with pytest.raises(HistoryDiffersError, match="began with 0 messages"):
        history.append(Agent(TestModel()).run_sync("Hello"))
    assert history.load() == normal(RICH)


def test_two_writers_do_not_mix_their_messages(thread: Thread) -> None:
    one, other = History(thread), History(thread)
    one.append(RICH)
    with pytest.raises(HistoryDiffersError):
        other.append(RICH[:1])
    other.load()
    other.append(RICH[:1])
    with pytest.raises(HistoryDiffersError):
        one.append(RICH)
    assert one.load() == normal(RICH + RICH[:1])


def test_a_new_title_is_no_difference(thread: Thread) -> None:
    history = History(thread)
    history.append(RICH)
    thread.update(title="Weather")
    history.append(RICH)
    assert history.load() == normal(RICH + RICH)


def test_a_lost_response_does_not_repeat_the_messages(client: Loomline, thread: Thread) -> None:
    history = History(thread)
    history.append(RICH)
    send = thread._transport.send

    def lose(call: Call) -> Any:
        response = send(call)
        if call.path.endswith("/import"):
            raise LoomlineConnectionError("lost")
        return response

    for is_created in (True, False):
        thread._transport.send = lose  # type: ignore[method-assign]
        history.append(RICH)
        thread._transport.send = send  # type: ignore[method-assign]
        if is_created:
            history.append(RICH)
    assert history.load() == normal(RICH * 4)


def test_a_repeated_append_of_a_new_process_continues(thread: Thread) -> None:
    first = Agent(TestModel()).run_sync("Hello")
    History(thread).append(first)
    history = History(thread)
    history.append(first)
    second = Agent(TestModel()).run_sync("Bye", message_history=first.all_messages())
    history.append(second)
    assert history.load() == normal(second.all_messages())


def test_a_lost_server_loses_no_message(mortal: Server, key: str) -> None:
    with Loomline(mortal.base, max_retries=0) as client:
        history = History(client.thread(key))
        history.append(RICH)
        mortal.kill()
        with pytest.raises(LoomlineConnectionError):
            history.append(RICH)
        mortal.start()
        history.append(RICH)
        assert history.load() == normal(RICH + RICH)


def test_no_messages_create_no_thread(thread: Thread) -> None:
    History(thread).append([])
    assert History(thread).load() == []
