from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from loomline import (
    AsyncLoomline,
    AsyncStream,
    AsyncThread,
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    Notice,
    SubagentEvent,
    models,
)
from rig import Server

DECISIONS = "https://aitp.dev/capabilities/aitp-02-decisions/v1.0.0/schema.json"
PNG = b"\x89PNG\r\n\x1a\n"
AGENTS = """
[models.offline]
provider = "scripted"

[agents.triage]
model = "offline"
handoffs = ["billing"]

[agents.billing]
model = "offline"
description = "Knows the bills."

[agents.asker]
model = "offline"

[[agents.asker.external]]
name = "ask_user"
description = "Asks the user a question."
parameters = { type = "object", properties = { question = { type = "string" } }, required = ["question"] }
"""


@pytest.fixture(scope="module")
def configured():
    server = Server(AGENTS)
    yield server
    server.stop()


def text(message: models.MessageView) -> str:
    return "".join(part["text"] for part in message.content if part.type in ("input_text", "output_text"))


async def texts(thread: AsyncThread) -> list[str]:
    return [text(message) for message in (await thread.messages()).messages]


async def notice_of_the_last_event(notices: AsyncStream[Notice], thread: AsyncThread) -> Notice:
    seq = (await thread.read()).seq
    async for notice in notices:
        if (notice.thread, notice.seq) == (thread.key, seq):
            return notice
    raise AssertionError("the stream ended")


async def at_rest(thread: AsyncThread) -> None:
    async for _ in thread.follow(until="rest"):
        pass


async def test_run_returns_the_text_of_the_answer(async_thread: AsyncThread) -> None:
    result = await async_thread.run("compute 2+3*4")
    assert (result.text, result.status, result.pending, result.interruption) == ("compute gave 14.", "completed", [], None)
    assert (await async_thread.read_run(result.execution_id)).status == "completed"


async def test_run_passes_every_argument_on(async_thread: AsyncThread) -> None:
    parts = [{"type": "input_text", "text": "Good morning"}]
    await async_thread.run(
        parts, agent="demo", policy="reject", max_steps=3, timeout_ms=5000, metadata={"ticket": 17}, channel="web"
    )
    message = (await async_thread.messages()).messages[0]
    assert (message.metadata, message.channel) == ({"ticket": 17}, "web")


async def test_a_failed_run_is_a_result(async_thread: AsyncThread) -> None:
    result = await async_thread.run("fail quota")
    assert result.status == "failed"
    assert result.interruption is not None
    assert result.interruption.reason == "quota_exceeded"
    assert (await async_thread.read()).status == "failed"
    await async_thread.reopen()
    assert (await async_thread.read()).status == "open"


async def test_the_deltas_of_a_stream_are_the_text_of_the_document(async_thread: AsyncThread) -> None:
    said = ""
    async with async_thread.stream("say 30 words") as events:
        async for event in events:
            if isinstance(event, models.ChunkEmittedEvent) and event.chunk_type == "text-delta":
                said += event.data["delta"]
    document = (await async_thread.document()).content
    assert document["turns"][1]["messages"][0]["parts"][0]["content"] == said
    assert len(said.split()) == 30


async def test_post_returns_before_the_run_ends(async_thread: AsyncThread) -> None:
    first = await async_thread.post("slow 20ms say 5 words")
    second = await async_thread.post("Good morning")
    assert (first.queued, second.queued) == (False, True)
    events = [event async for event in async_thread.follow(first.after, until="rest")]
    finished = [event for event in events if isinstance(event, models.ThreadFinishedEvent)]
    assert [event.result for event in finished] == ["completed", "completed"]
    assert (await texts(async_thread))[-1] == "You said: Good morning"


async def test_the_stream_of_a_queued_message_has_only_its_run(async_thread: AsyncThread) -> None:
    await async_thread.post("slow 20ms say 5 words")
    events = [event async for event in async_thread.stream("Good morning")]
    created = [event for event in events if isinstance(event, models.ExecutionCreatedEvent)]
    finished = [event for event in events if isinstance(event, models.ThreadFinishedEvent)]
    assert [len(created), len(finished)] == [1, 1]


async def test_a_run_includes_its_handoffs(configured: Server, key: str) -> None:
    async with AsyncLoomline(configured.base) as client:
        thread = client.thread(key)
        result = await thread.run("transfer_to_billing please", agent="triage")
        runs = (await thread.runs()).runs
        assert [run.agent for run in runs] == ["triage", "billing"]
        assert result.execution_id == runs[1].id
        assert result.text == "transfer_to_billing gave Transferred to billing."


async def test_follow_begins_behind_an_event(async_thread: AsyncThread) -> None:
    await async_thread.run("Good morning")
    everything = [event async for event in async_thread.follow(until="rest")]
    assert [event.seq for event in everything] == list(range(1, len(everything) + 1))
    by_id = [event async for event in async_thread.follow(everything[4].id, until="rest")]
    by_seq = [event async for event in async_thread.follow(5, until="rest")]
    assert by_id == by_seq == everything[5:]


async def test_follow_shows_the_events_of_subagents(async_thread: AsyncThread) -> None:
    await async_thread.run('delegate "compute 17*3"', agent="lead")
    events = [event async for event in async_thread.follow(until="rest", subagents=True)]
    below = [event for event in events if isinstance(event, SubagentEvent)]
    assert below[0].path[0].thread_key == async_thread.key
    assert below[0].thread_key.startswith(async_thread.key + "/")
    assert below[0].event.seq == 1
    streamed = [event async for event in async_thread.stream('delegate "compute 1+1"', agent="lead", subagents=True)]
    assert any(isinstance(event, SubagentEvent) for event in streamed)


async def test_a_thread_is_created_changed_closed_and_deleted(async_client: AsyncLoomline, key: str) -> None:
    thread = await async_client.create_thread(key, title="Trip", metadata={"customer": "c-7"})
    assert thread.info is not None
    assert (thread.info.title, thread.info.metadata) == ("Trip", {"customer": "c-7"})
    assert (await thread.update(title=None)).title is None
    assert (await thread.update(metadata={"a": 1})).metadata == {"a": 1}
    assert (await thread.read()) == thread.info
    assert (await thread.close()).seq == (await thread.read()).seq
    with pytest.raises(ConflictError) as raised:
        await thread.post("Good morning")
    assert raised.value.code == "illegal_transition"
    await thread.delete()
    with pytest.raises(NotFoundError):
        await thread.read()


async def test_a_thread_without_a_key_gets_its_id(async_client: AsyncLoomline) -> None:
    thread = await async_client.create_thread()
    assert thread.info is not None
    assert thread.key == thread.info.id


@pytest.mark.parametrize("awkward", ["a/b?c#d%20e", "ä ö", "..a", "a.b~c", "%2F"])
async def test_any_key_names_its_thread(async_client: AsyncLoomline, key: str, awkward: str) -> None:
    thread = await async_client.create_thread(key + awkward)
    assert (await async_client.thread(key + awkward).read()).key == key + awkward
    await thread.delete()


async def test_a_key_of_dots_never_leaves_the_path(async_client: AsyncLoomline) -> None:
    for dots in (".", ".."):
        with pytest.raises(NotFoundError, match="there is no such thread"):
            await async_client.thread(dots).delete()
    with pytest.raises(ValueError, match="at least one character"):
        async_client.thread("")


async def test_threads_reads_all_pages(async_client: AsyncLoomline, key: str) -> None:
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    for n in range(5):
        await async_client.create_thread(f"{key}/{n}")
    listed = [thread.key async for thread in async_client.threads(prefix=key, limit=2, since=before, status="open")]
    assert listed == [f"{key}/{n}" for n in reversed(range(5))]
    assert [thread async for thread in async_client.threads(prefix=key, waits=True)] == []


async def test_search_shows_where_the_words_are(async_client: AsyncLoomline, async_thread: AsyncThread) -> None:
    await async_thread.run("Do you know Machu Picchu?")
    found = [thread async for thread in async_client.search("machu pic", prefix=async_thread.key, agent="demo", limit=1)]
    assert [thread.key for thread in found] == [async_thread.key]
    assert found[0].snippets is not None
    assert "Machu Picchu" in found[0].snippets[0].text


async def test_forks_share_the_log_and_can_be_compared(async_client: AsyncLoomline, async_thread: AsyncThread) -> None:
    await async_thread.run("Good morning")
    at = (await async_thread.read()).seq
    await async_thread.run("Good evening")
    fork = await async_thread.fork(f"{async_thread.key}-fork", at=at)
    assert fork.info is not None
    assert fork.info.fork is not None
    assert fork.info.fork.seq == at
    assert await texts(fork) == ["Good morning", "You said: Good morning"]
    assert [branch.key for branch in await async_thread.branches()] == [async_thread.key, fork.key]
    tree = await async_thread.tree(limit=1000)
    assert [thread.key for thread in tree.threads] == [async_thread.key, fork.key]
    diff = await async_thread.diff(fork)
    assert diff == await async_thread.diff(fork.key)
    assert any(change["level"] == "turn" for change in diff.changes)


async def test_a_document_is_exported_and_imported(async_client: AsyncLoomline, async_thread: AsyncThread) -> None:
    await async_thread.run("compute 6*7")
    document = await async_thread.document()
    assert document.hash is not None
    assert document.hash.startswith("sha256:")
    assert (document.losses, document.n_losses, document.hash_warning) == ([], 0, None)
    copy = await async_client.import_document(document.content, key=f"{async_thread.key}-copy", agent="demo")
    assert copy.losses == []
    assert copy.thread.info is not None
    assert await texts(copy.thread) == await texts(async_thread)
    messages = await async_thread.document("pydantic-ai")
    again = await async_client.import_document(json.dumps(messages.content), "pydantic-ai")
    assert (await again.thread.messages()).messages[0].role == "user"


async def test_a_lossy_document_names_its_losses(async_thread: AsyncThread) -> None:
    await async_thread.run("fail after 3")
    exported = await async_thread.document("ai-sdk-ui")
    assert exported.n_losses == len(exported.losses) > 0
    assert exported.losses[0].pointer.startswith("/")


async def test_messages_and_runs_are_read_in_pages(async_thread: AsyncThread) -> None:
    for n in range(3):
        await async_thread.run(f"message {n}")
    page = await async_thread.messages(limit=1)
    assert [text(message) for message in page.messages] == ["message 2", "You said: message 2"]
    earlier = await async_thread.messages(limit=1, before=page.before)
    assert text(earlier.messages[0]) == "message 1"
    past = await async_thread.messages(at=(await async_thread.runs(limit=1)).before)
    assert len(past.messages) < 6
    assert len((await async_thread.runs()).runs) == 3


async def test_a_message_is_replaced_and_answered_again(async_thread: AsyncThread) -> None:
    await async_thread.run("compute 1+1")
    message = (await async_thread.messages()).messages[0]
    replaced = await async_thread.replace(message.id, "compute 6*7")
    await at_rest(async_thread)
    assert (await async_thread.messages()).messages[-1].content[-1]["text"] == "compute gave 42."
    again = await async_thread.regenerate(replaced.item_id, agent="demo")
    await at_rest(async_thread)
    assert again.execution_id != replaced.execution_id
    versions = await async_thread.versions(replaced.item_id)
    assert [version.current for version in versions.versions] == [False, True]


async def test_the_bytes_of_an_image_are_read(async_thread: AsyncThread) -> None:
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    accepted = await async_thread.post([{"type": "input_image", "image_url": url}])
    content = await async_thread.content(accepted.item_id, 0)
    assert (content.data, content.media_type) == (PNG, "image/png")


async def test_cancel_stops_the_run_that_executes(async_thread: AsyncThread) -> None:
    accepted = await async_thread.post("slow say 500 words")
    cancelled = await async_thread.cancel(accepted.execution_id, reason="page_closed")
    assert cancelled.execution_id == accepted.execution_id
    run = await async_thread.read_run(str(accepted.execution_id))
    assert run.interruption is not None
    assert run.interruption.reason == "page_closed"
    assert (await async_thread.cancel()).execution_id is None


async def test_an_approved_call_runs(async_client: AsyncLoomline, async_thread: AsyncThread) -> None:
    result = await async_thread.run("compute 6*7", agent="careful")
    (call,) = result.pending
    assert (call.tool_name, call.kind, call.input) == ("compute", "approval", {"expression": "6*7"})
    waiting = [entry async for entry in async_client.waiting(kind="approval", prefix=async_thread.key, limit=1)]
    assert [entry.tool_call_id for entry in waiting] == [call.tool_call_id]
    accepted = await async_thread.approve(call.tool_call_id, arguments={"expression": "6*8"}, actor="ada")
    async for _ in async_thread.follow(accepted.after, until="rest"):
        pass
    assert (await async_thread.messages()).messages[-1].content[-1]["text"] == "compute gave 48."
    with pytest.raises(ConflictError) as raised:
        await async_thread.approve(call.tool_call_id)
    assert raised.value.code == "answered_already"
    assert raised.value.details == {"toolCallId": call.tool_call_id}


async def test_a_denied_call_tells_the_model_why(async_thread: AsyncThread) -> None:
    result = await async_thread.run("compute 6*7", agent="careful")
    await async_thread.deny(result.pending[0].tool_call_id, "too expensive")
    await at_rest(async_thread)
    assert "too expensive" in str((await async_thread.messages()).messages[-1].content)
    assert await async_thread.pending() == []


async def test_a_call_gets_its_result_from_the_client(configured: Server, key: str) -> None:
    async with AsyncLoomline(configured.base) as client:
        thread = client.thread(key)
        result = await thread.run("ask_user question=When", agent="asker")
        (call,) = result.pending
        assert call.kind == "external"
        await thread.answer([{"tool_call_id": call.tool_call_id, "output": "at noon"}])
        await at_rest(thread)
        assert "at noon" in str((await thread.messages()).messages[-1].content)
        result = await thread.run("ask_user question=Where", agent="asker")
        await thread.answer([{"tool_call_id": result.pending[0].tool_call_id, "error_text": "nobody is there"}])
        await at_rest(thread)
        assert "nobody is there" in str((await thread.messages()).messages[-1].content)


async def test_a_request_is_answered_and_declined(async_thread: AsyncThread) -> None:
    await async_thread.run("Which seats are there?", agent="chooser")
    (request,) = [request async for request in async_thread.requests()]
    assert (request.id, request.topic, request.by.kind) == ("decision:seat", "decision", "agent")
    seat = async_thread.request(request.id)
    with pytest.raises(InvalidRequestError) as raised:
        await seat.answer({"option": "roof"})
    assert raised.value.code == "invalid_request_answer"
    answered = await seat.answer({"option": "aisle"})
    assert answered.request is not None
    assert answered.request.state == "answered"
    assert (await seat.read()).n_answers == 1
    await at_rest(async_thread)
    assert [request async for request in async_thread.requests()] == []
    assert [request.state async for request in async_thread.requests(all=True, limit=1)] == ["answered"]


async def test_a_request_is_declined_and_not_cancelled(async_thread: AsyncThread) -> None:
    await async_thread.run("Which seats are there?", agent="chooser")
    seat = async_thread.request("decision:seat")
    with pytest.raises(ForbiddenError) as raised:
        await seat.cancel("no time")
    assert raised.value.details["reason"] == "not_the_asker"
    declined = await seat.decline("I take the train.", code="unsupported")
    assert declined.request is not None
    assert (declined.request.state, declined.request.reason) == ("declined", "I take the train.")


async def test_an_actor_joins_declares_and_leaves(async_client: AsyncLoomline, key: str) -> None:
    thread = await async_client.create_thread(key)
    joined = await thread.join("ada/1", capabilities=[DECISIONS], initiator=True, fields={"client_id": "c"})
    assert (joined.actor["id"], joined.actor["client_id"], joined.is_initiator) == ("ada/1", "c", True)
    assert [actor.actor["id"] for actor in await thread.actors()] == ["ada/1"]
    assert (await thread.declare_capabilities("ada/1", [])).actor["capabilities"] == []
    assert (await thread.leave("ada/1")).seq == (await thread.read()).seq
    assert await thread.actors() == []


async def test_agents_are_listed(async_client: AsyncLoomline) -> None:
    agents = {agent.name: agent for agent in await async_client.agents()}
    assert agents["demo"].is_default
    assert agents["careful"].tool_details[0].needs_approval


async def test_a_web_token_is_made(async_client: AsyncLoomline) -> None:
    token = await async_client.web_token("demo", "shop-ada-", actor="ada", scopes=["read"], may_answer=False)
    assert token.token == "development"


async def test_follow_tells_which_threads_change(async_client: AsyncLoomline, async_thread: AsyncThread) -> None:
    async with async_client.follow() as notices:
        assert (await anext(notices)).type == "ready"
        await async_thread.run("Good morning")
        notice = await notice_of_the_last_event(notices, async_thread)
        assert (notice.type, notice.status) == ("thread", "open")
    await async_thread.run("Good evening")
    async with async_client.follow(notice.id) as notices:
        assert (await notice_of_the_last_event(notices, async_thread)).seq > notice.seq


async def test_named_objects_come_once_over_several_pages(async_client: AsyncLoomline, key: str) -> None:
    thread = await async_client.create_thread(key)
    parts = thread.objects("parts")
    for name in ("a", "b", "c"):
        await parts.put(name, name * 3_000_000)
    listed = [part.id async for part in parts.list(["a", "b", "none", "c", "a"])]
    assert listed == ["a", "b", "c"]
    assert [part.id async for part in parts.list([])] == []


async def test_objects_are_stored_beside_a_thread(async_client: AsyncLoomline, key: str) -> None:
    thread = await async_client.create_thread(key)
    notes = thread.objects("notes.v1")
    values: list[Any] = [{"a": [1, None]}, None, "text", 4, True]
    for n, value in enumerate(values):
        await notes.put(f"id/{n} ä", value)
    assert [found.value async for found in notes.list(limit=2)] == values
    assert [found.id async for found in notes.list(limit=2, order="desc", after="id/2 ä")] == ["id/1 ä", "id/0 ä"]
    named = [found.value async for found in notes.list(["id/3 ä", "none", "id/0 ä"])]
    assert sorted(named, key=str) == [4, {"a": [1, None]}]
    first = await notes.get("id/0 ä")
    second = await notes.put("id/0 ä", "new")
    assert (second.value, second.created_at) == ("new", first.created_at)
    await notes.delete("id/0 ä")
    with pytest.raises(NotFoundError) as raised:
        await notes.get("id/0 ä")
    assert raised.value.code == "object_not_found"
    with pytest.raises(NotFoundError):
        await notes.delete("id/0 ä")


async def test_a_history_is_appended_without_a_run(async_client: AsyncLoomline, key: str) -> None:
    at = "2026-01-01T00:00:00Z"
    question = {"part_kind": "user-prompt", "content": "Good morning", "timestamp": at}
    history = [
        {"kind": "request", "parts": [question], "timestamp": at},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "Hello"}], "timestamp": at},
    ]
    other = await async_client.create_thread(key)
    for _ in range(2):
        seq = (await other.read()).seq
        imported = await other.import_messages(history, "pydantic-ai", agent="demo", seq=seq)
        assert (imported.thread.key, imported.losses) == (other.key, [])
        assert imported.thread.info == await other.read()
    with pytest.raises(ConflictError):
        await other.import_messages(history, "pydantic-ai", seq=seq)
    assert await texts(other) == ["Good morning", "Hello"] * 2
    assert (await other.document("pydantic-ai")).content == history * 2
