"""One thread behind all protocols: the client writes and reads between their clients."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest
from loomline import Loomline, Thread
from rig import Server

Said = list[str]


class Protocols:
    """What the client of each protocol does to say something on a thread of ours, and to read it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.client = Loomline(server.base)
        self.openai = openai.OpenAI(base_url=f"{server.base}/v1", api_key="llk_none", max_retries=0)
        self.http = httpx.Client(base_url=server.base, timeout=30)
        self.says: dict[str, Callable[[Thread, str], None]] = {
            "client": lambda thread, content: self._run(thread, content),
            "threads": self._say_threads,
            "responses": self._say_responses,
            "chat": self._say_chat,
            "ag_ui": self._say_ag_ui,
            "langgraph": self._say_langgraph,
            "mcp": self._say_mcp,
            "a2a": self._say_a2a,
        }
        self.reads: dict[str, Callable[[Thread], Said]] = {
            "client": self._read_client,
            "threads": self._read_threads,
            "responses": self._read_responses,
            "chat": self._read_chat,
            "ag_ui": self._read_ag_ui,
            "langgraph": self._read_langgraph,
            "mcp": self._read_mcp,
        }

    def close(self) -> None:
        self.client.close()
        self.openai.close()
        self.http.close()

    def begin(self) -> Thread:
        return self.client.create_thread()

    def _run(self, thread: Thread, content: str) -> None:
        assert thread.run(content).status == "completed"

    def _read_client(self, thread: Thread) -> Said:
        spoken = ("input_text", "output_text")
        return [
            "".join(part["text"] for part in message.content if part.type in spoken)
            for message in thread.messages().messages
            if message.type == "message"
        ]

    def _say_threads(self, thread: Thread, content: str) -> None:
        key = f"thread_{digits(thread)}"
        self.openai.beta.threads.messages.create(key, role="user", content=content)
        run = self.openai.beta.threads.runs.create_and_poll(thread_id=key, assistant_id="demo", poll_interval_ms=20)
        assert run.status == "completed"

    def _read_threads(self, thread: Thread) -> Said:
        page = self.openai.beta.threads.messages.list(f"thread_{digits(thread)}", order="asc", limit=100)
        return ["".join(part.text.value for part in message.content if part.type == "text") for message in page.data]

    def _say_responses(self, thread: Thread, content: str) -> None:
        conversation = f"conv_{digits(thread)}"
        made = self.openai.responses.create(model="demo", input=content, conversation=conversation)
        assert made.status == "completed"

    def _read_responses(self, thread: Thread) -> Said:
        page = self.openai.conversations.items.list(f"conv_{digits(thread)}", order="asc", limit=100)
        messages = [item for item in page.data if item.type == "message"]
        return ["".join(part.text for part in item.content if hasattr(part, "text")) for item in messages]

    def _say_chat(self, thread: Thread, content: str) -> None:
        messages = self._get(f"/api/chat/{thread.key}/messages")["messages"]
        parts = [{"type": "text", "text": content}]
        said = {"id": str(uuid.uuid4()), "role": "user", "parts": parts}
        body = {"id": thread.key, "trigger": "submit-message", "messages": [*messages, said]}
        assert '"type":"finish"' in self._post("/api/chat", body).text

    def _read_chat(self, thread: Thread) -> Said:
        messages = self._get(f"/api/chat/{thread.key}/messages")["messages"]
        return ["".join(part["text"] for part in each["parts"] if part["type"] == "text") for each in messages]

    def _say_ag_ui(self, thread: Thread, content: str) -> None:
        messages = self._get(f"/ag-ui/threads/{thread.key}/messages")["messages"]
        said = {"id": str(uuid.uuid4()), "role": "user", "content": content}
        more: dict[str, Any] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
        body = {"threadId": thread.key, "runId": str(uuid.uuid4()), "messages": [*messages, said], **more}
        assert "RUN_FINISHED" in self._post("/ag-ui", body).text

    def _read_ag_ui(self, thread: Thread) -> Said:
        messages = self._get(f"/ag-ui/threads/{thread.key}/messages")["messages"]
        return [each["content"] for each in messages if each["role"] in ("user", "assistant") and each.get("content")]

    def _say_langgraph(self, thread: Thread, content: str) -> None:
        body = {"assistant_id": "demo", "input": {"messages": [{"role": "user", "content": content}]}}
        assert self._post(f"/threads/{thread.key}/runs/wait", body).json()["messages"][-1]["type"] == "ai"

    def _read_langgraph(self, thread: Thread) -> Said:
        messages = self._get(f"/threads/{thread.key}/state")["values"]["messages"]
        return [each["content"] for each in messages if each["type"] != "tool" and each["content"]]

    def _say_mcp(self, thread: Thread, content: str) -> None:
        assert self._mcp("run", key=thread.key, content=content)["status"] == "completed"

    def _read_mcp(self, thread: Thread) -> Said:
        messages = self._mcp("read_thread", key=thread.key, limit=100)["messages"]
        spoken = [each for each in messages if each["type"] == "message"]
        return ["".join(part.get("text", "") for part in each["content"] if "_text" in part["type"]) for each in spoken]

    def _say_a2a(self, thread: Thread, content: str) -> None:
        message = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "contextId": thread.key}
        body = {"message": {**message, "parts": [{"text": content}]}}
        task = self._post("/a2a/v1/message:send", body, {"a2a-version": "1.0"}).json()["task"]
        assert task["contextId"] == thread.key

    def _mcp(self, tool: str, **arguments: Any) -> dict[str, Any]:
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        text = self._post("/mcp", call, {"accept": "application/json, text/event-stream"}).text
        (data,) = (line.removeprefix("data:") for line in text.splitlines() if line.startswith("data: {"))
        result: dict[str, Any] = json.loads(data)["result"]
        assert result["isError"] is False
        return dict(result["structuredContent"])

    def _get(self, path: str) -> Any:
        response = self.http.get(path)
        assert response.status_code == 200, response.text
        return response.json()

    def _post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> httpx.Response:
        response = self.http.post(path, json=body, headers=headers)
        assert response.status_code == 200, response.text
        return response


def digits(thread: Thread) -> str:
    return thread.key.replace("-", "")


def timeless(value: Any) -> Any:
    """A document without what is different each time: ids, instants, and who it came through."""
    if isinstance(value, list):
        return [timeless(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {
        name: timeless(entry)
        for name, entry in value.items()
        if name.rpartition("_")[2] not in ("id", "at", "timestamp") and "metadata" not in name and name != "agents"
    }


@pytest.fixture
def protocols(mortal: Server) -> Iterator[Protocols]:
    protocols = Protocols(mortal)
    yield protocols
    protocols.close()


def test_a_thread_goes_on_through_each_protocol_and_reads_the_same(protocols: Protocols) -> None:
    thread = protocols.begin()
    said: Said = []
    for name, say in protocols.says.items():
        for speaker, speak in (("client", protocols.says["client"]), (name, say)):
            content = f"Hello from {speaker} before {name}"
            speak(thread, content)
            said += [content, f"You said: {content}"]
        if name == "ag_ui":
            protocols.server.kill()
            protocols.server.start()
        for reader, read in protocols.reads.items():
            assert read(thread) == said, f"{name} is read through {reader}"


def test_the_document_is_the_same_whichever_protocol_wrote_it(protocols: Protocols) -> None:
    documents = {}
    for name, say in protocols.says.items():
        thread = protocols.begin()
        for content in ("Good morning", "compute 2+3*4", "think of spring"):
            say(thread, content)
        if name == "chat":
            protocols.server.kill()
            protocols.server.start()
        documents[name] = timeless(thread.document().content)
    assert len(documents["client"]["turns"]) == 6
    for name, document in documents.items():
        assert document == documents["client"], name


def test_a_run_of_another_protocol_is_followed_through_a_crash(protocols: Protocols) -> None:
    thread = protocols.begin()
    before = thread.run("Good morning")
    key = f"thread_{digits(thread)}"
    protocols.openai.beta.threads.messages.create(key, role="user", content="slow 30ms say 40 words")
    protocols.openai.beta.threads.runs.create(key, assistant_id="demo")
    n_events = 0
    with thread.follow(until="rest") as events:
        for _ in events:
            n_events += 1
            if n_events == 60:
                protocols.server.kill()
                protocols.server.start()
    runs = thread.runs().runs
    assert [run.status for run in runs] == ["completed", "completed"]
    assert runs[0].id == before.execution_id
    texts = [read(thread)[-1] for read in protocols.reads.values()]
    assert len(texts[0].split()) == 40
    assert set(texts) == {texts[0]}
