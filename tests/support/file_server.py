"""HTTP server on this machine with right, wrong and incomplete answers."""

from __future__ import annotations

import gzip
import hashlib
import io
import ssl
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer(ThreadingHTTPServer):
    """Answers /good with `content`, and the other paths as their names say."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = b""
        self.elsewhere = ""  # where /moved leads
        self.announced = ""  # how long /boasting says that it is
        self.asked = 0
        self.passwords: list[str] = []  # that clients sent
        self.half_sent = threading.Event()
        self.go_on = threading.Event()

    def url(self, path: str) -> str:
        scheme = "https" if isinstance(self.socket, ssl.SSLSocket) else "http"
        return f"{scheme}://127.0.0.1:{self.server_port}/{path}"


class _Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        server, content = self.server, self.server.content
        server.asked += 1
        server.passwords += self.headers.get_all("Authorization", [])
        whole, half = {"Content-Length": str(len(content))}, content[: len(content) // 2]
        answers = {
            "/good": (200, whole, content),
            "/unannounced": (200, {}, content),
            "/truncated": (200, whole, half),
            "/stalled": (200, whole, half),
            "/moved": (302, {"Location": server.elsewhere, "Content-Length": "0"}, b""),
            "/boasting": (200, {"Content-Length": server.announced}, b""),
            "/gzipped": (200, {"Content-Encoding": "gzip"}, gzip.compress(content)),
            "/silent": None,
        }
        answer = answers.get(self.path, (404, {}, b""))
        if answer is None:
            self.close_connection = True
            return
        code, headers, body = answer
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        if self.path == "/stalled":
            self.wfile.flush()
            server.half_sent.set()
            server.go_on.wait(60)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serving(secured: ssl.SSLContext | None = None) -> Iterator[FileServer]:
    """Run a server for as long as the block, over https if given a context."""
    with FileServer() as server:
        if secured is not None:
            server.socket = secured.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.go_on.set()
            server.shutdown()
            thread.join()


NAME = "ml-latest-small"


def zipped(files: dict[str, bytes], folder: str = f"{NAME}/") -> bytes:
    """Return a zip file as GroupLens makes them."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        if folder:
            archive.writestr(zipfile.ZipInfo(folder), b"")
        for name, content in files.items():
            archive.writestr(folder + name, content)
    return packed.getvalue()


FILES = {
    "ratings.csv": b"userId,movieId,rating,timestamp\r\n7,2,5.0,9\r\n4,1,0.5,8\r\n",
    "movies.csv": b"movieId,title,genres\r\n1,A (1990),War\r\n2,B,(no genres listed)\r\n",
    "tags.csv": b"userId,movieId,tag,timestamp\r\n7,2,odd,5\r\n",
}


GOOD = zipped({**FILES, "README.txt": b"terms\n"})


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
