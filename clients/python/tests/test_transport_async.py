from __future__ import annotations

import time
from typing import Any

import pytest
from loomline import (
    ApiError,
    AsyncLoomline,
    AuthenticationError,
    ChunkEmittedEvent,
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    LoomlineConnectionError,
    NotFoundError,
    RateLimitedError,
    ServerError,
    UnknownEvent,
)
from rig import Reply, ToldServer, Wire

ACCEPTED = {"key": "k", "threadId": "t", "itemId": "i", "executionId": "e", "after": 2, "queued": False}


def refusal(status: int, code: str, **headers: str) -> Reply:
    body = {"error": {"code": code, "message": "no", "pointer": "/a", "details": {"n": 1}, "requestId": "r-1"}}
    return Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def stream(*frames: str) -> Reply:
    return Reply(200, "".join(frame + "\n\n" for frame in frames).encode(), {"content-type": "text/event-stream"})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidRequestError),
        (401, AuthenticationError),
        (403, ForbiddenError),
        (404, NotFoundError),
        (409, ConflictError),
        (413, InvalidRequestError),
        (415, InvalidRequestError),
        (418, ApiError),
        (422, InvalidRequestError),
        (429, RateLimitedError),
        (500, ServerError),
        (503, ServerError),
        (507, ServerError),
    ],
)
async def test_each_status_has_its_error(status: int, kind: type[ApiError]) -> None:
    with ToldServer(refusal(status, "some_code", retry_after="7")) as server:
        async with AsyncLoomline(server.base, max_retries=0) as client:
            with pytest.raises(ApiError) as raised:
                await client.agents()
    error = raised.value
    assert type(error) is kind
    assert (error.status, error.code, error.message, error.pointer) == (status, "some_code", "no", "/a")
    assert (error.details, error.request_id) == ({"n": 1}, "r-1")
    assert error.retry_after == 7


async def test_an_error_that_is_not_of_loomline_is_kept() -> None:
    with ToldServer(Reply(502, b"<html>bad gateway</html>", {"x-request-id": "r-2"})) as server:
        async with AsyncLoomline(server.base, max_retries=0) as client:
            with pytest.raises(ServerError, match="bad gateway") as raised:
                await client.agents()
    assert (raised.value.code, raised.value.request_id, raised.value.retry_after) == ("", "r-2", None)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_read_is_repeated_after_the_time_that_the_server_names(status: int) -> None:
    with ToldServer(refusal(status, "later", retry_after="1"), Reply(200, {"agents": []})) as server:
        async with AsyncLoomline(server.base) as client:
            began = time.monotonic()
            assert await client.agents() == []
            assert time.monotonic() - began >= 1
        assert len(server.seen) == 2


async def test_a_long_pause_is_left_to_the_caller() -> None:
    with ToldServer(refusal(429, "rate_limited", retry_after="3600")) as server:
        async with AsyncLoomline(server.base) as client:
            with pytest.raises(RateLimitedError) as raised:
                await client.agents()
        assert raised.value.retry_after == 3600
        assert len(server.seen) == 1


async def test_a_post_is_repeated_with_its_key() -> None:
    replies = Reply(is_cut=True), refusal(503, "taken_over"), Reply(202, ACCEPTED)
    with ToldServer(*replies) as server:
        async with AsyncLoomline(server.base) as client:
            assert (await client.thread("k").post("Good morning")).item_id == "i"
        keys = {seen.headers["idempotency-key"] for seen in server.seen}
        assert (len(server.seen), len(keys)) == (3, 1)


async def test_every_post_of_a_message_or_an_answer_has_a_key() -> None:
    answered = {"itemId": "i", "queued": False}
    with ToldServer(Reply(202, {**ACCEPTED, **answered})) as server:
        async with AsyncLoomline(server.base) as client:
            thread = client.thread("k")
            await thread.post("a")
            await thread.replace("m", "a")
            await thread.regenerate("m")
            await thread.approve("c")
            await thread.deny("c")
            await thread.answer([{"tool_call_id": "c", "output": None}])
            await thread.request("r").answer({})
            await thread.request("r").decline()
            await thread.request("r").cancel()
        keys = [seen.headers["idempotency-key"] for seen in server.seen]
        assert len(set(keys)) == 9


async def test_the_key_of_the_caller_is_sent() -> None:
    with ToldServer(Reply(202, ACCEPTED)) as server:
        async with AsyncLoomline(server.base) as client:
            await client.thread("k").post("a", idempotency_key="order-7")
        assert server.seen[0].headers["idempotency-key"] == "order-7"


async def test_a_request_that_is_not_safe_is_sent_once() -> None:
    with ToldServer(refusal(503, "store_failed")) as server:
        async with AsyncLoomline(server.base) as client:
            with pytest.raises(ServerError):
                await client.create_thread("k")
        assert len(server.seen) == 1


async def test_a_lost_response_to_a_post_makes_one_message(wire: Wire, key: str) -> None:
    cuts = iter([1, None])
    wire.cut_after = lambda: next(cuts, None)
    async with AsyncLoomline(wire.base) as client:
        accepted = await client.thread(key).post("Good morning")
        messages = (await client.thread(key).messages()).messages
    assert wire.n_cuts == 1
    assert [message.id for message in messages if message.role == "user"] == [accepted.item_id]


async def test_no_server_is_a_connection_error() -> None:
    with ToldServer(Reply()) as server:
        pass
    async with AsyncLoomline(server.base, max_retries=1) as client:
        with pytest.raises(LoomlineConnectionError):
            await client.agents()
        with pytest.raises(LoomlineConnectionError):
            await client.thread("k").run("Good morning")


async def test_the_environment_names_the_server_and_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with ToldServer(Reply(200, {"agents": []})) as server:
        monkeypatch.setenv("LOOMLINE_SERVER", server.base)
        monkeypatch.setenv("LOOMLINE_KEY", "llk_env")
        async with AsyncLoomline() as client:
            await client.agents()
        async with AsyncLoomline(server.base + "/prefix/", "llk_own") as client:
            await client.agents()
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer llk_env", "Bearer llk_own"]
    assert [seen.path for seen in server.seen] == ["/api/v1/agents", "/prefix/api/v1/agents"]


async def test_unknown_fields_and_words_pass_through() -> None:
    agent: dict[str, Any] = {"name": "a", "provider": "p", "model": "m", "tools": [], "toolDetails": [], "subAgents": []}
    body = {"agents": [{**agent, "handoffs": [], "isDefault": True, "newField": {"x": 1}}]}
    pending = {"toolCallId": "c", "toolName": "t", "kind": "new-kind", "executionId": "e", "threadKey": "k", "path": []}
    with ToldServer(Reply(200, body), Reply(200, {"calls": [pending], "seq": 1})) as server:
        async with AsyncLoomline(server.base) as client:
            (found,) = await client.agents()
            assert found["newField"] == {"x": 1}
            assert (await client.thread("k").pending())[0].kind == "new-kind"


async def test_a_response_of_another_server_is_a_connection_error() -> None:
    page = Reply(200, b"<html>welcome</html>", {"content-type": "text/html"})
    with ToldServer(page) as server:
        async with AsyncLoomline(server.base, max_retries=0) as client:
            with pytest.raises(LoomlineConnectionError, match="GET /api/v1/agents: the response has text/html; expected JSON"):
                await client.agents()
            with pytest.raises(LoomlineConnectionError, match="expected JSON"):
                await client.thread("k").document()
            with pytest.raises(LoomlineConnectionError, match="text/html; expected text/event-stream"):
                await client.thread("k").run("Good morning")
        assert len(server.seen) == 3


async def test_events_of_unknown_types_pass_through() -> None:
    at = '"at":"2026-01-01T00:00:00Z"'
    frames = (
        ": a comment",
        "event: without data",
        'id: 1.a\nevent: new.type\ndata: {"seq":1,"type":"new.type",' + at + ',"x":{"y":2}}',
        'id: 2.a\r\nevent: chunk.emitted\r\ndata: {"seq":2,"type":"chunk.emitted",\r\ndata: '
        + at
        + ',"chunkType":"data-new","contextId":"c","later":3}',
    )
    rest = {"id": "t", "status": "open", "createdAt": "2026-01-01T00:00:00Z", "seq": 2, "bytes": 1}
    with ToldServer(stream(*frames), Reply(200, rest)) as server:
        async with AsyncLoomline(server.base) as client:
            first, second = [event async for event in client.thread("k").follow(until="rest")]
    assert isinstance(first, UnknownEvent)
    assert (first.id, first.seq, first["x"]) == ("1.a", 1, {"y": 2})
    assert isinstance(second, ChunkEmittedEvent)
    assert (second.id, second.chunk_type, second["later"]) == ("2.a", "data-new", 3)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("key_expired", AuthenticationError),
        ("forbidden_thread", ForbiddenError),
        ("limit_reached", RateLimitedError),
        ("store_failed", ServerError),
    ],
)
async def test_an_event_error_raises_its_error(code: str, kind: type[ApiError]) -> None:
    frame = f'event: error\ndata: {{"error":{{"code":"{code}","message":"no"}}}}'
    with ToldServer(stream(frame)) as server:
        async with AsyncLoomline(server.base) as client:
            with pytest.raises(kind, match="no") as raised:
                async for _ in client.thread("k").follow():
                    pass
    assert raised.value.code == code


async def test_a_stream_that_is_lost_before_its_first_event_is_posted_again() -> None:
    at = '"at":"2026-01-01T00:00:00Z"'
    frame = 'id: 9.a\nevent: {0}\ndata: {{"seq":9,"type":"{0}",' + at + ",{1}}}"
    finish = frame.format("thread.finished", '"threadId":"t","contextId":"c","executionId":"e","result":"completed"')
    ids = '"id":"e","threadId":"t","contextId":"c","triggerItemId":"i","reactionItemId":"r"'
    execution = "{" + ids + ',"status":"executing","createdAt":"2026-01-01T00:00:00Z"}'
    begin = frame.format("execution.created", f'"execution":{execution}')
    busy = {"id": "t", "status": "streaming", "createdAt": "2026-01-01T00:00:00Z", "seq": 9, "bytes": 1}
    with ToldServer(Reply(is_cut=True), stream(": silent"), Reply(200, busy), stream(begin, finish)) as server:
        async with AsyncLoomline(server.base) as client:
            events = [event async for event in client.thread("k").stream("Good morning")]
    assert [event.type for event in events] == ["execution.created", "thread.finished"]
    posts = [seen for seen in server.seen if seen.method == "POST"]
    assert len(posts) == 3
    assert len({post.headers["idempotency-key"] for post in posts}) == 1


async def test_a_stream_resumes_through_refusals() -> None:
    event = 'id: {0}.a\nevent: new\ndata: {{"seq":{0},"type":"new"}}'
    replies = (
        stream(event.format(1), "id: 2.a\nevent: cut off"),
        refusal(503, "shutting_down"),
        Reply(is_cut=True),
        stream(event.format(2)),
        refusal(403, "missing_scope"),
    )
    with ToldServer(*replies) as server:
        async with AsyncLoomline(server.base) as client:
            seen = []
            with pytest.raises(ForbiddenError):
                async for received in client.thread("k").follow():
                    seen.append(received.id)
        assert seen == ["1.a", "2.a"]
        sent = [request.headers.get("last-event-id") for request in server.seen]
        assert sent == [None, "1.a", "1.a", "1.a", "2.a"]
