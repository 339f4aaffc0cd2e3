"""Warnings of a session and of the encoding, as lines on the terminal of a command."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from secagg._warned import warnings_in_one_line
from secagg.cli.console import called, with_options
from secagg.errors import ClippingWarning, PrecisionWarning

_LOGS = ("secagg.session", "secagg.http")


@contextmanager
def notices(*, study: bool = False) -> Iterator[Notices]:
    """Print faults of clients, attempts and helpers while the block runs; see `Notices`."""
    handler = Notices(study=study)
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


def tell(text: str) -> None:
    """Print a line of this command on standard error."""
    typer.echo(f"secagg: {with_options(text)}", err=True)


class Notices(logging.Handler):
    """Handler of the records that the server and the members of a session log.

    Parameters
    ----------
    study : bool
        True: the clients are sites, and their sums are the steps of a study.

    Attributes
    ----------
    hint : str
        Likely reason why this command's client was last left out of a sum, or "".
    """

    hint = ""

    def __init__(self, *, study: bool) -> None:
        super().__init__(logging.WARNING)
        self._study = study

    def _party(self, client: int) -> str:
        return f"site {called(client)}" if self._study else f"client {client}"

    def _sum(self, number: int) -> str:
        return f"step {number + 1}" if self._study else f"sum {number}"

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record as one line, except a final failure: the command prints that error."""
        known = vars(record)
        phase, check = known.get("phase"), known.get("check")
        parties = "sites" if self._study else "clients"
        why = f"{phase}, {check or f'too few {parties}'}"
        match known.get("event"):
            case "RoundFailed":
                # the command prints the error of the last attempt
                if known["final"]:
                    return
                if not check and known["needed"]:
                    why += f": {known['survivors']}, and {known['needed']} are needed"
                text = f"{self._sum(known['number'])} failed ({why}); trying again"
                if known["left_out"]:
                    text += f" without {', '.join(map(self._party, known['left_out']))}"
            case "MessageRejected":
                text = f"a message of {self._party(known['client'])} was rejected ({why})"
                if check == "repeated":
                    text += "; likely its identity is joined by another process"
            case "HelperFailed":
                text = f"going on without helper {known['helper']} ({why})"
            # a member logs without an event
            case None if "client" in known:
                hint = known.get("hint", "")
                if self._study:
                    hint = hint.replace("client", "site")
                self.hint = hint or self.hint
                left = self._sum(known["number"]) if self._study else "this sum"
                text = f"{self._party(known['client'])} left {left} ({why}){hint}"
            case _:
                text = record.getMessage()
        tell(text)
