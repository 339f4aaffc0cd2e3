"""Command ``secagg collect close``: the batches of a collection, led to their sums."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secagg._files import replace_file
from secagg.cli import addresses, collecting, sums
from secagg.cli import console as options
from secagg.cli.collecting import DATABASE, KEYS
from secagg.cli.files import read_registry
from secagg.cli.notices import notices, tell
from secagg.cli.summands import content_of
from secagg.errors import TooFewSurvivors
from secagg.protocol import Registry

if TYPE_CHECKING:
    from secagg.collect import Closer, Database, Worker

EXAMPLES = options.examples(
    f"secagg collect close {DATABASE} --registry clients.json {KEYS} --out sums",
    f"secagg collect close {DATABASE} --registry clients.json {KEYS} --out sums --reopen",
)


def close(
    database: collecting.Where,
    helpers: collecting.Helpers,
    identity: collecting.Key,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the sums.")],
    registry: collecting.Clients = None,
    reopen: Annotated[
        bool, options.flag("--reopen", "Open the next batch of the session at once.")
    ] = False,
    authority: addresses.Authority = None,
    allow_plain_http: addresses.PlainHttp = False,
    as_json: options.Json = False,
) -> None:
    """Close the newest open batch, and write the sum.

    If an earlier process left closed batches, their sums are written, and no batch is closed.
    So the same command can be repeated after any failure. This process works on slices, too.
    """
    with options.command(), collecting.opened(database) as opened:
        aggregator = collecting.aggregator_of(helpers, identity, authority, allow_plain_http)
        known = None if registry is None else read_registry(registry)
        sums.prepare(out, 0, None)
        with notices():
            found = asyncio.run(_close(opened, aggregator, known, out, reopen=reopen))
        lines = "\n".join(f"{one['out']}: sum of {one['survivors']} vectors" for one in found)
        collecting.echo({"sums": found}, lines or "no batch is open or closing", json=as_json)


async def _close(
    database: Database,
    aggregator: sums.Aggregator,
    registry: Registry | None,
    out: Path,
    *,
    reopen: bool,
) -> list[options.Document]:
    """Lead closed batches to their sums; return the files of the sums.

    The newest open batch is closed if there is no other sum to write. So a command that is
    repeated after a crash does not close the next batch.
    """
    from secagg.collect import Closer, State, Worker, batches
    from secagg.session.exchange import Thread

    asking, thread = collecting.asking_of(aggregator), Thread()
    closer = Closer(database, asking, registry, thread)
    worker = Worker(database, asking, registry, thread=thread)
    found, failed = list[options.Document](), list[TooFewSurvivors]()

    async def write(numbers: Iterable[int]) -> None:
        for number in numbers:
            try:
                found.append(await _sum(number, closer, worker, out))
            except TooFewSurvivors as error:
                # after rejections; this batch must not keep the others from their sums
                failed.append(error)

    with database.transaction() as tx:
        under_way = [one.number for one in batches.in_states(tx, *list(State)[1:-1])]
    await write(under_way)
    if not found:
        with database.transaction() as tx:
            opened = [one.number for one in batches.in_states(tx, State.OPEN)[-1:]]
            closed = [one for one in opened if batches.close(tx, one, reopen=reopen)]
        await write(closed)
    thread.close()
    if failed and not found:
        raise failed[0]
    for error in failed:
        tell(f"{error}")
    return found


async def _sum(number: int, closer: Closer, worker: Worker, out: Path) -> options.Document:
    """Lead a closed batch to its sum, write the sum, and drop the reports."""
    from secagg.collect import State
    from secagg.collect.close import result

    # done: another process came first
    while (state := await closer.state(number)) not in (State.OPENED, State.DONE):
        # slices that other workers lease may come back
        if state == State.CLOSING and not await worker.step():
            await asyncio.sleep(collecting.PAUSE)
        await closer.step(number)
    done = result(closer.database, number)
    assert done is not None  # noqa: S101 - the batch is opened
    # before the reports are dropped: an operator whose disk is full can repeat all
    path = out / f"sum-{number}.npy"
    replace_file(path, content_of(done.sum, ()))
    await closer.step(number)
    return {"out": str(path), "survivors": len(done.survivors)}
