"""LoomlineSession, as a session of the Agents SDK."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message, function_call
from loomline import AsyncLoomline, LoomlineConnectionError
from loomline._wire import Call
from loomline.adapters.openai_agents import LoomlineSession
from rig import Server

set_tracing_disabled(True)

PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n").decode()

TURN: list[Any] = [
    {"role": "user", "content": "Which weather is it?"},
    {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "thinking"}],
        "encrypted_content": "gAAAA",
        "status": None,
    },
    {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"at":"Oslo"}'},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_image", "image_url": PNG}]},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Sunny", "annotations": [], "logprobs": []}],
    },
]

REFUSED: list[Any] = [
    {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}},
    {"id": "cmp_1", "type": "compaction", "encrypted_content": "opaque"},
    {"type": "function_call_output", "call_id": "unknown", "output": "orphan"},
    {"type": "of_next_year", "text": "new"},
]

MIXED: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": PNG, "detail": "high"},
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
        ],
    },
    {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
]


@pytest.fixture
def session(async_client: AsyncLoomline, key: str) -> LoomlineSession:
    return LoomlineSession(key, async_client)


async def texts(client: AsyncLoomline, key: str) -> list[tuple[str, str]]:
    page = await client._transport.json(Call("GET", f"/v1/conversations/{key.replace('/', '%2F')}/items", {"order": "asc"}))
    return [
        (item["role"], part["text"])
        for item in page["data"]
        if item["type"] == "message"
        for part in item["content"]
        if "text" in part
    ]


async def test_items_come_back_as_they_were_added(session: LoomlineSession) -> None:
    assert isinstance(session, Session)
    assert await session.get_items() == []
    for item in TURN:
        await session.add_items([item])
    await session.add_items(MIXED)
    await session.add_items([])
    assert await session.get_items() == TURN + MIXED


async def test_other_protocols_read_and_extend_the_session(async_client: AsyncLoomline, key: str) -> None:
    session = LoomlineSession(key, async_client)
    await session.add_items(TURN)
    assert await texts(async_client, key) == [("user", "Which weather is it?"), ("assistant", "Sunny")]
    await async_client.thread(key).run("Good morning")
    *before, question, answer = await session.get_items()
    assert before == TURN
    assert question["content"] == [{"type": "input_text", "text": "Good morning"}]
    assert answer["content"][0]["text"] == "You said: Good morning"


async def test_items_that_the_thread_refuses_keep_their_places(session: LoomlineSession) -> None:
    await session.add_items(REFUSED[:1])
    await session.add_items([TURN[0], *REFUSED[1:3], MIXED[3], *REFUSED[3:]])
    expected = [REFUSED[0], TURN[0], *REFUSED[1:3], MIXED[3], REFUSED[3]]
    assert await session.get_items() == expected
    assert [await session.get_items(limit) for limit in range(1, 8)] == [expected[-limit:] for limit in range(1, 8)]
    popped = [await session.pop_item() for _ in range(7)]
    assert popped == [*reversed(expected), None]
    assert await session.get_items() == []


async def test_limits_select_the_newest_items(async_client: AsyncLoomline, key: str) -> None:
    session = LoomlineSession(key, async_client, session_settings={"limit": 3})
    items: list[Any] = [{"role": "user", "content": str(number)} for number in range(130)]
    await session.add_items(items)
    assert await session.get_items() == items[-3:]
    assert await session.get_items(limit=0) == []
    assert await session.get_items(limit=110) == items[-110:]
    assert await LoomlineSession(key, async_client).get_items() == items


async def test_pop_and_clear_leave_a_usable_session(session: LoomlineSession) -> None:
    await session.add_items(TURN)
    assert await session.pop_item() == TURN[-1]
    assert await session.get_items() == TURN[:-1]
    await session.clear_session()
    await session.clear_session()
    assert await session.get_items() == []
    await session.add_items(TURN)
    assert await session.get_items() == TURN


@function_tool
def weather(at: str) -> str:
    """The weather of a place."""
    return f"sunny in {at}"


def script(*steps: Any) -> Agent:
    return Agent(name="helper", model=ScriptedModel(steps), tools=[weather])


async def test_a_runner_continues_the_session_after_a_kill(mortal: Server, key: str) -> None:
    async with AsyncLoomline(mortal.base) as client:
        agent = script([function_call("weather", {"at": "Oslo"}, call_id="c1")], [assistant_message("Sunny.")])
        await Runner.run(agent, "Which weather is it?", session=LoomlineSession(key, client))
    mortal.kill()
    mortal.start()
    async with AsyncLoomline(mortal.base) as client:
        session = LoomlineSession(key, client)
        before = await session.get_items()
        model = ScriptedModel([[assistant_message("You are welcome.")]])
        result = Runner.run_streamed(Agent(name="helper", model=model), "Thanks", session=session)
        async for _ in result.stream_events():
            pass
        assert model.first_call is not None
        assert model.first_call.input == [*before, {"role": "user", "content": "Thanks"}]
        assert [(item.get("type"), item.get("role")) for item in before] == [
            (None, "user"),
            ("function_call", None),
            ("function_call_output", None),
            ("message", "assistant"),
        ]
        assert (await texts(client, key))[-2:] == [("user", "Thanks"), ("assistant", "You are welcome.")]


async def test_a_session_closes_only_a_client_of_its_own(
    async_client: AsyncLoomline, server: Server, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOMLINE_SERVER", server.base)
    async with LoomlineSession(key) as session:
        await session.add_items(TURN[:1])
    assert session._transport._http.is_closed
    async with LoomlineSession(key, async_client) as session:
        pass
    assert await session.get_items() == TURN[:1]


async def test_a_lost_server_is_an_error(mortal: Server, key: str) -> None:
    async with AsyncLoomline(mortal.base, max_retries=0) as client:
        session = LoomlineSession(key, client)
        await session.add_items(TURN)
        mortal.kill()
        with pytest.raises(LoomlineConnectionError):
            await session.add_items(MIXED)
        mortal.start()
        assert await session.get_items() == TURN
