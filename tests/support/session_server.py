"""Server of a session in a process of its own, over a Unix socket, there to be killed.

As a script it runs a program of some rounds, prints each result as a line of JSON, and kills
itself at a given point. `SocketLink` is the members' end.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from oneshot_parties import one_shot_params
from secagg import CohortLedger, FixedPoint, RemoteProtocolError, RoundParams
from secagg.journal import database
from secagg.oneshot import Helper, HelperJournal
from secagg.session import LocalHelper, Session, bind

N, LENGTH, ROUNDS, HELPERS = 5, 4, 2, 3
PARAMS = RoundParams(n_clients=N, threshold=3, length=LENGTH, encoding=FixedPoint(clip=8.0))


class SocketLink:
    """Link of a member over the socket; it waits for a server, and repeats what was lost."""

    def __init__(self, address: str, client: int, up: asyncio.Event) -> None:
        self.address, self.client, self.up = address, client, up

    async def next_task(self, after: bytes) -> bytes | None:
        return await self._call("next_task", after)

    async def send(self, answer: bytes) -> None:
        error = await self._call("accept", answer)
        if error is not None:
            check = error.decode()
            raise RemoteProtocolError("", sender=self.client, phase="", check=check)

    async def _call(self, name: str, data: bytes) -> bytes | None:
        while True:
            await self.up.wait()
            try:
                reader, writer = await asyncio.open_unix_connection(self.address)
                try:
                    await write(writer, [name, self.client, data])
                    found: bytes | None = await read(reader)
                    return found
                finally:
                    writer.close()
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(0)  # killed; `up` is cleared when it is dead


async def write(writer: asyncio.StreamWriter, value: object) -> None:
    data = msgspec.msgpack.encode(value)
    writer.write(len(data).to_bytes(4, "little") + data)
    await writer.drain()


async def read(reader: asyncio.StreamReader) -> Any:
    size = int.from_bytes(await reader.readexactly(4), "little")
    return msgspec.msgpack.decode(await reader.readexactly(size))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(kind: str, count: int) -> Any:
    """Kill this process at an event, or after a commit; return the hook for events."""
    left = count

    def step(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            die()

    if kind == "commit":
        checkpoint = database.checkpoint

        def counted(connection: Any) -> None:
            checkpoint(connection)
            step()

        database.checkpoint = counted  # type: ignore[assignment]
    return step if kind == "event" else lambda event: None


ONE_SHOT = {"n_clients": N, "encoding": PARAMS.encoding, "security": "semi-honest"}


async def main(folder: Path, address: str, kind: str, count: int, mode: str) -> None:
    ledger = CohortLedger(min_difference=3)
    session = Session(
        range(N),
        folder=folder / "session",
        deadlines=60,
        ledger=ledger,
        on_event=[die_at(kind, count)],
    )

    ended: set[int] = set()
    everyone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            name, client, data = await read(reader)
            if name == "next_task":
                task = await session.next_task(client, data)
                await write(writer, task)
                ended.update([client] if task is None else [])
                everyone.set() if len(ended) == N else None
            else:
                try:
                    await session.accept(client, data)
                    await write(writer, None)
                except RemoteProtocolError as error:
                    await write(writer, error.check.encode())
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    Path(address).unlink(missing_ok=True)
    server = await asyncio.start_unix_server(serve, address)
    print("ready", flush=True)
    model = b"first model"
    for number in range(ROUNDS):
        if mode == "one-shot":
            journals = [HelperJournal.open(folder / f"helper {j}") for j in range(HELPERS)]
            name = bind(b"batch %d" % number, model)
            params = one_shot_params(journals, **ONE_SHOT, session=name)
            helpers = [Helper(params, journal) for journal in journals]
            result = await session.one_shot(
                params,
                map(LocalHelper, helpers),
                model,
                endorsements=[helper.endorse() for helper in helpers],
            )
            for journal in journals:
                journal.close()
        else:
            result = await session.round(PARAMS, model)
        model = hashlib.sha256(model + result.sum.tobytes()).digest()
        found = {"number": number, "ids": result.survivors, "sum": result.sum.tolist()}
        print(json.dumps(found), flush=True)
    await session.close()
    await asyncio.wait_for(everyone.wait(), 60)
    server.close()


if __name__ == "__main__":
    where, socket, kind, count, mode = sys.argv[1:]
    asyncio.run(main(Path(where), socket, kind, int(count), mode))
