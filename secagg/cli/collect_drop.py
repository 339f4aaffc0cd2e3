"""Command ``secagg collect drop``: the end of a batch without a sum."""

from __future__ import annotations

from typing import Annotated

import typer

from secagg.cli import collecting
from secagg.cli import console as options
from secagg.cli.collecting import DATABASE

EXAMPLES = options.examples(f"secagg collect drop {DATABASE} 7")


def drop(
    database: collecting.Where,
    batch: Annotated[int, typer.Argument(metavar="BATCH", help="Number of the batch.")],
    as_json: options.Json = False,
) -> None:
    """End a batch without a sum, and delete its reports.

    For an open batch that gets too few reports, a batch whose reports the helpers reject, and a
    list that helpers refuse after the database was restored. The session opens no next batch
    in place of an open batch. The clients of the batch are in no other batch of the session.
    """
    with options.command(), collecting.opened(database) as opened:
        from secagg.collect.close import drop as end

        end(opened, batch)
        document = {"batch": batch, "outcome": "dropped"}
        collecting.echo(document, f"batch {batch} is dropped", json=as_json)
