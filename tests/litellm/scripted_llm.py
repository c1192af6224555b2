"""What the models of `config.yaml` say, in LiteLLM's own neutral form; every byte on the wire is LiteLLM's.

What a model was sent, as LiteLLM understood it, goes to the file that SCRIPTED_SEEN names, a line a call.
"""

import json
import os
from collections.abc import AsyncIterator

import litellm
from litellm.proxy._types import ProxyException, UserAPIKeyAuth

KEY = "sk-right"


async def authenticate(request: object, api_key: str) -> UserAPIKeyAuth:
    if api_key != KEY:
        raise ProxyException(message="Incorrect API key provided", type="authentication_error", param="key", code=401)
    return UserAPIKeyAuth(api_key=api_key)


def text(piece: str) -> dict:
    return {"text": piece, "tool_use": None, "is_finished": False, "finish_reason": "", "usage": None, "index": 0}


def call(at: int, arguments: str, call_id: str | None = None) -> dict:
    function = {"name": "add" if call_id else None, "arguments": arguments}
    return text("") | {"tool_use": {"id": call_id, "type": "function", "function": function, "index": at}}


def end(reason: str, prompt: int, completion: int) -> dict:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return text("") | {"is_finished": True, "finish_reason": reason, "usage": usage}


class Scripted(litellm.CustomLLM):
    async def astreaming(self, *_: object, **asked) -> AsyncIterator[dict]:
        model, messages = asked["model"], asked["messages"]
        with open(os.environ["SCRIPTED_SEEN"], "a", encoding="utf-8") as seen:
            seen.write(json.dumps({"model": model, "messages": messages, "tools": asked["optional_params"].get("tools")}) + "\n")
        results = [message["content"] for message in messages if message["role"] == "tool"]
        if model == "limited":
            raise litellm.RateLimitError("slow down", llm_provider="scripted", model=model)
        if model.startswith("called") and not results:
            yield call(0, '{"a": 1, ', "call_1")
            yield call(0, '"b": 2}')
            if model == "called-twice":
                yield call(1, "", "call_2")
                yield call(1, '{"a":3,"b":4}')
            yield end("tool_calls", 20, 9)
            return
        for piece in [f"it is {' and '.join(results)}"] if results else ["Hello ", "from ", "the ", "script: Grüße 🌍"]:
            yield text(piece)
        if model == "broken":
            raise litellm.InternalServerError("the model broke", llm_provider="scripted", model=model)
        yield end("length" if model == "cut" else "stop", 11, 4)


scripted = Scripted()
