"""Warnings of a session and of the encoding, as lines on the terminal of a command."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from secagg._warned import warnings_in_one_line
from secagg.cli.console import with_options
from secagg.errors import ClippingWarning, PrecisionWarning

_LOGS = ("secagg.session", "secagg.http")


@contextmanager
def notices() -> Iterator[Notices]:
    """Print faults of clients, attempts and helpers while the block runs."""
    handler = Notices(logging.WARNING)
    logs = [logging.getLogger(name) for name in _LOGS]
    for log in logs:
        log.addHandler(handler)
    with warnings.catch_warnings(), warnings_in_one_line("secagg", with_options):
        # by default Python shows the same warning of two sums only once
        warnings.simplefilter("always", ClippingWarning)
        warnings.simplefilter("always", PrecisionWarning)
        try:
            yield handler
        finally:
            for log in logs:
                log.removeHandler(handler)


class Notices(logging.Handler):
    """Handler of the records that the server and the members of a session log.

    Attributes
    ----------
    hint : str
        Likely reason why this command's client was last left out of a sum, or "".
    """

    hint = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record as one line, except a final failure: the command prints that error."""
        known = vars(record)
        phase, check = known.get("phase"), known.get("check")
        why = f"{phase}, {check}" if check else f"{phase}, too few clients"
        match known.get("event"):
            case "RoundFailed":
                # the command prints the error of the last attempt
                if known["final"]:
                    return
                if not check and known["needed"]:
                    why += f": {known['survivors']}, and {known['needed']} are needed"
                text = f"sum {known['number']} failed ({why}); trying again"
                if known["left_out"]:
                    text += f" without {', '.join(f'client {u}' for u in known['left_out'])}"
            case "MessageRejected":
                text = f"a message of client {known['client']} was rejected ({why})"
                if check == "repeated":
                    text += "; likely its identity is joined by another process"
            case "HelperFailed":
                text = f"going on without helper {known['helper']} ({why})"
            # a member logs without an event
            case None if "client" in known:
                self.hint = known.get("hint") or self.hint
                text = f"client {known['client']} left this sum ({why}){known.get('hint', '')}"
            case _:
                text = record.getMessage()
        typer.echo(f"secagg: {with_options(text)}", err=True)
