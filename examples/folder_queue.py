"""Session through a new folder of a machine: `python folder_queue.py FOLDER server 5|member 3`.

**The ownership of FOLDER/3 authenticates member 3**, and nothing else does: whoever can write
there is member 3. In earnest an operator makes it, for this member and the server only.
"""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from secagg import FixedPoint, RemoteProtocolError, RoundParams
from secagg.session import Deadlines, Session, take_part

SAFE = os.O_NOFOLLOW | os.O_NONBLOCK  # a member may lay a link, or a pipe that nobody fills
VECTORS = np.arange(24.0).reshape(8, 3) / 4  # a row for each member, here known to all


class FolderLink:
    """Link of member u: its requests are files .next and .answer, the replies files .reply."""

    def __init__(self, folder: Path, u: int) -> None:
        self.own, self.end = folder / str(u), folder / "end"
        self.own.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def ask(self, kind: str, data: bytes, ended: bytes) -> bytes:
        """Return the reply to a request, or `ended`; a reply may be the name of a check."""
        (self.own / "tmp").write_bytes(data)
        path = (self.own / "tmp").rename(self.own / (os.urandom(8).hex() + kind))
        while not (reply := path.with_suffix(".reply")).exists() and not self.end.exists():
            await asyncio.sleep(0.02)
        found = reply.rename(self.own / "last").read_bytes() if reply.exists() else ended
        if (check := found.decode(errors="replace")).startswith("-"):
            raise RemoteProtocolError("rejected", sender=None, phase="answer", check=check[1:])
        return found[1:]

    async def next_task(self, after: bytes) -> bytes | None:
        """Ask until there is a task, which also shows that this member is alive."""
        while not (task := await self.ask(".next", after, ended=b"")) and not self.end.exists():
            await asyncio.sleep(0.1)
        return task or None

    async def send(self, answer: bytes) -> None:
        """Give an answer to the server; the session may end without a reply."""
        await self.ask(".answer", answer, ended=b"-late")


async def serve(folder: Path, n: int) -> None:
    """Reply to requests until there is a sum, and print it beside numpy's."""
    session = Session(range(n), deadlines=Deadlines(gather=60.0, input=10.0))
    total = asyncio.create_task(session.round(RoundParams.suggest(n, 3, FixedPoint(clip=8.0))))
    while not total.done():
        await asyncio.sleep(0.02)
        for path in folder.glob("*/*.[an]*"):  # .answer and .next
            with suppress(OSError), open(os.open(path, SAFE), "rb") as file:
                u, data = int(path.parent.name), file.read(session.answer_limit + 1)
                try:
                    answers = path.suffix == ".answer"
                    call = session.accept(u, data) if answers else session.next_task(u, data, 0)
                    reply = b"+" + (await call or b"")
                except RemoteProtocolError as error:
                    reply = b"-" + error.check.encode()
                (folder / "tmp").write_bytes(reply)  # where members cannot lay a link
                (folder / "tmp").rename(path.with_suffix(".reply"))
                path.unlink()
    (folder / "end").touch()
    result = await total
    print("survivors", *result.survivors, "sum", *result.sum)
    print("numpy", *VECTORS[list(result.survivors)].sum(axis=0))


if __name__ == "__main__":
    folder, number = Path(sys.argv[1]), int(sys.argv[3])
    if sys.argv[2] == "server":
        asyncio.run(serve(folder, number))
    else:
        asyncio.run(take_part(FolderLink(folder, number), number, lambda *_: VECTORS[number]))
