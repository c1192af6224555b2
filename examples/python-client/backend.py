"""A backend of a chat: it streams an agent's answers as lines of JSON, and passes its user's approvals on."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain

from loomline import ApiError, ChunkEmittedEvent, Loomline

client = Loomline()  # LOOMLINE_SERVER and LOOMLINE_KEY


def answer(thread, events):
    """The lines of an answer. After `again`, a page drops the text that it shows of this answer."""
    for event in events:
        if isinstance(event, ChunkEmittedEvent) and event.chunk_type == "text-delta":
            yield {"text": event.data["delta"]}
        elif isinstance(event, ChunkEmittedEvent) and event.chunk_type == "data-step-reset":
            yield {"again": True}
        elif event.type == "thread.finished":
            yield {"status": event.result}
    for call in thread.pending():
        yield {"approve": call.tool_call_id, "tool": call.tool_name, "input": call.input}


class Backend(BaseHTTPRequestHandler):
    def do_POST(self):
        user, action = self.path.strip("/").split("/")  # In production: the user of the session.
        thread = client.thread(f"chat-{user}")
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        try:
            if action == "approve":
                events = thread.follow(after=thread.approve(body).after, until="rest")
            else:
                events = thread.stream(body, agent="careful")
            self.send_lines(answer(thread, events))
        except ApiError as error:
            self.send_error(error.status, error.message)

    def send_lines(self, lines):
        first = next(lines)  # Fails before the response begins.
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.end_headers()
        for line in chain([first], lines):
            self.wfile.write(json.dumps(line).encode() + b"\n")


ThreadingHTTPServer(("127.0.0.1", 8788), Backend).serve_forever()
