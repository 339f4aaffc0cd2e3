"""Members in a process of their own: ``python -m benches.http_load.members FOLDER INDEX``.

They take part until the session ends, and print what they counted as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

from benches.http_load.faults import DroppedOut, FaultyLink, Twice
from benches.http_load.load import ENCODING, SPENT, Fault, Load, draws
from secagg import RoundParams
from secagg.bench.cases import F64
from secagg.errors import LinkError, ParameterError
from secagg.http import HttpLink
from secagg.http.connection import Connection
from secagg.oneshot import OneShotParams
from secagg.session import take_part
from secagg.session.training import Train
from secagg.session.wire import REPORT, Task
from secagg.testing import make_identity

_PATIENCE = 120.0
_PAUSE = 1.0
"""Largest number of seconds after which a member that dropped out comes back."""


class Process:
    """Members of a process."""

    def __init__(self, load: Load, index: int) -> None:
        self.load = load
        self.tally: Counter[str] = Counter()
        self._ids = range(index, load.clients, load.processes)
        self._rng = draws(load.seed, "process", index)
        self._latest, self._ended = -1, False
        self._faulty: set[tuple[int, int]] = set()
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Take part until the session ends."""
        await asyncio.gather(*(self._member(u) for u in self._ids))

    async def _member(self, u: int) -> None:
        while not self._ended:
            try:
                completed = await self._join(u)
                self.tally["completed"] += completed
                self._note(ended=True)
            except DroppedOut as gone:
                self.tally[f"fault {gone.fault.kind}"] += 1
                if gone.fault.silent:
                    await self._round_after(gone.number)
                else:
                    await asyncio.sleep(self._rng.random() * _PAUSE)
            except ParameterError:
                self.tally["policy failed"] += 1  # too few have turned up
            except LinkError as error:
                # the transport sent garbage, which the server cannot know to be its doing
                self.tally[f"refused {error.check}"] += 1
                if error.check == "patience":
                    return

    async def _join(self, u: int) -> int:
        load, identity = self.load, make_identity(u)
        connection = Connection(
            load.url, u, identity, tls=None, allow_plain_http=False, patience=_PATIENCE
        )
        transport = Twice(connection._http._transport, self._rng, self.tally)
        connection._http._transport = transport
        async with connection:
            fault_of = partial(self._fault, u)
            link = FaultyLink(HttpLink(connection), transport, self._rng, self.tally, fault_of)
            active = load.kind == "active"
            return await take_part(
                link,
                u,
                self._train(u),
                policy=load.policy,
                identity=identity if active else None,
                registry=load.registry if active else None,
                one_shot_policy=load.one_shot_policy,
                encoding=ENCODING,
            )

    def _train(self, u: int) -> Train:
        def train(message: bytes, _: RoundParams | OneShotParams) -> F64:
            return self.load.vector(int(message), u)

        return train

    def _fault(self, u: int, task: Task) -> Fault | None:
        """Return the fault of a member in an attempt; it happens once.

        A member that reported, or may have, reports no second time, as its vault would see to.
        """
        self._note(task.number)
        if (task.number, u) in self._faulty:
            return SPENT if task.step == REPORT else None
        if task.attempt:
            return None
        fault = self.load.fault(task.number, u)
        if fault is not None and fault.step == task.step:
            self._faulty.add((task.number, u))
        return fault

    def _note(self, number: int = -1, *, ended: bool = False) -> None:
        if number > self._latest or ended:
            self._latest, self._ended = max(self._latest, number), self._ended or ended
            self._news.set()
            self._news = asyncio.Event()

    async def _round_after(self, number: int) -> None:
        """Wait until another member of this process has seen a later round, or the end."""
        while self._latest <= number and not self._ended:
            await self._news.wait()


def main(folder: Path, index: int) -> None:
    """Run the members of a process."""
    logging.disable()  # thousands of attempts are left, as they should be
    process = Process(Load.read(folder), index)
    print("ready", flush=True)
    asyncio.run(process.run())
    print(json.dumps(process.tally | {"cpu": time.process_time()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
