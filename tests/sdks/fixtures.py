"""The files that the grid of `loomline-upp` saves, a server that answers with them, and the tally of what was checked.

The files are described in `crates/upp/tests/grid/fixtures.rs`.
"""

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# The key of every fixture.
KEY = "sk-secret"
# Longest wait for anything, in seconds; nothing here waits but for a reader that has gone.
PATIENCE = 30


@dataclass(frozen=True)
class Fixture:
    """One request with its answer, and what our codec made of it."""

    vendor: str
    scenario: str
    n: int
    request: dict
    meta: dict
    decoded: dict
    body: bytes

    def __str__(self) -> str:
        return f"{self.vendor}/{self.scenario}.{self.n}"

    @cached_property
    def frames(self) -> list[object]:
        """The JSON of every server-sent event that is complete, in order."""
        blocks = self.body.decode().replace("\r\n", "\n").split("\n\n")[:-1]
        datas = ["\n".join(line[6:] for line in block.split("\n") if line.startswith("data: ")) for block in blocks]
        return [json.loads(data) for data in datas if data and data != "[DONE]"]

    @property
    def error(self) -> dict | None:
        """The error that our codec made of it."""
        return self.decoded.get("error")


def load(folder: Path) -> tuple[list[Fixture], list[tuple[str, str]]]:
    """All fixtures of a vendor, and the scenarios that do not apply, with the reason."""
    found = []
    for meta in sorted(folder.glob("*.meta.json")):
        scenario, n, _, _ = meta.name.split(".")
        (response,) = folder.glob(f"{scenario}.{n}.response.*")

        def read(what: str) -> dict:
            return json.loads((folder / f"{scenario}.{n}.{what}.json").read_text())

        found.append(
            Fixture(folder.name, scenario, int(n), read("request"), read("meta"), read("decoded"), response.read_bytes())
        )
    skipped = [(f"{folder.name}/{path.stem}", path.read_text()) for path in sorted(folder.glob("*.skipped"))]
    return found, skipped


class Replay:
    """A server of this machine that answers each request with the fixture that is set."""

    def __init__(self) -> None:
        self.fixture: Fixture | None = None
        self.received: list[tuple[str, dict, object]] = []
        self.reader_gone = threading.Event()
        replay = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                replay.received.append((self.path, headers, json.loads(body)))
                meta = replay.fixture.meta
                self.send_response(meta["status"])
                for name, value in (meta["headers"] | {"connection": "close"}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(replay.fixture.body)
                self.wfile.flush()
                if meta["stalls"]:
                    # Nothing more is sent; reading ends when the other side closes.
                    self.connection.settimeout(PATIENCE)
                    if self.rfile.read(1) == b"":
                        replay.reader_gone.set()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def set(self, fixture: Fixture) -> None:
        self.fixture, self.received = fixture, []
        self.reader_gone.clear()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@dataclass
class Tally:
    """What was checked, and what did not hold."""

    counts: Counter = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    allowed: Counter = field(default_factory=Counter)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def skip(self, what: str, reason: str) -> None:
        self.skipped.append((what, reason))

    def equal(self, fixture: Fixture, column: str, what: str, found: object, expected: object) -> None:
        self.counts[fixture.vendor, column] += 1
        if found != expected:
            self.failures.append(f"{fixture}: {what}\n    found    {found!r}\n    expected {expected!r}")

    def holds(self, fixture: Fixture, column: str, what: str, faults: list[str]) -> None:
        """One check that came out with these faults."""
        self.counts[fixture.vendor, column] += 1
        self.failures.extend(f"{fixture}: {what}: {fault}" for fault in faults)

    def sent(
        self,
        fixture: Fixture,
        replay: Replay,
        headers: tuple[str, ...],
        without: str = "",
        spelt: Callable[[object], object] = lambda body: body,
    ) -> None:
        """The library, told the same, sends the same; `spelt` puts what it sends into the spelling that we have."""
        ((path, found, body),) = replay.received
        # The base URL of one format has a version, that of the other may not.
        self.equal(fixture, "sent alike", "path", path.removeprefix(without), fixture.meta["path"].removeprefix(without))
        self.equal(fixture, "sent alike", "body", spelt(body), fixture.request)
        for name in headers:
            self.equal(fixture, "sent alike", name, found.get(name), fixture.meta["requestHeaders"].get(name))

    def allow(self, fixture: Fixture, what: str, reason: str) -> None:
        self.allowed[fixture.vendor, what, reason] += 1


def arguments(text: str) -> object:
    """The arguments of a call, or their text where that is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def comparable(fixture: Fixture, read: dict) -> dict:
    """The answer, but of a call that is cut off only that it was made: its arguments are never an object of ours, and what a
    library makes of them is its own."""
    if fixture.scenario == "CutCall" and fixture.n == 0:
        read = read | {"calls": [call[:2] for call in read["calls"]]}
    return read


def said(decoded: dict) -> dict:
    """What our codec read, in the words in which the libraries' answers are put too."""
    message, usage = decoded["message"], decoded["usage"]

    def texts(kind: str) -> str:
        return "".join(block["text"] for block in message["content"] if block["type"] == kind)

    return {
        "text": texts("text"),
        "reasoning": texts("reasoning"),
        "calls": [(call["toolCallId"], call["toolName"], call["arguments"]) for call in message.get("toolCalls", [])],
        "input": usage["inputTokens"],
        "output": usage["outputTokens"],
        "cached": usage["cacheReadTokens"],
        "stop": decoded["stopReason"],
        "model": decoded["modelId"],
        "id": decoded["responseId"],
    }
