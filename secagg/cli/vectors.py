"""Vectors of a client, by the numbers of the sums."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from secagg.cli.files import read_vector
from secagg.encoding import Vector
from secagg.errors import LocalProtocolError
from secagg.oneshot import OneShotParams
from secagg.protocol import RoundParams


class Vectors:
    """Vectors of files, the first for sum 0 of a session; the `train` of `take_part`.

    Raises
    ------
    ParameterError
        A file has no vector.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._vectors = [read_vector(path) for path in paths]
        self._sent: set[int] = set()

    def __call__(self, message: bytes, params: RoundParams | OneShotParams) -> Vector:
        """Return the vector of the sum that the server asks for, at most once.

        Raises
        ------
        LocalProtocolError
            No vector is for this sum, or the vector was returned before; the client leaves the
            session.
        """
        count = len(self._vectors)
        number = _number(message, params)
        if number is None and count > 1:
            raise LocalProtocolError(
                f"the server does not number its sums, so the {count} files of --vector have "
                "no order; join with one of them"
            )
        # without numbers there is a single vector
        number = number or 0
        if number >= count:
            known = "sum 0 only" if count == 1 else f"the sums 0 to {count - 1}"
            raise LocalProtocolError(
                f"the server asks for a vector of sum {number}, and --vector has those of "
                f"{known}; end here, or join again with the vectors of all sums from 0 on"
            )
        # a server that began again, or lies, would learn the difference of two cohorts
        if number in self._sent:
            raise LocalProtocolError(
                f"the server asks for sum {number} again, whose vector was sent; join again "
                "if it may get that vector a second time"
            )
        self._sent.add(number)
        return self._vectors[number]


def number_of(number: int) -> bytes:
    """Return the message for one-shot sum `number`; clients read the number from it."""
    return b"sum %d" % number


def _number(message: bytes, params: RoundParams | OneShotParams) -> int | None:
    """Return the number of a sum in the session, or None if the server states no number."""
    if isinstance(params, RoundParams):
        from secagg.session.wire import read_name

        name = read_name(params.session)
        return None if name is None else name.number
    # ten digits at most: a server could send thousands, which int() rejects with ValueError
    found = re.fullmatch(rb"sum (\d{1,10})", message)
    return None if found is None else int(found[1])
