"""What the tests run against: the real server, a wire that can be cut, and a server that says what it is told."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[3]
BINARY = Path(os.environ.get("LOOMLINE_BIN", ROOT / "target/debug/loomline"))
START_SECONDS = 30


class Server:
    """A `loomline serve` on a data folder of its own, which outlives the process."""

    def __init__(self, config: str | None = None) -> None:
        if not BINARY.exists():
            raise FileNotFoundError(f"there is no {BINARY}; build it first: cargo build")
        self.data = Path(tempfile.mkdtemp(prefix="loomline-python-"))
        self._address = "127.0.0.1:0"
        self._config: list[str] = []
        if config is not None:
            path = self.data / "loomline.toml"
            path.write_text(config)
            self._config = ["--config", str(path)]
        self.start()

    @property
    def base(self) -> str:
        """Where it listens; the same after a restart."""
        return f"http://{self._address}"

    def start(self) -> None:
        log = self.data / "log"
        command = [str(BINARY), "serve", "--listen", self._address, "--data", str(self.data), *self._config]
        with log.open("ab") as said:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=said)
        listening: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, args=(listening,), daemon=True).start()
        address = listening.get(timeout=START_SECONDS)
        if address is None:
            raise RuntimeError(f"the server ended: {log.read_text()}")
        self._address = address

    def kill(self) -> None:
        """Ends it at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def terminate(self) -> None:
        """Has it shut down in order."""
        self._process.terminate()
        self._process.wait()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.data, ignore_errors=True)

    def _read(self, listening: queue.Queue[str | None]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = re.search(rb"listening on http://(\S+:\d+)", line)
            if found:
                listening.put(found[1].decode())
        listening.put(None)


class Wire:
    """Passes bytes between clients and a server, and can be cut; new connections pass again."""

    def __init__(self, base: str) -> None:
        place = urlsplit(base)
        self._far = (place.hostname, place.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cut_after: Callable[[], int | None] = lambda: None
        """How many bytes of the server the next connection passes before it is cut."""
        self.n_cuts = 0
        self.n_connections = 0
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Breaks every connection, as a lost network does."""
        for each in list(self._sockets):
            self._reset(each)

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._far)
            except OSError:
                self._reset(near)
                continue
            self._sockets |= {near, far}
            self.n_connections += 1
            threading.Thread(target=self._pass, args=(near, far, None), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, self.cut_after()), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, left: int | None) -> None:
        try:
            while piece := source.recv(65536):
                target.sendall(piece if left is None else piece[:left])
                if left is not None:
                    left -= len(piece)
                    if left <= 0:
                        self.n_cuts += 1
                        break
        except OSError:
            pass
        finally:
            self._reset(source)
            self._reset(target)

    def _reset(self, each: socket.socket) -> None:
        self._sockets.discard(each)
        try:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        each.close()


@dataclass
class Reply:
    """What the told server says to one request."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False
    """Whether the connection is lost in place of a response."""


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]


class ToldServer:
    """Answers the requests with the replies in their order, and the last one for ever."""

    def __init__(self, *replies: Reply) -> None:
        self.seen: list[Seen] = []
        told, seen = list(replies), self.seen

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def reply(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                seen.append(Seen(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
                reply = told.pop(0) if len(told) > 1 else told[0]
                self.close_connection = True
                if reply.is_cut:
                    return
                body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in {"content-type": "application/json", "connection": "close", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = reply

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> ToldServer:
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()


def later(seconds: float, *actions: Callable[[], None]) -> threading.Thread:
    """Does this in a thread of its own after a while."""

    def act() -> None:
        threading.Event().wait(seconds)
        for action in actions:
            action()

    thread = threading.Thread(target=act)
    thread.start()
    return thread
