"""Chromium that a test drives over pipes, with windows of any width."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
_WITH_PIPES = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Program that runs a browser, which reads commands from file 3 and answers in file 4."""
_OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


class Browser:
    """Page of a browser, which executes commands of the DevTools protocol."""

    def __init__(self, commands: int, answers: asyncio.StreamReader) -> None:
        self._commands, self._answers = commands, answers
        self._ids, self._session = count(1), {}

    async def open(self, url: str, width: int, height: int = 800) -> None:
        """Open a URL in a window of a width, in pixels."""
        target = await self._call("Target.createTarget", url="about:blank")
        attached = await self._call("Target.attachToTarget", flatten=True, **target)
        self._session = {"sessionId": attached["sessionId"]}
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        await self._call("Emulation.setDeviceMetricsOverride", **size)
        await self._call("Page.navigate", url=url)

    async def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, once it is not null or false."""
        look = f"""new Promise(done => {{ const look = () => {{
          let found = null;
          try {{ found = {expression}; }} catch {{}}
          if (found === null || found === false) setTimeout(look, 20); else done(found);
        }}; look(); }})"""
        while True:
            # a document that is replaced ends the promise with an error
            more = {"awaitPromise": True, "returnByValue": True}
            with suppress(KeyError):
                answer = await self._call("Runtime.evaluate", expression=look, **more)
                return answer["result"]["value"]

    async def picture(self, path: Path) -> None:
        """Write a picture of the page."""
        shot = await self._call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    async def _call(self, method: str, **params: Any) -> Any:
        command = {"id": next(self._ids), "method": method, "params": params} | self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            answer = json.loads((await self._answers.readuntil(b"\0"))[:-1])
            if answer.get("id") == command["id"]:
                return answer["result"]


def _pipe() -> tuple[int, int]:
    """Return a pipe whose numbers are not those of the browser's files."""
    ends = os.pipe()
    try:
        return fcntl.fcntl(ends[0], fcntl.F_DUPFD, 10), fcntl.fcntl(ends[1], fcntl.F_DUPFD, 10)
    finally:
        for end in ends:
            os.close(end)


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Browser]:
    """Yield a browser with a profile in a folder, and end the browser after the block."""
    assert BROWSER is not None
    (theirs, commands), (answers, their_answers) = _pipe(), _pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _WITH_PIPES,
        str(theirs),
        str(their_answers),
        BROWSER,
        *_OPTIONS,
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
        pass_fds=(theirs, their_answers),
        stderr=asyncio.subprocess.DEVNULL,
    )
    os.close(theirs)
    os.close(their_answers)
    reader = asyncio.StreamReader(limit=1 << 26)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(answers, "rb")
    )
    try:
        yield Browser(commands, reader)
    finally:
        process.kill()
        await process.wait()
        pipe.close()
        os.close(commands)
