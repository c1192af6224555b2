"""OpenAI's own library, which is also how the hosts that speak its formats are reached."""

import copy
from collections.abc import Callable

import httpx2
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

from fixtures import KEY, PATIENCE, Fixture, Replay, Tally, arguments, comparable, said
from strict import RequestType, answer_faults

VENDORS = ("chat_completions.", "responses.")

# What the library makes of a refusal: the exception, and the code it tells.
REFUSALS = {
    "RateLimited": (openai.RateLimitError, "rate_limit_exceeded"),
    "ContextOverflow": (openai.BadRequestError, "context_length_exceeded"),
    "BadKey": (openai.AuthenticationError, "invalid_api_key"),
}

HOSTS_REASONING = "the host's own field for reasoning, which goes back with the message it came with"
# Keys of messages in our requests that OpenAI's types do not have.
SENT = {
    ("chat_completions.openrouter", "reasoning_details"): HOSTS_REASONING,
    ("chat_completions.groq", "reasoning"): HOSTS_REASONING,
    ("chat_completions.cerebras", "reasoning"): HOSTS_REASONING,
    ("chat_completions.moonshot", "reasoning_content"): HOSTS_REASONING,
}
NO_STRICT = "xAI knows no `strict` of tools, which OpenAI's types require"

# Keys of the answers that the types do not have.
PADDING = "padding that OpenAI sends and its types leave out"
KEYS = {
    "ChatCompletionChunk.obfuscation": PADDING,
    **{f"ChatCompletionChunk.choices[].delta.{key}": HOSTS_REASONING for _, key in SENT},
}
OPEN_RESPONSES = "a field that Open Responses requires of a response, and OpenAI's types leave out"
RESPONSE_KEYS = {
    "response.store": OPEN_RESPONSES,
    "response.presence_penalty": OPEN_RESPONSES,
    "response.frequency_penalty": OPEN_RESPONSES,
    "obfuscation": PADDING,
    "name": "a key that OpenAI's specification has of the end of a call's arguments, and its library's types leave out",
}
# Events of the answers that the types do not have.
EVENTS = {
    "response.rate_limits.updated": "an event that nobody knows: it must be read over",
    "response.reasoning.delta": "the name that Open Responses has for `response.reasoning_text.delta`",
    "response.reasoning.done": "the name that Open Responses has for `response.reasoning_text.done`",
}

STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "content_filter"}
ENDS = ("response.completed", "response.incomplete")


class Library:
    def __init__(self, replay: Replay, tally: Tally) -> None:
        self.replay, self.tally = replay, tally
        self.chat = RequestType(CompletionCreateParamsStreaming)
        self.responses = RequestType(ResponseCreateParamsStreaming)
        self.client = openai.OpenAI(
            api_key=KEY,
            base_url=f"{replay.url}/v1",
            max_retries=0,
            timeout=PATIENCE,
            http_client=httpx2.Client(trust_env=False),
        )

    def check(self, fixture: Fixture) -> None:
        chat = fixture.vendor.startswith("chat_completions.")
        faults = (self.chat if chat else self.responses).faults(self.standard(fixture))
        self.tally.holds(fixture, "request", "the request is not as the types say", faults)
        self.replay.set(fixture)
        self.answer(fixture, self.client.chat.completions.create if chat else self.client.responses.create)
        self.tally.sent(fixture, self.replay, ("authorization", "content-type"), without="/v1")

    def standard(self, fixture: Fixture) -> dict:
        """The request without what we send on purpose and the types do not have."""
        request = copy.deepcopy(fixture.request)
        for message in request.get("messages", []):
            for (vendor, key), reason in SENT.items():
                if vendor == fixture.vendor and message.pop(key, None) is not None:
                    self.tally.allow(fixture, f"request: messages[].{key}", reason)
        for tool in request.get("tools", []) if fixture.vendor == "responses.xai" else []:
            tool["strict"] = None
            self.tally.allow(fixture, "request: tools[] without strict", NO_STRICT)
        return request

    def answer(self, fixture: Fixture, create: Callable) -> None:
        events, error = [], None
        try:
            with create(**fixture.request) as stream:
                for event in stream:
                    events.append(event)
                    if fixture.meta["stalls"] and len(events) == len(fixture.frames):
                        break
        except (openai.OpenAIError, ValueError) as raised:
            error = raised
        frames = self.outcome(fixture, events, error)
        sent = [event.to_dict(mode="json") for event in events]
        self.tally.equal(fixture, "events", "the events, as the library read them", sent, frames)
        for event, frame in zip(events, frames):
            self.event(fixture, event, frame)
        if fixture.error is None:
            read = read_chat(events) if isinstance(events[0], ChatCompletionChunk) else read_response(events)
            read, expected = comparable(fixture, read), comparable(fixture, said(fixture.decoded))
            self.tally.equal(fixture, "answers", "the answer", read, expected)

    def outcome(self, fixture: Fixture, events: list, error: Exception | None) -> list:
        """Whether it ended as it should; the frames that the library must have read before."""
        tally = self.tally
        if fixture.scenario in REFUSALS:
            status = fixture.error["statusCode"]
            found = (type(error), getattr(error, "code", None), getattr(error, "status_code", None))
            tally.equal(fixture, "errors", "the refusal", found, (*REFUSALS[fixture.scenario], status))
            if fixture.scenario == "RateLimited":
                tally.equal(fixture, "errors", "retry-after", error.response.headers["retry-after"], "7")
            return []
        if fixture.scenario == "MalformedBody":
            tally.equal(fixture, "errors", "something was read of what is not the format", events, [])
            return []
        frames = fixture.frames
        if fixture.scenario == "MidStreamError":
            # The library raises what has an `error`; OpenAI's own event of that name has none, and is read.
            raises = [at for at, frame in enumerate(frames) if frame.get("error")]
            if raises:
                tally.equal(fixture, "errors", "the error within the stream", type(error), openai.APIError)
                tally.equal(fixture, "errors", "its text", fixture.error["message"], str(error))
                return frames[: raises[0]]
            tally.equal(fixture, "errors", "the events of the error", [event.type for event in events[-2:]], ["error", "response.failed"])
            tally.equal(fixture, "errors", "its text", fixture.error["message"], events[-2].message)
            return frames
        if fixture.scenario == "Truncated":
            finished = [event for event in events if getattr(event, "type", None) in ENDS or finish(event)]
            tally.equal(fixture, "errors", "an end of what is cut off", finished, [])
            return frames
        tally.equal(fixture, "errors", "an error", error, None)
        if fixture.meta["stalls"]:
            tally.equal(fixture, "errors", "the library has gone", self.replay.reader_gone.wait(PATIENCE), True)
        return frames

    def event(self, fixture: Fixture, event: object, frame: dict) -> None:
        kind = frame.get("type")
        if kind in EVENTS:
            self.tally.allow(fixture, f"event: {kind}", EVENTS[kind])
            return
        faults, unknown = answer_faults(type(event), frame)
        for key in unknown:
            reason = KEYS.get(key) or RESPONSE_KEYS.get(key.partition(".")[2])
            if reason:
                self.tally.allow(fixture, f"answer: {key.rpartition('.')[2]}", reason)
            else:
                faults.append(f"{key}: the types have no such key")
        self.tally.holds(fixture, "events", f"{kind or 'chunk'} is not as the types say", faults)


def finish(chunk: object) -> str | None:
    return next((choice.finish_reason for choice in getattr(chunk, "choices", []) if choice.finish_reason), None)


def read_chat(chunks: list[ChatCompletionChunk]) -> dict:
    """The answer, put together by the library."""
    state = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(chunk)
    whole = state.current_completion_snapshot
    (choice,), usage = whole.choices, whole.usage
    calls = [(call.id, call.function.name, arguments(call.function.arguments)) for call in choice.message.tool_calls or []]
    extra = choice.message.model_extra or {}
    return {
        "text": choice.message.content or "",
        "reasoning": extra.get("reasoning") or extra.get("reasoning_content") or "",
        "calls": calls,
        "input": usage.prompt_tokens,
        "output": usage.completion_tokens,
        "cached": usage.prompt_tokens_details.cached_tokens,
        "stop": STOPS[choice.finish_reason],
        "model": whole.model,
        "id": whole.id,
    }


def read_response(events: list) -> dict:
    """The answer, as the last event has it; the texts as they were streamed."""
    (response,) = [event.response for event in events if event.type in ENDS]
    deltas = {kind: "".join(event.delta for event in events if event.type == f"response.{kind}.delta") for kind in (
        "output_text", "refusal", "reasoning_summary_text"
    )}
    calls = [
        (item.call_id, item.name, arguments(item.arguments)) for item in response.output if item.type == "function_call"
    ]
    stop = "content_filter" if deltas["refusal"] else "tool_use" if calls else "end_turn"
    if response.incomplete_details:
        stop = {"max_output_tokens": "max_tokens"}.get(response.incomplete_details.reason, response.incomplete_details.reason)
    return {
        "text": response.output_text + deltas["refusal"] if response.output_text == deltas["output_text"] else None,
        "reasoning": deltas["reasoning_summary_text"],
        "calls": calls,
        "input": response.usage.input_tokens,
        "output": response.usage.output_tokens,
        "cached": response.usage.input_tokens_details.cached_tokens,
        "stop": stop,
        "model": response.model,
        "id": response.id,
    }
