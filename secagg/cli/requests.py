"""Message of a sum: number, period and column names, on which all clients of the sum agree.

The message is public, and the server chooses the message, so every field is judged: a period
becomes a part of a file's name, and column names go to terminals and spreadsheets.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from secagg._check import check_integer, check_kind
from secagg._printable import in_short
from secagg.errors import ParameterError, RemoteProtocolError

MOST_BYTES = 1 << 20
"""Largest message of a sum."""
LONGEST_NAME = 200
"""Most characters of a column's name."""
_LABEL = "secagg request 1"
_START = b'{"secagg request '
_PERIOD = re.compile(r"[0-9]{4}[0-9TWQ-]{0,28}")
_FORMULA = ("=", "+", "-", "@")
"""First characters of a spreadsheet's formulas."""


@dataclass(frozen=True)
class Request:
    """Demands of a sum beside the parameters.

    Parameters
    ----------
    period : str
        Label of the period, such as "2026-03", "2026-W07" or "2026-03-01T14"; "" for none.
        The label has digits, T, W, Q and hyphens, and begins with the year.
    columns : tuple of str
        Names of the elements of the vectors, in order; () for none. See `check_columns`.
    number : int, optional
        Number of a one-shot sum in its session, 0 to 2^32 − 1. None: the parameters have the
        number, as in four exchanges.

    Raises
    ------
    ParameterError
        A field is invalid, or the message is longer than 1 MiB.
    """

    period: str = ""
    columns: tuple[str, ...] = ()
    number: int | None = None

    def __post_init__(self) -> None:
        check_kind("period", self.period, str, "a str")
        if self.period and not is_period(self.period):
            raise ParameterError(
                f"period {in_short(self.period)} is no label of a period; take a label such as "
                "2026-03, of digits, T, W, Q and hyphens"
            )
        check_kind("columns", self.columns, tuple, "a tuple of str")
        check_columns(self.columns)
        if self.number is not None:
            check_integer("number", self.number, 0, (1 << 32) - 1)
        if len(self.to_bytes()) > MOST_BYTES:
            raise ParameterError(
                f"the names of {len(self.columns):,} columns take more than {MOST_BYTES:,} "
                "bytes; shorten the names, or sum without names"
            )

    def to_bytes(self) -> bytes:
        """Return the message: b"" if nothing is set, "sum N" for a number alone, else JSON."""
        given = {"columns": list(self.columns), "period": self.period}
        named = {name: value for name, value in given.items() if value}
        number = self.number
        if not named:
            # members of earlier versions read this
            return b"" if number is None else b"sum %d" % number
        document = {_LABEL: named | ({} if number is None else {"number": int(number)})}
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, message: bytes) -> Self:
        """Return the request of a message; the message of another application has none set.

        Raises
        ------
        RemoteProtocolError
            "request": the message is not the bytes of a valid request.
        """
        # ten digits at most: a server could send thousands, which int() rejects with ValueError
        if found := re.fullmatch(rb"sum ([0-9]{1,10})", message):
            return cls._checked(message, {"number": int(found[1])})
        if not message.startswith(_START):
            return cls()
        if len(message) > MOST_BYTES:
            raise _wrong(f"the message has {len(message):,} bytes, above {MOST_BYTES:,}")
        try:
            document = json.loads(message)
        except (ValueError, RecursionError):
            raise _wrong("the message is no JSON") from None
        fields = document.get(_LABEL)
        if not isinstance(fields, dict) or not fields.keys() <= {"period", "columns", "number"}:
            raise _wrong("the message is of another version; install the server's version")
        if isinstance(columns := fields.get("columns"), list):
            fields["columns"] = tuple(columns)
        return cls._checked(message, fields)

    @classmethod
    def _checked(cls, message: bytes, fields: dict[str, Any]) -> Self:
        try:
            made = cls(**fields)
        except ParameterError as error:
            raise _wrong(str(error)) from None
        # a field that is there twice, spaces, or another order
        if made.to_bytes() != message:
            raise _wrong("the message's bytes are not canonical")
        return made


def is_period(label: str) -> bool:
    """Return True for a text that can be the label of a period, and a part of a file's name."""
    return _PERIOD.fullmatch(label) is not None


def check_columns(names: Sequence[object]) -> None:
    """Raise `ParameterError` for names that cannot be the header of a table of sums.

    A name is text that prints, in Unicode's form NFC, of 1 to 200 characters, without spaces at
    either end. No name begins as a spreadsheet's formula, and no name is there twice.
    """
    known = set[str]()
    for number, name in enumerate(names, 1):
        which = f"column {number}"
        if not isinstance(name, str):
            raise ParameterError(f"{which} must be a str, not {type(name).__name__}")
        if not name:
            raise ParameterError(f"{which} has no name; name every column")
        if len(name) > LONGEST_NAME:
            raise ParameterError(
                f"{which} has a name of {len(name):,} characters; take at most {LONGEST_NAME}"
            )
        which += f", {name!r},"
        if not name.isprintable() or name != name.strip():
            raise ParameterError(
                f"{which} has characters that do not print, or spaces at an end; remove them"
            )
        if not unicodedata.is_normalized("NFC", name):
            raise ParameterError(f"{which} is not in Unicode's form NFC; write the name in NFC")
        if name.startswith(_FORMULA):
            raise ParameterError(
                f"{which} begins as a spreadsheet's formula; begin the name with a letter"
            )
        if name in known:
            raise ParameterError(f"{which} is there twice; give each column its own name")
        known.add(name)


def _wrong(why: str) -> RemoteProtocolError:
    return RemoteProtocolError(why, sender=None, phase="message", check="request")
