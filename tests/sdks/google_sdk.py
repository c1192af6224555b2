"""Google's own library."""

import httpx2
from google import genai
from google.genai import errors, types

from fixtures import KEY, PATIENCE, Fixture, Replay, Tally, comparable, said
from strict import answer_faults, piece_faults

VENDORS = ("gemini",)

# What the library makes of a refusal: the exception and Google's word for it.
REFUSALS = {
    "RateLimited": (errors.ClientError, "RESOURCE_EXHAUSTED"),
    "ContextOverflow": (errors.ClientError, "INVALID_ARGUMENT"),
    "BadKey": (errors.ClientError, "INVALID_ARGUMENT"),
}
# The types of what a request has, each of which refuses keys that it does not have.
PIECES = {
    "contents": list[types.Content],
    "systemInstruction": types.Content,
    "tools": list[types.Tool],
    "toolConfig": types.ToolConfig,
    "generationConfig": types.GenerationConfig,
}
# What is the application's own JSON.
FOREIGN = ("args", "response", "parametersJsonSchema", "responseJsonSchema")
STOPS = {"STOP": "end_turn", "MAX_TOKENS": "max_tokens", "SAFETY": "content_filter"}


class Library:
    def __init__(self, replay: Replay, tally: Tally) -> None:
        self.replay, self.tally = replay, tally
        self.client = genai.Client(
            api_key=KEY,
            http_options=types.HttpOptions(
                base_url=replay.url, api_version="v1beta", timeout=PATIENCE * 1000, httpx_client=httpx2.Client(trust_env=False)
            ),
        )

    def check(self, fixture: Fixture) -> None:
        faults = [f"{key}: there is no such key" for key in fixture.request.keys() - PIECES.keys()]
        for key, value in fixture.request.items():
            if key in PIECES:
                faults += piece_faults(PIECES[key], value)
        self.tally.holds(fixture, "request", "the request is not as the types say", faults)
        self.replay.set(fixture)
        self.answer(fixture)
        self.tally.sent(fixture, self.replay, ("x-goog-api-key", "content-type"), spelt=spelt)

    def answer(self, fixture: Fixture) -> None:
        request = dict(fixture.request)
        contents = [types.Content.model_validate(content) for content in request.pop("contents")]
        config = types.GenerateContentConfig.model_validate(request.pop("generationConfig", {}) | request)
        chunks, error = [], None
        try:
            # The model stands in the path alone.
            model = fixture.meta["path"].rpartition("/")[2].partition(":")[0]
            stream = self.client.models.generate_content_stream(model=model, contents=contents, config=config)
            for chunk in stream:
                chunks.append(chunk)
                if fixture.meta["stalls"] and len(chunks) == len(fixture.frames):
                    stream.close()
                    break
        except (errors.APIError, ValueError) as raised:
            error = raised
        frames = self.outcome(fixture, chunks, error)
        sent = [
            chunk.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"sdk_http_response"}) for chunk in chunks
        ]
        self.tally.equal(fixture, "events", "the events, as the library read them", sent, frames)
        for frame in frames:
            faults, unknown = answer_faults(types.GenerateContentResponse, frame)
            self.tally.holds(fixture, "events", "a chunk is not as the types say", faults + unknown)
        if fixture.error is None:
            expected = said(fixture.decoded)
            read = read_chunks(chunks)
            # A call without an id of Google's has one of ours.
            given = [call_id for call_id, _, _ in read["calls"]]
            expected["calls"] = [
                (call[0] if call_id else None, *call[1:]) for call_id, call in zip(given, expected["calls"], strict=True)
            ]
            read, expected = comparable(fixture, read), comparable(fixture, expected)
            self.tally.equal(fixture, "answers", "the answer", read, expected)

    def outcome(self, fixture: Fixture, chunks: list, error: Exception | None) -> list:
        """Whether it ended as it should; the frames that the library must have read before."""
        tally = self.tally
        found = (type(error), getattr(error, "status", None), getattr(error, "code", None))
        if fixture.scenario in REFUSALS:
            expected = (*REFUSALS[fixture.scenario], fixture.error["statusCode"])
            tally.equal(fixture, "errors", "the refusal", found, expected)
            return []
        if fixture.scenario == "MidStreamError":
            tally.equal(fixture, "errors", "the error within the stream", found, (errors.ServerError, "UNAVAILABLE", 503))
            return fixture.frames[:-1]
        if fixture.scenario in ("MalformedBody", "Truncated"):
            ends = [chunk for chunk in chunks if chunk.candidates[0].finish_reason]
            tally.equal(fixture, "errors", "an end of what is not whole", (error is not None, ends), (True, []))
            return fixture.frames if fixture.scenario == "Truncated" else []
        tally.equal(fixture, "errors", "an error", error, None)
        if fixture.meta["stalls"]:
            tally.equal(fixture, "errors", "the library has gone", self.replay.reader_gone.wait(PATIENCE), True)
        return fixture.frames


def spelt(body: dict) -> dict:
    """What the library sends, in our spelling: Google takes keys of either kind, and base64 of either alphabet."""
    if body.get("generationConfig") == {}:
        del body["generationConfig"]
    return _spelt(body)


def _spelt(value: object) -> object:
    if isinstance(value, list):
        return [_spelt(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if "data" in value:
        value["data"] = value["data"].replace("-", "+").replace("_", "/")
    keys = {key: key.split("_")[0] + "".join(map(str.capitalize, key.split("_")[1:])) for key in value}
    # What is not Google's has keys of its own.
    return {name: value[key] if name in FOREIGN else _spelt(value[key]) for key, name in keys.items()}


def read_chunks(chunks: list[types.GenerateContentResponse]) -> dict:
    """The answer; the library leaves it to its user to put it together."""
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
    calls = [(part.function_call.id, part.function_call.name, part.function_call.args) for part in parts if part.function_call]
    last = chunks[-1]
    usage, finish = last.usage_metadata, last.candidates[0].finish_reason.value
    return {
        "text": "".join(part.text for part in parts if part.text and not part.thought),
        "reasoning": "".join(part.text for part in parts if part.text and part.thought),
        "calls": calls,
        "input": usage.prompt_token_count,
        "output": usage.candidates_token_count + (usage.thoughts_token_count or 0),
        "cached": usage.cached_content_token_count or 0,
        "stop": "tool_use" if calls and finish == "STOP" else STOPS[finish],
        "model": last.model_version,
        "id": last.response_id,
    }
