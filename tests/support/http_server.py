"""Server of a session over HTTP in a process of its own, there to be killed.

As a script: it serves three rounds on a port, with a folder, and kills itself after a number of
accepted answers. It prints the first element of each sum.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from http_party import PARAMS, REGISTRY
from secagg.http import serve
from secagg.session import Event, MessageAccepted, Session

ROUNDS = 3


async def main(folder: str, port: int, dies_after: int) -> None:
    accepted = 0

    def count(event: Event) -> None:
        nonlocal accepted
        accepted += isinstance(event, MessageAccepted)
        if accepted == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)

    session = Session(REGISTRY, folder=folder, on_event=[count])
    async with serve(session, REGISTRY, port=port):
        for _ in range(ROUNDS):
            result = await session.round(PARAMS)
            print(len(result.survivors), result.sum[0], flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
