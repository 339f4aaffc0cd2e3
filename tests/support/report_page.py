"""Reports by examples/browser/report.js: jobs for Node, and the web page."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from secagg.testing import make_identity

FOLDER = Path(__file__).parents[2] / "examples" / "browser"
NODE = shutil.which("node")
_TYPES = {".html": "text/html", ".js": "text/javascript"}


def run_node(*jobs: dict[str, Any]) -> list[dict[str, str]]:
    """Return the `value` of each job, or the `check` that failed."""
    assert NODE is not None
    driver = Path(__file__).with_name("report_driver.mjs")
    command = [NODE, driver, FOLDER / "report.js"]
    text = json.dumps(jobs)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)  # noqa: S603
    return json.loads(done.stdout)


def seed_of(client: int) -> str:
    """Return the seed of a client's identity in tests."""
    return make_identity(client)._private.private_bytes_raw().hex()


class Site(ThreadingHTTPServer):
    """Web server of the page."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.documents: dict[str, tuple[str, bytes]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def show_page(self, settings: dict[str, object]) -> None:
        """Serve the page with the application's settings."""
        for path in FOLDER.iterdir():
            if path.suffix in _TYPES:
                self.documents[f"/{path.name}"] = (_TYPES[path.suffix], path.read_bytes())
        self.documents["/settings.json"] = ("application/json", json.dumps(settings).encode())


class _Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        media, content = self.server.documents.get(self.path, ("", b""))
        self.send_response(200 if media else 404)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


@contextmanager
def site() -> Iterator[Site]:
    """Yield a web server, and end the server after the block."""
    server = Site()
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
