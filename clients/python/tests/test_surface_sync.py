# Written by generate.py from tests/test_surface_async.py: do not edit.
from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from loomline import (
    Loomline,
    Stream,
    Thread,
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


def texts(thread: Thread) -> list[str]:
    return [text(message) for message in (thread.messages()).messages]


def notice_of_the_last_event(notices: Stream[Notice], thread: Thread) -> Notice:
    seq = (thread.read()).seq
    for notice in notices:
        if (notice.thread, notice.seq) == (thread.key, seq):
            return notice
    raise AssertionError("the stream ended")


def at_rest(thread: Thread) -> None:
    for _ in thread.follow(until="rest"):
        pass


def test_run_returns_the_text_of_the_answer(thread: Thread) -> None:
    result = thread.run("compute 2+3*4")
    assert (result.text, result.status, result.pending, result.interruption) == ("compute gave 14.", "completed", [], None)
    assert (thread.read_run(result.execution_id)).status == "completed"


def test_run_passes_every_argument_on(thread: Thread) -> None:
    parts = [{"type": "input_text", "text": "Good morning"}]
    thread.run(
        parts, agent="demo", policy="reject", max_steps=3, timeout_ms=5000, metadata={"ticket": 17}, channel="web"
    )
    message = (thread.messages()).messages[0]
    assert (message.metadata, message.channel) == ({"ticket": 17}, "web")


def test_a_failed_run_is_a_result(thread: Thread) -> None:
    result = thread.run("fail quota")
    assert result.status == "failed"
    assert result.interruption is not None
    assert result.interruption.reason == "quota_exceeded"
    assert (thread.read()).status == "failed"
    thread.reopen()
    assert (thread.read()).status == "open"


def test_the_deltas_of_a_stream_are_the_text_of_the_document(thread: Thread) -> None:
    said = ""
    with thread.stream("say 30 words") as events:
        for event in events:
            if isinstance(event, models.ChunkEmittedEvent) and event.chunk_type == "text-delta":
                said += event.data["delta"]
    document = (thread.document()).content
    assert document["turns"][1]["messages"][0]["parts"][0]["content"] == said
    assert len(said.split()) == 30


def test_post_returns_before_the_run_ends(thread: Thread) -> None:
    first = thread.post("slow 20ms say 5 words")
    second = thread.post("Good morning")
    assert (first.queued, second.queued) == (False, True)
    events = [event for event in thread.follow(first.after, until="rest")]
    finished = [event for event in events if isinstance(event, models.ThreadFinishedEvent)]
    assert [event.result for event in finished] == ["completed", "completed"]
    assert (texts(thread))[-1] == "You said: Good morning"


def test_the_stream_of_a_queued_message_has_only_its_run(thread: Thread) -> None:
    thread.post("slow 20ms say 5 words")
    events = [event for event in thread.stream("Good morning")]
    created = [event for event in events if isinstance(event, models.ExecutionCreatedEvent)]
    finished = [event for event in events if isinstance(event, models.ThreadFinishedEvent)]
    assert [len(created), len(finished)] == [1, 1]


def test_a_run_includes_its_handoffs(configured: Server, key: str) -> None:
    with Loomline(configured.base) as client:
        thread = client.thread(key)
        result = thread.run("transfer_to_billing please", agent="triage")
        runs = (thread.runs()).runs
        assert [run.agent for run in runs] == ["triage", "billing"]
        assert result.execution_id == runs[1].id
        assert result.text == "transfer_to_billing gave Transferred to billing."


def test_follow_begins_behind_an_event(thread: Thread) -> None:
    thread.run("Good morning")
    everything = [event for event in thread.follow(until="rest")]
    assert [event.seq for event in everything] == list(range(1, len(everything) + 1))
    by_id = [event for event in thread.follow(everything[4].id, until="rest")]
    by_seq = [event for event in thread.follow(5, until="rest")]
    assert by_id == by_seq == everything[5:]


def test_follow_shows_the_events_of_subagents(thread: Thread) -> None:
    thread.run('delegate "compute 17*3"', agent="lead")
    events = [event for event in thread.follow(until="rest", subagents=True)]
    below = [event for event in events if isinstance(event, SubagentEvent)]
    assert below[0].path[0].thread_key == thread.key
    assert below[0].thread_key.startswith(thread.key + "/")
    assert below[0].event.seq == 1
    streamed = [event for event in thread.stream('delegate "compute 1+1"', agent="lead", subagents=True)]
    assert any(isinstance(event, SubagentEvent) for event in streamed)


def test_a_thread_is_created_changed_closed_and_deleted(client: Loomline, key: str) -> None:
    thread = client.create_thread(key, title="Trip", metadata={"customer": "c-7"})
    assert thread.info is not None
    assert (thread.info.title, thread.info.metadata) == ("Trip", {"customer": "c-7"})
    assert (thread.update(title=None)).title is None
    assert (thread.update(metadata={"a": 1})).metadata == {"a": 1}
    assert (thread.read()) == thread.info
    assert (thread.close()).seq == (thread.read()).seq
    with pytest.raises(ConflictError) as raised:
        thread.post("Good morning")
    assert raised.value.code == "illegal_transition"
    thread.delete()
    with pytest.raises(NotFoundError):
        thread.read()


def test_a_thread_without_a_key_gets_its_id(client: Loomline) -> None:
    thread = client.create_thread()
    assert thread.info is not None
    assert thread.key == thread.info.id


@pytest.mark.parametrize("awkward", ["a/b?c#d%20e", "ä ö", "..a", "a.b~c", "%2F"])
def test_any_key_names_its_thread(client: Loomline, key: str, awkward: str) -> None:
    thread = client.create_thread(key + awkward)
    assert (client.thread(key + awkward).read()).key == key + awkward
    thread.delete()


def test_a_key_of_dots_never_leaves_the_path(client: Loomline) -> None:
    for dots in (".", ".."):
        with pytest.raises(NotFoundError, match="there is no such thread"):
            client.thread(dots).delete()
    with pytest.raises(ValueError, match="at least one character"):
        client.thread("")


def test_threads_reads_all_pages(client: Loomline, key: str) -> None:
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    for n in range(5):
        client.create_thread(f"{key}/{n}")
    listed = [thread.key for thread in client.threads(prefix=key, limit=2, since=before, status="open")]
    assert listed == [f"{key}/{n}" for n in reversed(range(5))]
    assert [thread for thread in client.threads(prefix=key, waits=True)] == []


def test_search_shows_where_the_words_are(client: Loomline, thread: Thread) -> None:
    thread.run("Do you know Machu Picchu?")
    found = [thread for thread in client.search("machu pic", prefix=thread.key, agent="demo", limit=1)]
    assert [thread.key for thread in found] == [thread.key]
    assert found[0].snippets is not None
    assert "Machu Picchu" in found[0].snippets[0].text


def test_forks_share_the_log_and_can_be_compared(client: Loomline, thread: Thread) -> None:
    thread.run("Good morning")
    at = (thread.read()).seq
    thread.run("Good evening")
    fork = thread.fork(f"{thread.key}-fork", at=at)
    assert fork.info is not None
    assert fork.info.fork is not None
    assert fork.info.fork.seq == at
    assert texts(fork) == ["Good morning", "You said: Good morning"]
    assert [branch.key for branch in thread.branches()] == [thread.key, fork.key]
    tree = thread.tree(limit=1000)
    assert [thread.key for thread in tree.threads] == [thread.key, fork.key]
    diff = thread.diff(fork)
    assert diff == thread.diff(fork.key)
    assert any(change["level"] == "turn" for change in diff.changes)


def test_a_document_is_exported_and_imported(client: Loomline, thread: Thread) -> None:
    thread.run("compute 6*7")
    document = thread.document()
    assert document.hash is not None
    assert document.hash.startswith("sha256:")
    assert (document.losses, document.n_losses, document.hash_warning) == ([], 0, None)
    copy = client.import_document(document.content, key=f"{thread.key}-copy", agent="demo")
    assert copy.losses == []
    assert copy.thread.info is not None
    assert texts(copy.thread) == texts(thread)
    messages = thread.document("pydantic-ai")
    again = client.import_document(json.dumps(messages.content), "pydantic-ai")
    assert (again.thread.messages()).messages[0].role == "user"


def test_a_lossy_document_names_its_losses(thread: Thread) -> None:
    thread.run("fail after 3")
    exported = thread.document("ai-sdk-ui")
    assert exported.n_losses == len(exported.losses) > 0
    assert exported.losses[0].pointer.startswith("/")


def test_messages_and_runs_are_read_in_pages(thread: Thread) -> None:
    for n in range(3):
        thread.run(f"message {n}")
    page = thread.messages(limit=1)
    assert [text(message) for message in page.messages] == ["message 2", "You said: message 2"]
    earlier = thread.messages(limit=1, before=page.before)
    assert text(earlier.messages[0]) == "message 1"
    past = thread.messages(at=(thread.runs(limit=1)).before)
    assert len(past.messages) < 6
    assert len((thread.runs()).runs) == 3


def test_a_message_is_replaced_and_answered_again(thread: Thread) -> None:
    thread.run("compute 1+1")
    message = (thread.messages()).messages[0]
    replaced = thread.replace(message.id, "compute 6*7")
    at_rest(thread)
    assert (thread.messages()).messages[-1].content[-1]["text"] == "compute gave 42."
    again = thread.regenerate(replaced.item_id, agent="demo")
    at_rest(thread)
    assert again.execution_id != replaced.execution_id
    versions = thread.versions(replaced.item_id)
    assert [version.current for version in versions.versions] == [False, True]


def test_the_bytes_of_an_image_are_read(thread: Thread) -> None:
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    accepted = thread.post([{"type": "input_image", "image_url": url}])
    content = thread.content(accepted.item_id, 0)
    assert (content.data, content.media_type) == (PNG, "image/png")


def test_cancel_stops_the_run_that_executes(thread: Thread) -> None:
    accepted = thread.post("slow say 500 words")
    cancelled = thread.cancel(accepted.execution_id, reason="page_closed")
    assert cancelled.execution_id == accepted.execution_id
    run = thread.read_run(str(accepted.execution_id))
    assert run.interruption is not None
    assert run.interruption.reason == "page_closed"
    assert (thread.cancel()).execution_id is None


def test_an_approved_call_runs(client: Loomline, thread: Thread) -> None:
    result = thread.run("compute 6*7", agent="careful")
    (call,) = result.pending
    assert (call.tool_name, call.kind, call.input) == ("compute", "approval", {"expression": "6*7"})
    waiting = [entry for entry in client.waiting(kind="approval", prefix=thread.key, limit=1)]
    assert [entry.tool_call_id for entry in waiting] == [call.tool_call_id]
    accepted = thread.approve(call.tool_call_id, arguments={"expression": "6*8"}, actor="ada")
    for _ in thread.follow(accepted.after, until="rest"):
        pass
    assert (thread.messages()).messages[-1].content[-1]["text"] == "compute gave 48."
    with pytest.raises(ConflictError) as raised:
        thread.approve(call.tool_call_id)
    assert raised.value.code == "answered_already"
    assert raised.value.details == {"toolCallId": call.tool_call_id}


def test_a_denied_call_tells_the_model_why(thread: Thread) -> None:
    result = thread.run("compute 6*7", agent="careful")
    thread.deny(result.pending[0].tool_call_id, "too expensive")
    at_rest(thread)
    assert "too expensive" in str((thread.messages()).messages[-1].content)
    assert thread.pending() == []


def test_a_call_gets_its_result_from_the_client(configured: Server, key: str) -> None:
    with Loomline(configured.base) as client:
        thread = client.thread(key)
        result = thread.run("ask_user question=When", agent="asker")
        (call,) = result.pending
        assert call.kind == "external"
        thread.answer([{"tool_call_id": call.tool_call_id, "output": "at noon"}])
        at_rest(thread)
        assert "at noon" in str((thread.messages()).messages[-1].content)
        result = thread.run("ask_user question=Where", agent="asker")
        thread.answer([{"tool_call_id": result.pending[0].tool_call_id, "error_text": "nobody is there"}])
        at_rest(thread)
        assert "nobody is there" in str((thread.messages()).messages[-1].content)


def test_a_request_is_answered_and_declined(thread: Thread) -> None:
    thread.run("Which seats are there?", agent="chooser")
    (request,) = [request for request in thread.requests()]
    assert (request.id, request.topic, request.by.kind) == ("decision:seat", "decision", "agent")
    seat = thread.request(request.id)
    with pytest.raises(InvalidRequestError) as raised:
        seat.answer({"option": "roof"})
    assert raised.value.code == "invalid_request_answer"
    answered = seat.answer({"option": "aisle"})
    assert answered.request is not None
    assert answered.request.state == "answered"
    assert (seat.read()).n_answers == 1
    at_rest(thread)
    assert [request for request in thread.requests()] == []
    assert [request.state for request in thread.requests(all=True, limit=1)] == ["answered"]


def test_a_request_is_declined_and_not_cancelled(thread: Thread) -> None:
    thread.run("Which seats are there?", agent="chooser")
    seat = thread.request("decision:seat")
    with pytest.raises(ForbiddenError) as raised:
        seat.cancel("no time")
    assert raised.value.details["reason"] == "not_the_asker"
    declined = seat.decline("I take the train.", code="unsupported")
    assert declined.request is not None
    assert (declined.request.state, declined.request.reason) == ("declined", "I take the train.")


def test_an_actor_joins_declares_and_leaves(client: Loomline, key: str) -> None:
    thread = client.create_thread(key)
    joined = thread.join("ada/1", capabilities=[DECISIONS], initiator=True, fields={"client_id": "c"})
    assert (joined.actor["id"], joined.actor["client_id"], joined.is_initiator) == ("ada/1", "c", True)
    assert [actor.actor["id"] for actor in thread.actors()] == ["ada/1"]
    assert (thread.declare_capabilities("ada/1", [])).actor["capabilities"] == []
    assert (thread.leave("ada/1")).seq == (thread.read()).seq
    assert thread.actors() == []


def test_agents_are_listed(client: Loomline) -> None:
    agents = {agent.name: agent for agent in client.agents()}
    assert agents["demo"].is_default
    assert agents["careful"].tool_details[0].needs_approval


def test_a_web_token_is_made(client: Loomline) -> None:
    token = client.web_token("demo", "shop-ada-", actor="ada", scopes=["read"], may_answer=False)
    assert token.token == "development"


def test_follow_tells_which_threads_change(client: Loomline, thread: Thread) -> None:
    with client.follow() as notices:
        assert (next(notices)).type == "ready"
        thread.run("Good morning")
        notice = notice_of_the_last_event(notices, thread)
        assert (notice.type, notice.status) == ("thread", "open")
    thread.run("Good evening")
    with client.follow(notice.id) as notices:
        assert (notice_of_the_last_event(notices, thread)).seq > notice.seq


def test_named_objects_come_once_over_several_pages(client: Loomline, key: str) -> None:
    thread = client.create_thread(key)
    parts = thread.objects("parts")
    for name in ("a", "b", "c"):
        parts.put(name, name * 3_000_000)
    listed = [part.id for part in parts.list(["a", "b", "none", "c", "a"])]
    assert listed == ["a", "b", "c"]
    assert [part.id for part in parts.list([])] == []


def test_objects_are_stored_beside_a_thread(client: Loomline, key: str) -> None:
    thread = client.create_thread(key)
    notes = thread.objects("notes.v1")
    values: list[Any] = [{"a": [1, None]}, None, "text", 4, True]
    for n, value in enumerate(values):
        notes.put(f"id/{n} ä", value)
    assert [found.value for found in notes.list(limit=2)] == values
    assert [found.id for found in notes.list(limit=2, order="desc", after="id/2 ä")] == ["id/1 ä", "id/0 ä"]
    named = [found.value for found in notes.list(["id/3 ä", "none", "id/0 ä"])]
    assert sorted(named, key=str) == [4, {"a": [1, None]}]
    first = notes.get("id/0 ä")
    second = notes.put("id/0 ä", "new")
    assert (second.value, second.created_at) == ("new", first.created_at)
    notes.delete("id/0 ä")
    with pytest.raises(NotFoundError) as raised:
        notes.get("id/0 ä")
    assert raised.value.code == "object_not_found"
    with pytest.raises(NotFoundError):
        notes.delete("id/0 ä")


def test_a_history_is_appended_without_a_run(client: Loomline, key: str) -> None:
    at = "2026-01-01T00:00:00Z"
    question = {"part_kind": "user-prompt", "content": "Good morning", "timestamp": at}
    history = [
        {"kind": "request", "parts": [question], "timestamp": at},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "Hello"}], "timestamp": at},
    ]
    other = client.create_thread(key)
    for _ in range(2):
        seq = (other.read()).seq
        imported = other.import_messages(history, "pydantic-ai", agent="demo", seq=seq)
        assert (imported.thread.key, imported.losses) == (other.key, [])
        assert imported.thread.info == other.read()
    with pytest.raises(ConflictError):
        other.import_messages(history, "pydantic-ai", seq=seq)
    assert texts(other) == ["Good morning", "Hello"] * 2
    assert (other.document("pydantic-ai")).content == history * 2
