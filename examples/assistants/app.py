"""Moves a saved thread of OpenAI to the server, and continues it with an unchanged program of the Assistants API."""

import json
from pathlib import Path

from openai import AssistantEventHandler, OpenAI

client = OpenAI()  # OPENAI_BASE_URL and OPENAI_API_KEY
threads = client.beta.threads
BIKE = {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}


def texts(message) -> str:
    return "".join(part["text"]["value"] for part in message["content"] if part["type"] == "text")


class Handler(AssistantEventHandler):
    def on_text_delta(self, delta, snapshot):
        print(delta.value, end="", flush=True)

    def on_event(self, event):
        if event.event == "thread.run.requires_action":
            calls = event.data.required_action.submit_tool_outputs.tool_calls
            outputs = [{"tool_call_id": call.id, "output": find_bike(**json.loads(call.function.arguments))} for call in calls]
            run = {"run_id": event.data.id, "thread_id": event.data.thread_id}
            with threads.runs.submit_tool_outputs_stream(**run, tool_outputs=outputs, event_handler=Handler()) as stream:
                stream.until_done()


def find_bike(size: str) -> str:
    return f"a red bike of size {size}"


saved = json.loads(Path("thread.json").read_text())["data"]
thread = threads.create(messages=[{"role": it["role"], "content": texts(it)} for it in saved])
assistant = client.beta.assistants.create(
    model="gpt-4o", tools=[{"type": "function", "function": {"name": "find_bike", "parameters": BIKE}}])
threads.messages.create(thread.id, role="user", content="find_bike 54")
with threads.runs.stream(thread_id=thread.id, assistant_id=assistant.id, event_handler=Handler()) as stream:
    stream.until_done()
print(f"\n{len(list(threads.messages.list(thread.id)))} messages")
