"""The load generator over HTTP: it sends one request at a time on each of several persistent
connections, counts complete answers, and checks them afterwards.

It reads only as much of an answer as it needs to find its end (the announced length, or the last
chunk), so that it costs less than the measured server. It parses statuses, chunks and event streams
after the clock has stopped.
"""

from __future__ import annotations

import json
import re
import select
import socket
import time
from collections.abc import Iterator

from .child import Child, Fault
from .load import CURSOR, KEPT, Quiet, Sample, Window, check, result_of
from .messages import ANNOUNCE, INITIALIZE, INITIALIZED, LIST, LISTEN, Hold, Request
from .roster import STATELESS

PATH = "/mcp"
FIRST_ID = 1_000_000  # all ids have the same number of digits, so all bodies have the same length
LAST_CHUNK = b"\r\n0\r\n\r\n"
ANNOUNCED = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SESSION = re.compile(rb"\r\nmcp-session-id: *([^\r]+)", re.IGNORECASE)
WARMING = 20  # sessions or streams before the memory of a server is first read
PIPELINED = 16  # requests in one write
BATCH = 100  # the number of objects that are created under one watch
STARTING = 30.0  # seconds in which a server must listen


class Connection:
    """A persistent connection to the server: it sends a request and assembles the answer."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.session = b""
        self.sent = 0
        self.before = self.after = b""
        self._pieces: list[bytes] = []
        self._missing: int | None = None  # bytes of an announced body; None: a last chunk ends it

    def close(self) -> None:
        """Close the connection, even during a request."""
        self.socket.close()

    def ask(self, head: bytes, body: bytes) -> bytes:
        """Send one request and return its whole answer."""
        self.socket.sendall(head + body)
        while True:
            answer = self.read()
            if answer is not None:
                return answer

    def read(self) -> bytes | None:
        """Return the answer once it is complete, else None; wait for bytes if none are available.
        Raises OSError at the end."""
        chunk = self.socket.recv(262_144)
        if not chunk:
            raise ConnectionResetError(
                "the server closed a connection, or was stopped because it took too long"
            )
        if not self._pieces:
            end = chunk.find(b"\r\n\r\n")
            if end < 0:
                raise ConnectionAbortedError(f"half a head: {chunk[:200]!r}")
            announced = ANNOUNCED.search(chunk, 0, end + 2)
            self._missing = int(announced[1]) - (len(chunk) - end - 4) if announced else None
        elif self._missing is not None:
            self._missing -= len(chunk)
        self._pieces.append(chunk)
        if self._missing is not None:
            if self._missing > 0:
                return None
        elif not (chunk if len(chunk) > 6 else b"".join(self._pieces[-2:])).endswith(LAST_CHUNK):
            return None
        whole = chunk if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        return whole


class WebLoad:
    """One server under load over HTTP, in one revision."""

    def __init__(self, child: Child, port: int, revision: str, token: str = "") -> None:
        self._child = child
        self._token = token
        self._port = port
        self._revision = revision
        self._next = FIRST_ID
        self._connections: list[Connection] = []

    def wait(self) -> None:
        """Return once the server listens."""
        end = time.monotonic() + STARTING
        while time.monotonic() < end and self._child.process.poll() is None:
            try:
                return Connection(self._port).close()
            except ConnectionRefusedError:
                time.sleep(0.01)
        raise self._child.fault("does not listen")

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.close()
        self._connections = []

    def open(self, count: int) -> None:
        """Replace all connections by `count` new ones; in the handshake era, each has its own
        session."""
        self.close()
        with self._child.watched():
            self._connections = [self._introduced() for _ in range(count)]

    def press(self, request: Request, seconds: float, fewest: int = 3) -> Sample:
        """Keep a call running on each open connection for some seconds; return the measured cost of
        one call."""
        window = Window()
        answers = list[bytes]()
        first = self._next
        before, after = self._body(request)
        for connection in self._connections:
            head = self._head(request, connection.session, len(before) + 7 + len(after))
            connection.before = head + before
            connection.after = after
        with self._child.watched(), Quiet():
            at_first = self._child.processor(), time.process_time_ns()
            self._pump(window, answers, seconds, fewest)
            window.processor = self._child.processor() - at_first[0]
            window.ours = time.process_time_ns() - at_first[1]
        lines = b"".join(line_of(answer) + b"\n" for answer in answers)
        check(
            self._child,
            request,
            lines,
            range(first, first + window.calls),
            complete=window.size < KEPT,
        )
        return window.sample()

    def lists(self, seconds: float, expected: int) -> Sample:
        """Fetch the whole list of tools, all its pages, one after the other for some seconds;
        return the costs of one whole list."""
        window = Window()
        pages = list[bytes]()
        with self._child.watched(), Quiet():
            before = self._child.processor()
            start = time.perf_counter_ns()
            while window.calls < 3 or time.perf_counter_ns() - start < seconds * 1e9:
                began = time.perf_counter_ns()
                pages = self._pages()
                window.waits.append(time.perf_counter_ns() - began)
                window.calls += 1
            window.wall = time.perf_counter_ns() - start
            window.processor = self._child.processor() - before
        window.size = window.calls * sum(map(len, pages))
        found = sum(len(result_of(self._child, LIST, line_of(page))["tools"]) for page in pages)
        if found != expected:
            raise self._child.fault(f"listed {found} tools, not {expected}")
        return window.sample() | {"pages": len(pages)}

    def hold(self, hold: Hold) -> Sample:
        """Make the server keep sessions or streams until its process ends; return the kilobytes for
        one of them."""
        self.close()
        self._keep(hold.what, WARMING)
        before = self._child.resident()
        for _ in range(hold.count // BATCH):
            self._keep(hold.what, BATCH)
        after = self._child.resident()
        found = {"each": (after - before) / hold.count / 1000, "rss": after / 1e6}
        return found | self._tell(hold.tells) if hold.tells else found

    def _tell(self, times: int) -> Sample:
        """Change a list some times, each time until every listener has been told; return the cost
        of one change for all listeners."""
        listeners = {connection.socket.fileno(): connection for connection in self._connections}
        caller = Connection(self._port)
        processor = 0
        walls = list[int]()
        with self._child.watched(), Quiet(), select.epoll() as traffic:
            for file in listeners:
                traffic.register(file, select.EPOLLIN)
            for _ in range(times):
                untold = set(listeners)
                before = self._child.processor()
                began = time.perf_counter_ns()
                self._one(caller, ANNOUNCE)
                while untold:
                    for file, _ in traffic.poll():
                        if b"list_changed" not in listeners[file].socket.recv(65536):
                            raise self._child.fault("told a listener of something else")
                        untold.discard(file)
                walls.append(time.perf_counter_ns() - began)
                processor += self._child.processor() - before
        caller.close()
        return {"cpu": processor / times / 1000, "wall": sorted(walls)[times // 2] / 1000}

    def _keep(self, what: str, count: int) -> None:
        with self._child.watched():
            if what == "bare session":
                self._open_bare(count)
            elif what == "session":
                one = Connection(self._port)
                for _ in range(count):
                    self._greet(one)
                one.close()
            else:
                self._connections += [self._stream(what) for _ in range(count)]

    def _open_bare(self, count: int) -> None:
        """Open sessions, several in each write, and count the answers."""
        one = Connection(self._port)
        left = count
        while left:
            several = min(left, PIPELINED)
            before, after = self._body(INITIALIZE)
            body = before + b"%d" % self._number() + after
            one.socket.sendall((self._head(INITIALIZE, b"", len(body)) + body) * several)
            answers = b""
            while len(SESSION.findall(answers)) < several or not answers.endswith(b"}"):
                answers += one.socket.recv(65536)
            left -= several
        one.close()

    def _stream(self, what: str) -> Connection:
        """Return a connection on which the server has started a stream."""
        connection = self._introduced()
        if what == "stream":
            connection.socket.sendall(
                head_of(
                    self._port,
                    "GET",
                    {"Mcp-Session-Id": connection.session.decode(), **self._version()},
                )
            )
        else:
            before, after = self._body(LISTEN)
            body = before + b"%d" % self._number() + after
            connection.socket.sendall(self._head(LISTEN, b"", len(body)) + body)
        begun = b""
        while (b"\r\n\r\n" not in begun) if what == "stream" else (b"acknowledged" not in begun):
            chunk = connection.socket.recv(65536)
            if not chunk:
                raise ConnectionResetError(f"no stream, but {begun[:300]!r}")
            begun += chunk
        if b" 200 " not in begun[:20] or b"text/event-stream" not in begun:
            raise self._child.fault(f"opens no stream: {begun[:300]!r}")
        return connection

    def _introduced(self) -> Connection:
        connection = Connection(self._port)
        if self._revision < STATELESS:
            self._greet(connection)
        return connection

    def _greet(self, connection: Connection) -> None:
        connection.session = b""
        answer = self._one(connection, INITIALIZE)
        found = SESSION.search(answer)
        connection.session = found[1] if found else b""
        note = INITIALIZED.rstrip()
        said = connection.ask(self._head(None, connection.session, len(note)), note)
        if b" 202 " not in said[:20]:
            raise self._child.fault(f"did not accept a notification: {said[:300]!r}")

    def _pages(self) -> list[bytes]:
        pages = list[bytes]()
        cursor = b""
        while True:
            params = {"cursor": json.loads(cursor)} if cursor else {}
            pages.append(self._one(self._connections[0], Request("tools/list", params, LIST.right)))
            more = CURSOR.search(pages[-1])
            if more is None:
                return pages
            cursor = more[1]

    def _one(self, connection: Connection, request: Request) -> bytes:
        before, after = self._body(request)
        body = before + b"%d" % self._number() + after
        return connection.ask(self._head(request, connection.session, len(body)), body)

    def _pump(self, window: Window, answers: list[bytes], seconds: float, fewest: int) -> None:
        clock = time.perf_counter_ns
        waits = window.waits
        number = self._next
        answered = 0
        size = 0
        by_file = {connection.socket.fileno(): connection for connection in self._connections}
        with select.epoll() as traffic:
            start = clock()
            end = start + int(seconds * 1e9)
            for file, connection in by_file.items():
                traffic.register(file, select.EPOLLIN)
                connection.sent = clock()
                connection.socket.sendall(b"%b%d%b" % (connection.before, number, connection.after))
                number += 1
            open_calls = len(by_file)
            while open_calls:
                for file, _ in traffic.poll():
                    connection = by_file[file]
                    answer = connection.read()
                    if answer is None:
                        continue
                    now = clock()
                    waits.append(now - connection.sent)
                    answered += 1
                    if size < KEPT:
                        answers.append(answer)
                    size += len(answer)
                    if now < end or answered < fewest:
                        connection.sent = now
                        connection.socket.sendall(
                            b"%b%d%b" % (connection.before, number, connection.after)
                        )
                        number += 1
                    else:
                        open_calls -= 1
            window.wall = clock() - start
        self._next = number
        window.calls = answered
        window.size = size

    def _body(self, request: Request) -> tuple[bytes, bytes]:
        before, after = request.parts(self._revision)
        return before, after.rstrip()

    def _head(self, request: Request | None, session: bytes, length: int) -> bytes:
        fields = {"Content-Type": "application/json", "Content-Length": str(length)}
        if session:
            fields["Mcp-Session-Id"] = session.decode()
        if request is not INITIALIZE:
            fields |= self._version()
        if self._token:
            fields["Authorization"] = f"Bearer {self._token}"
        if request is not None and self._revision >= STATELESS:
            fields["Mcp-Method"] = request.method
            if "name" in request.params:
                fields["Mcp-Name"] = request.params["name"]
        return head_of(self._port, "POST", fields)

    def _version(self) -> dict[str, str]:
        return {"MCP-Protocol-Version": self._revision}

    def _number(self) -> int:
        self._next += 1
        return self._next - 1


def head_of(port: int, method: str, fields: dict[str, str]) -> bytes:
    """Return the head of a request to the endpoint."""
    accept = "text/event-stream" if method == "GET" else "application/json, text/event-stream"
    fields = {"Host": f"127.0.0.1:{port}", "Accept": accept, **fields}
    return "\r\n".join(
        [
            f"{method} {PATH} HTTP/1.1",
            *(f"{name}: {value}" for name, value in fields.items()),
            "",
            "",
        ]
    ).encode()


def line_of(answer: bytes) -> bytes:
    """Return the one message with an id in an answer, JSON or event stream; raise `Fault` if there
    is no such message."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head[:20]:
        raise Fault(f"refused: {answer[:500]!r}")
    fields = head.lower()
    if b"transfer-encoding: chunked" in fields:
        body = b"".join(chunks(body))
    found = events(body) if b"text/event-stream" in fields else [body.strip()]
    answers = [message for message in found if b'"id"' in message]
    if len(answers) != 1:
        raise Fault(f"not one answer: {answer[:500]!r}")
    return answers[0]


def chunks(body: bytes) -> Iterator[bytes]:
    """Yield the chunks of a chunked body."""
    at = 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end].partition(b";")[0], 16)
        if not size:
            return
        yield body[end + 2 : end + 2 + size]
        at = end + 4 + size


def events(body: bytes) -> list[bytes]:
    """Return the data of the events of a stream, without empty ones; each is one line of JSON."""
    return [
        line[5:].strip()
        for line in body.splitlines()
        if line.startswith(b"data:") and line[5:].strip()
    ]


def free_port() -> int:
    """Return a free port of the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
