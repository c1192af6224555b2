"""Anthropic's own library."""

import json
import warnings
from dataclasses import replace

import anthropic
import httpx2
from anthropic.types.message_create_params import MessageCreateParamsStreaming

from fixtures import KEY, PATIENCE, Fixture, Replay, Tally, comparable, said
from strict import RequestType, answer_faults

VENDORS = ("anthropic",)

# The fixtures stay as they are when the vendor retires their model.
warnings.filterwarnings("ignore", "The model .* is deprecated", DeprecationWarning)

REFUSALS = {
    "RateLimited": (anthropic.RateLimitError, "rate_limit_error"),
    "ContextOverflow": (anthropic.BadRequestError, "invalid_request_error"),
    "BadKey": (anthropic.AuthenticationError, "authentication_error"),
}

# Keys and events of the answers that the types do not have.
KEYS = {"RawContentBlockDeltaEvent.delta.estimated_tokens": "a key in beta, which the types of the betas have"}
EVENTS = {"progress_report": "an event that nobody knows: it must be read over"}
NO_INDEX = "hosts of the format leave out the index of a block; it is put back for the library, which needs it for the answer"
STRUCTURE_TOOL = "what the model passes to the tool that stands for a structure is the text of our answer, and a call to the library"

STOPS = {"end_turn": "end_turn", "max_tokens": "max_tokens", "tool_use": "tool_use", "refusal": "content_filter"}


class Library:
    def __init__(self, replay: Replay, tally: Tally) -> None:
        self.replay, self.tally = replay, tally
        self.type = RequestType(MessageCreateParamsStreaming)
        self.client = anthropic.Anthropic(
            api_key=KEY, base_url=replay.url, max_retries=0, timeout=PATIENCE, http_client=httpx2.Client(trust_env=False)
        )

    def check(self, fixture: Fixture) -> None:
        self.tally.holds(fixture, "request", "the request is not as the types say", self.type.faults(fixture.request))
        self.replay.set(fixture)
        self.answer(fixture)
        self.tally.sent(fixture, self.replay, ("x-api-key", "anthropic-version", "content-type"))
        if fixture.error is not None:
            return
        if fixture.vendor == "anthropic.compatible" and fixture.scenario == "StructuredOutput":
            self.tally.skip(f"{fixture}, the answer", STRUCTURE_TOOL)
            return
        self.replay.set(with_index(fixture))
        request = {key: value for key, value in fixture.request.items() if key != "stream"}
        with self.client.messages.stream(**request) as stream:
            read = read_message(stream.get_final_message())
        read, expected = comparable(fixture, read), comparable(fixture, said(fixture.decoded))
        self.tally.equal(fixture, "answers", "the answer", read, expected)

    def answer(self, fixture: Fixture) -> None:
        events, error = [], None
        n_frames = sum(frame["type"] != "ping" for frame in fixture.frames) if fixture.meta["status"] == 200 else 0
        try:
            with self.client.messages.create(**fixture.request) as stream:
                for event in stream:
                    events.append(event)
                    if fixture.meta["stalls"] and len(events) == n_frames:
                        break
        except (anthropic.AnthropicError, ValueError) as raised:
            error = raised
        frames = self.outcome(fixture, events, error)
        sent = [event.to_dict(mode="json") for event in events]
        self.tally.equal(fixture, "events", "the events, as the library read them", sent, frames)
        for event, frame in zip(events, frames):
            self.event(fixture, event, frame)

    def outcome(self, fixture: Fixture, events: list, error: Exception | None) -> list:
        """Whether it ended as it should; the frames that the library must have read before."""
        tally = self.tally
        if fixture.scenario in REFUSALS:
            found = (type(error), getattr(error, "type", None), getattr(error, "status_code", None))
            expected = (*REFUSALS[fixture.scenario], fixture.error["statusCode"])
            tally.equal(fixture, "errors", "the refusal", found, expected)
            if fixture.scenario == "RateLimited":
                tally.equal(fixture, "errors", "retry-after", error.response.headers["retry-after"], "7")
            return []
        if fixture.scenario == "MalformedBody":
            tally.equal(fixture, "errors", "something was read of what is not the format", events, [])
            return []
        # The library reads over pings.
        frames = [frame for frame in fixture.frames if frame["type"] != "ping"]
        if fixture.scenario == "MidStreamError":
            found = (isinstance(error, anthropic.APIStatusError), getattr(error, "type", None))
            tally.equal(fixture, "errors", "the error within the stream", found, (True, "overloaded_error"))
            return frames[:-1]
        tally.equal(fixture, "errors", "an error", error, None)
        if fixture.scenario == "Truncated":
            ends = [event for event in events if event.type in ("message_delta", "message_stop")]
            tally.equal(fixture, "errors", "an end of what is cut off", ends, [])
        if fixture.meta["stalls"]:
            tally.equal(fixture, "errors", "the library has gone", self.replay.reader_gone.wait(PATIENCE), True)
        return frames

    def event(self, fixture: Fixture, event: object, frame: dict) -> None:
        if frame["type"] in EVENTS:
            self.tally.allow(fixture, f"event: {frame['type']}", EVENTS[frame["type"]])
            return
        if fixture.vendor == "anthropic.compatible" and frame["type"].startswith("content_block_"):
            self.tally.allow(fixture, "answer: blocks without index", NO_INDEX)
            frame = frame | {"index": 0}
        faults, unknown = answer_faults(type(event), frame)
        for key in unknown:
            if key in KEYS:
                self.tally.allow(fixture, f"answer: {key}", KEYS[key])
            else:
                faults.append(f"{key}: the types have no such key")
        self.tally.holds(fixture, "events", f"{frame['type']} is not as the types say", faults)


def with_index(fixture: Fixture) -> Fixture:
    """The same with the index of each block where it is left out."""
    at, body = -1, ""
    for frame in fixture.frames:
        at += frame["type"] == "content_block_start"
        index = {"index": at} if frame["type"].startswith("content_block_") else {}
        body += f"event: {frame['type']}\ndata: {json.dumps(index | frame)}\n\n"
    return replace(fixture, body=body.encode())


def read_message(message: anthropic.types.Message) -> dict:
    """The answer, put together by the library."""
    usage = message.usage
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return {
        "text": "".join(block.text for block in message.content if block.type == "text"),
        "reasoning": "".join(block.thinking for block in message.content if block.type == "thinking"),
        "calls": [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"],
        "input": usage.input_tokens + cached + written,
        "output": usage.output_tokens,
        "cached": cached,
        "stop": STOPS[message.stop_reason],
        "model": message.model,
        "id": message.id,
    }
