"""Server program: ``python -m benches.http_load.server FOLDER``, run again after each kill.

It writes each round's integers and survivors into the folder, and prints events as JSON, a line
each.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from benches.http_load.load import HelperKeys, Load
from secagg import RoundResult
from secagg.errors import LinkError
from secagg.http import HttpHelper, reach_helper, serve
from secagg.oneshot import OneShotParams
from secagg.session import (
    Deadlines,
    Event,
    HelperFailed,
    MessageAccepted,
    MessageRejected,
    PhaseClosed,
    PhaseOpened,
    RoundBegun,
    RoundFailed,
    RoundFinished,
    Session,
)
from secagg.testing import make_identity

_TOLD = (
    HelperFailed,
    MessageAccepted,
    MessageRejected,
    PhaseClosed,
    PhaseOpened,
    RoundBegun,
    RoundFailed,
    RoundFinished,
)
_GATHER = 120.0
_PATIENCE = 3.0
AGGREGATOR = 1 << 40
"""Seed of the aggregator's identity, which is no member's."""
_STATUS = Path("/proc/self/status")


def tell(kind: str, fields: object) -> None:
    """Print an event."""
    os.write(1, msgspec.json.encode([kind, fields]) + b"\n")


def on_event(event: Event) -> None:
    """Print an event of the session that the driver counts."""
    if isinstance(event, _TOLD):
        tell(type(event).__name__, event)


def usage() -> dict[str, float]:
    """Return present and highest memory of this process in bytes, and its processor time."""
    lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
    now, peak = (1024 * int(lines[name].split()[0]) for name in ("VmRSS", "VmHWM"))
    return {"rss": now, "peak": peak, "cpu": time.process_time()}


async def run(load: Load, folder: Path) -> None:
    """Run all rounds; those that an earlier process finished come from the folder."""
    sums = await endorsed(load, folder) if load.helpers else []
    session = Session(
        load.registry,
        name="load",
        folder=folder / "session",
        deadlines=replace(Deadlines.of(load.deadline), gather=_GATHER),
        registry=load.registry if load.kind == "active" else None,
        policy=load.policy,
        on_event=[on_event],
    )
    async with session, serve(session, load.registry, port=load.port):
        tell("Serving", usage())
        for number in range(load.rounds):
            if time.time() > load.until:
                break
            message = load.message(number)
            if load.kind == "round":
                result = await session.round(load.params, message)
            else:
                result = await one_shot(load, session, number, message, sums[number])
            path = folder / f"sum-{number}.npz"
            np.savez(path, integers=result.integers, survivors=result.survivors)
            tell("Sum", {"number": number} | usage())
    tell("Ended", usage())


async def one_shot(
    load: Load, session: Session, number: int, message: bytes, endorsements: list[bytes]
) -> RoundResult:
    """Run a one-shot sum with the helpers that can be reached."""
    params = load.one_shot_params(number)
    async with AsyncExitStack() as stack:
        links = []
        for one in load.helpers:
            with suppress(LinkError):
                links.append(await stack.enter_async_context(reach(one, params)))
        return await session.one_shot(params, links, message, endorsements=endorsements)


async def endorsed(load: Load, folder: Path) -> list[list[bytes]]:
    """Return all helpers' endorsements of each sum, from before any helper died."""
    path = folder / "endorsements"
    if not path.exists():
        found = []
        for number in range(load.rounds):
            async with AsyncExitStack() as stack:
                links = [reach(one, load.one_shot_params(number)) for one in load.helpers]
                reached = [await stack.enter_async_context(link) for link in links]
                found.append([one.endorsement for one in reached])
        path.write_bytes(msgspec.msgpack.encode(found))
    tell("Endorsed", {})
    return msgspec.msgpack.decode(path.read_bytes(), type=list[list[bytes]])


def reach(helper: HelperKeys, params: OneShotParams) -> AbstractAsyncContextManager[HttpHelper]:
    """Return a link to a helper."""
    url = f"http://127.0.0.1:{helper.port}"
    return reach_helper(url, params, identity=make_identity(AGGREGATOR), patience=_PATIENCE)


if __name__ == "__main__":
    where = Path(sys.argv[1])
    asyncio.run(run(Load.read(where), where))
