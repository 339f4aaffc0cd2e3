"""Generator of reports: ``python -m benches.collection.generator FOLDER NUMBER PORT...``.

Each client's report is sent until a server acknowledges it; the acknowledged ids and the plain
sum of their vectors go to the folder. The HTTP client is of sockets that block, so that the
generator takes little of the time of the cores that everybody shares.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
import urllib.request
from base64 import b64decode
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from benches.collection.load import Load, identity_of
from secagg import FixedPoint
from secagg._threads import set_threads
from secagg.oneshot import OneShotParams, report

_PAUSE = 0.2
"""Seconds before a connection is tried again, or a report that found no room is sent again."""
_GARBAGE = ("signature", "truncated", "parameters", "random")


@dataclass(slots=True)
class Sent:
    """Body on its way. `client` is None for garbage, and `copy` is True for a duplicate."""

    client: int | None
    body: bytes
    copy: bool = False


class Connection:
    """Connection to a server with one request under way, which is opened again when lost."""

    def __init__(self, port: int, server: int) -> None:
        self.server, self._port = server, port
        self.sent: Sent | None = None
        self.socket: socket.socket | None = None
        self._received = b""

    def open(self) -> bool:
        """Connect; return False if the server is away."""
        with suppress(OSError):
            self.socket = socket.create_connection(("127.0.0.1", self._port), timeout=120)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._received = b""
            return True
        return False

    def send(self, sent: Sent, head: bytes) -> None:
        """Send a request."""
        assert self.socket is not None
        self.sent = sent
        self.socket.sendall(head % len(sent.body) + sent.body)

    def receive(self) -> int:
        """Read what has come; return the status of a complete response, or else 0."""
        assert self.socket is not None
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found:
            return 0
        length = 0
        for line in head.lower().split(b"\r\n")[1:]:
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        if len(body) < length:
            return 0
        self._received = b""
        return int(head[9:12])

    def lose(self) -> Sent | None:
        """Close the connection; return the body that was not acknowledged."""
        if self.socket is not None:
            self.socket.close()
        self.socket, sent = None, self.sent
        self.sent = None
        return sent


class Maker:
    """Maker of the reports of a part of the clients, with the plain sum of their vectors."""

    def __init__(self, load: Load, number: int, params: OneShotParams) -> None:
        self._load, self._number, self._params = load, number, params
        self.total = np.zeros(load.length, np.int64)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield each client's id and report."""
        params = self._params
        assert isinstance(params.encoding, FixedPoint)
        for first, ids in self._load.lots(self._number):
            integers = self._load.integers(first, len(ids), params)
            self.total += integers.sum(axis=0, dtype=np.int64)
            for u, vector in zip(ids, integers / params.encoding.scale, strict=True):
                yield u, report(vector, params, u, identity=identity_of(u))


class Sender:
    """Sender of reports, each of which is sent until a server acknowledges the report.

    Attributes
    ----------
    counts : Counter of str
        Answers by status, and faults.
    acknowledged : set of int
        Clients.
    """

    def __init__(
        self, load: Load, number: int, params: OneShotParams, ports: list[int]
    ) -> None:
        self._load, self._params = load, params
        self._head = (
            f"POST /v1/parameters/{params.digest.hex()}/reports HTTP/1.1\r\n"
            "Host: 127.0.0.1\r\nContent-Length: %d\r\n\r\n"
        ).encode()
        self._connections = [
            Connection(port, server)
            for _ in range(load.connections)
            for server, port in enumerate(ports)
        ]
        self._idle: list[deque[Connection]] = [deque() for _ in ports]
        self._lost = deque(self._connections)
        self._again, self._waiting = 0.0, deque[Sent]()
        self._selector = selectors.DefaultSelector()
        self._random = Random(f"{load.seed} {number}")  # noqa: S311 - of faults, not of keys
        self.counts, self.acknowledged = Counter[str](), set[int]()

    def send(self, made: Iterable[tuple[int, bytes]]) -> None:
        """Send reports with their ids, and wait for all acknowledgements."""
        load, began, count = self._load, time.monotonic(), 0
        for u, body in made:
            if self._random.random() < load.garbage:
                self._give(Sent(None, self._spoil(body)))
            server = self._random.randrange(len(self._idle))
            self._give(Sent(u, body), server)
            if self._random.random() < load.duplicates:
                self._give(Sent(u, body, copy=True), server + 1)
            count += 1
            while count > load.pace * (time.monotonic() - began):
                self._poll(0.01)
        while self._waiting or any(one.sent is not None for one in self._connections):
            self._flush()
            self._poll(0.05)
        assert len(self.acknowledged) == count

    def _give(self, sent: Sent, server: int = 0) -> None:
        """Send a body by an idle connection, of a server if possible; wait for a connection."""
        self._waiting.append(sent)
        self._flush(server)
        while len(self._waiting) > self._load.connections:
            self._poll(0.05)
            self._flush(server)

    def _flush(self, server: int = 0) -> None:
        """Send bodies that wait, as far as there are idle connections."""
        if self._lost and time.monotonic() > self._again:
            self._connect()
        count = len(self._idle)
        while self._waiting:
            places = (at % count for at in range(server, server + count))
            place = next((at for at in places if self._idle[at]), None)
            if place is None:
                break
            one, sent = self._idle[place].popleft(), self._waiting.popleft()
            try:
                one.send(sent, self._head)
            except OSError:
                self._lose(one)
        self._poll(0.0)

    def _connect(self) -> None:
        away = set[int]()
        for _ in range(len(self._lost)):
            one = self._lost.popleft()
            if one.server not in away and one.open():
                assert one.socket is not None
                self._selector.register(one.socket, selectors.EVENT_READ, one)
                self._idle[one.server].append(one)
            else:
                away.add(one.server)
                self._lost.append(one)
        self._again = time.monotonic() + _PAUSE

    def _poll(self, seconds: float) -> None:
        """Read the responses that have come."""
        for key, _ in self._selector.select(seconds):
            one: Connection = key.data
            try:
                status = one.receive()
            except OSError:
                self._lose(one)
                continue
            if status:
                sent, one.sent = one.sent, None
                if sent is None:
                    self._lose(one)
                    continue
                self._note(sent, status)
                self._idle[one.server].append(one)

    def _lose(self, one: Connection) -> None:
        assert one.socket is not None
        self._selector.unregister(one.socket)
        with suppress(ValueError):
            self._idle[one.server].remove(one)
        if (sent := one.lose()) is not None:
            self.counts["lost connections"] += 1
            self._waiting.append(sent)
        self._lost.append(one)

    def _note(self, sent: Sent, status: int) -> None:
        """Count an answer; a body that was not judged is sent again."""
        kind = "garbage" if sent.client is None else "copy" if sent.copy else "report"
        self.counts[f"{kind} {status}"] += 1
        if status in (408, 503):
            self._waiting.append(sent)
            time.sleep(_PAUSE / 10)
        elif sent.client is None:
            assert 400 <= status < 500, f"garbage was answered by {status}"
        else:
            assert status == 204, f"a report was answered by {status}"
            self.acknowledged.add(sent.client)

    def _spoil(self, body: bytes) -> bytes:
        """Return garbage in place of a report."""
        kind, layout = self._random.choice(_GARBAGE), self._params.layout
        self.counts[kind] += 1
        if kind == "truncated":
            return body[: self._random.randrange(1, len(body))]
        if kind == "random":
            return self._random.randbytes(len(body))
        at = 3 if kind == "parameters" else layout.values - 1 - self._random.randrange(64)
        return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]


def fetch(port: int) -> OneShotParams:
    """Return the parameters that a server offers."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/parameters", timeout=60) as found:
        return OneShotParams.from_bytes(b64decode(json.load(found)["parameters"]))


def main(folder: Path, number: int, ports: list[int]) -> None:
    """Send a generator's reports; write the plain sum and the ids."""
    set_threads(1)
    load = Load.read(folder)
    params = fetch(ports[0])
    maker, sender = Maker(load, number, params), Sender(load, number, params, ports)
    print("generating", flush=True)
    start = time.process_time()
    sender.send(maker)
    ids = np.array(sorted(sender.acknowledged), np.uint64)
    np.savez(folder / f"sent-{number}.npz", integers=maker.total, ids=ids)
    seconds = time.process_time() - start
    counts = dict(sender.counts) | {"seconds": seconds}
    (folder / f"sent-{number}.json").write_text(json.dumps(counts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), list(map(int, sys.argv[3:])))
