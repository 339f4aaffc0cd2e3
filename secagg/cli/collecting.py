"""Arguments that the commands ``secagg collect`` share, and the database behind them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secagg.cli import console as options
from secagg.cli.sums import Aggregator
from secagg.kit.table import as_json as to_json
from secagg.oneshot import OneShotParams
from secagg.session.events import Hooks

if TYPE_CHECKING:
    from secagg.collect import Asking, Database
    from secagg.session import HelperLink

PAUSE = 1.0
"""Seconds between two looks at a database without work."""
DATABASE = "postgresql://collector@db.example/sums"
KEYS = "--helpers helpers.json --identity a.pem"
"""Database and keys in the examples of the commands."""

Where = Annotated[
    str,
    typer.Argument(
        metavar="DATABASE", help="URL of PostgreSQL, or path of a file for a single machine."
    ),
]
Clients = Annotated[
    Path | None,
    options.file_option("Registry of all clients, if security is active.", "--registry"),
]
Helpers = Annotated[
    Path,
    options.file_option(
        'JSON array of helpers: "url", and what secagg helper keygen --json prints.',
        "--helpers",
    ),
]
Lease = Annotated[
    float,
    typer.Option(
        help="Seconds after which another process repeats the slice of a process that died; "
        "more than helpers take for the reports that a process reads at once, and the same for "
        "all processes: a lease of more than twice the time is taken as one of a wrong clock."
    ),
]
Key = Annotated[Path, options.file_option("Private key of the aggregator.", "--identity")]


def aggregator_of(
    helpers: Path, identity: Path, authority: Path | None, plain: bool
) -> Aggregator:
    """Return the helpers of a collection, and the identity in requests to the helpers."""
    found = Aggregator.of(helpers, identity, authority, plain=plain)
    assert found is not None  # noqa: S101 - both files were given
    return found


def asking_of(aggregator: Aggregator, hooks: Hooks | None = None) -> Asking:
    """Return the way to ask the helpers that answer."""
    from secagg.collect import Asking

    @asynccontextmanager
    async def reach(params: OneShotParams) -> AsyncIterator[list[HelperLink]]:
        async with aggregator.reach(params, needed=False) as links:
            yield list(links)

    return Asking(reach, hooks=hooks or Hooks(()))


async def until_signal(work: Coroutine[None, None, None]) -> bool:
    """Run a coroutine; return False if SIGINT or SIGTERM cancelled the coroutine."""
    loop, task, came = asyncio.get_running_loop(), asyncio.ensure_future(work), list[bool]()

    def cancel() -> None:
        came.append(True)
        task.cancel()

    signals = signal.SIGINT, signal.SIGTERM
    # not on Windows, where Ctrl-C is an error as elsewhere
    with suppress(NotImplementedError):
        for number in signals:
            loop.add_signal_handler(number, cancel)
    try:
        await task
    except asyncio.CancelledError:
        if not came:
            raise
    finally:
        with suppress(NotImplementedError):
            for number in signals:
                loop.remove_signal_handler(number)
    return not came


@contextmanager
def opened(where: str, *, new: bool = False) -> Iterator[Database]:
    """Yield a database, and close its connections; see `open_database`."""
    # late, since all other commands work without the extras
    from secagg.collect import open_database

    database = open_database(where, new=new)
    try:
        yield database
    finally:
        database.close()


def echo(document: options.Document, text: str, *, json: bool) -> None:
    """Print the result of a command, as JSON or as text."""
    typer.echo(to_json(document) if json else text)
