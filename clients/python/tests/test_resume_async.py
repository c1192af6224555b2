from __future__ import annotations

import random

import pytest
from loomline import AsyncLoomline, AsyncThread, ConflictError, Event, LoomlineConnectionError, NotFoundError, SubagentEvent, models
from rig import Server, Wire, later

SLOW = "slow 20ms say 60 words"


def bare(events: list[Event]) -> list[dict]:
    """The events without their ids: the id of a chunk changes when it is stored."""
    return [event.model_dump(exclude={"id"}) for event in events]


def place(event: Event) -> tuple[str, int | None]:
    """The thread of a sub-agent and the number in its log: the id of a chunk changes when it is stored."""
    if isinstance(event, SubagentEvent):
        return event.thread_key, event.event.seq
    return "", event.seq


async def document_text(thread: AsyncThread) -> str:
    document = (await thread.document()).content
    return str(document["turns"][-1]["messages"][-1]["parts"][-1]["content"])


def shown(events: list[object]) -> str:
    """What a client that follows the rules of the events shows."""
    text = ""
    for event in events:
        if isinstance(event, models.ChunkEmittedEvent):
            if event.chunk_type == "data-step-reset":
                text = ""
            elif event.chunk_type == "text-delta":
                text += event.data["delta"]
    return text


@pytest.mark.parametrize("seed", range(3))
async def test_a_stream_survives_cuts_at_random_points(wire: Wire, key: str, seed: int) -> None:
    places = random.Random(seed)
    wire.cut_after = lambda: places.randrange(1, 6000)
    async with AsyncLoomline(wire.base) as client:
        thread = client.thread(key)
        events = [event async for event in thread.stream(SLOW)]
        wire.cut_after = lambda: None
        assert wire.n_cuts > 2
        log = [event async for event in thread.follow(until="rest")]
        own = [event for event in log if event.seq == events[0].seq or event.seq > events[1].seq - 1]
        assert bare(events) == bare(own)
        assert shown(events) == await document_text(thread)
        assert len([message for message in (await thread.messages()).messages if message.role == "user"]) == 1


async def test_follow_survives_cuts_at_random_points(async_thread: AsyncThread, wire: Wire) -> None:
    await async_thread.post(SLOW)
    places = random.Random(7)
    wire.cut_after = lambda: places.randrange(1, 6000)
    async with AsyncLoomline(wire.base) as client:
        events = [event async for event in client.thread(async_thread.key).follow(until="rest")]
    assert wire.n_cuts > 2
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert isinstance(events[-1], models.ThreadFinishedEvent)
    assert bare(events) == bare([event async for event in async_thread.follow(until="rest")])


async def test_a_stream_of_subagents_survives_a_cut(wire: Wire, key: str) -> None:
    async with AsyncLoomline(wire.base) as client:
        thread = client.thread(key)
        places = []
        async for event in thread.stream('delegate "slow 20ms say 30 words"', agent="lead", subagents=True):
            places.append(place(event))
            if len(places) % 15 == 0:
                wire.cut()
        log = [place(event) async for event in thread.follow(until="rest", subagents=True)]
        assert len(places) == len(set(places)) > 45
        assert [found for found in log if found in set(places)] == places


async def test_the_stream_of_a_queued_message_survives_a_cut(wire: Wire, key: str) -> None:
    async with AsyncLoomline(wire.base) as client:
        thread = client.thread(key)
        first = await thread.post("slow 20ms say 40 words")
        events = []
        async for event in thread.stream("Good morning"):
            events.append(event)
            if len(events) == 1:
                assert isinstance(event, models.ItemCreatedEvent)
                n_connections = wire.n_connections
                wire.cut()
        assert wire.n_connections > n_connections
        log = [event async for event in thread.follow(events[0].id, until="rest")]
        assert isinstance(log[0], models.ChunkEmittedEvent), "the first run went on after the cut"
        created = [event for event in events if isinstance(event, models.ExecutionCreatedEvent)]
        assert [event.execution.id != first.execution_id for event in created] == [True]
        assert shown(events) == "You said: Good morning"


async def test_a_stream_goes_on_after_a_crash_of_the_server(mortal: Server, key: str) -> None:
    async with AsyncLoomline(mortal.base) as client:
        thread = client.thread(key)
        events = []
        async for event in thread.stream("slow 50ms say 60 words"):
            events.append(event)
            if len(events) == 30:
                mortal.kill()
                mortal.start()
        assert len({event.id for event in events}) == len(events)
        facts = [event.seq for event in events if not isinstance(event, models.ChunkEmittedEvent)]
        assert facts == sorted(set(facts))
        assert isinstance(events[-1], models.ThreadFinishedEvent)
        assert events[-1].result == "completed"
        chunks = [event.chunk_type for event in events if isinstance(event, models.ChunkEmittedEvent)]
        assert "data-step-reset" in chunks
        assert shown(events) == await document_text(thread)
        assert len(shown(events).split()) == 60


async def test_a_run_goes_on_after_an_orderly_restart(mortal: Server, key: str) -> None:
    async with AsyncLoomline(mortal.base, max_retries=8) as client:
        restart = later(0.5, mortal.terminate, mortal.start)
        result = await client.thread(key).run("slow 50ms say 30 words")
        restart.join()
        assert result.status == "completed"
        assert len(result.text.split()) == 30


async def test_follow_to_rest_goes_on_after_an_orderly_restart(mortal: Server, key: str) -> None:
    async with AsyncLoomline(mortal.base) as client:
        thread = client.thread(key)
        await thread.post("slow 50ms say 30 words")
        restart = later(0.5, mortal.terminate, mortal.start)
        events = [event async for event in thread.follow(until="rest")]
        restart.join()
        assert isinstance(events[-1], models.ThreadFinishedEvent)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_notices_go_on_after_a_crash(mortal: Server, key: str) -> None:
    async with AsyncLoomline(mortal.base) as client:
        thread = await client.create_thread(key)
        async with client.follow() as notices:
            assert (await anext(notices)).type == "ready"
            mortal.kill()
            mortal.start()
            async for notice in notices:
                if notice.type == "reset":
                    break
            await thread.run("Good morning")
            async for notice in notices:
                if notice.thread == key and notice.status == "open":
                    break


async def test_a_stream_gives_up_without_a_server(mortal: Server, key: str) -> None:
    async with AsyncLoomline(mortal.base, reconnect_for=0.5) as client:
        await client.create_thread(key)
        kill = later(0.5, mortal.kill)
        with pytest.raises(LoomlineConnectionError):
            async for _ in client.thread(key).follow():
                pass
        kill.join()


async def test_the_stream_of_a_deleted_thread_raises(async_thread: AsyncThread) -> None:
    await async_thread.run("Good morning")
    with pytest.raises(NotFoundError) as raised:
        async for event in async_thread.follow():
            if event.type == "thread.finished":
                await async_thread.delete()
    assert raised.value.code == "thread_not_found"


async def test_an_event_id_of_a_former_thread_raises(async_thread: AsyncThread) -> None:
    await async_thread.run("Good morning")
    (last,) = [event async for event in async_thread.follow(until="rest")][-1:]
    await async_thread.delete()
    await async_thread.run("Good morning")
    with pytest.raises(ConflictError) as raised:
        async for _ in async_thread.follow(last.id):
            pass
    assert raised.value.code == "foreign_event_id"
