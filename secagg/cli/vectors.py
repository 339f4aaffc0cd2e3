"""Vectors of a client, by the numbers or the periods of the sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from pathlib import Path

import numpy as np

from secagg.cli.inputs import PERIOD, Given, newest, of_period, read_given
from secagg.cli.notices import NO_VECTOR, tell
from secagg.cli.requests import Request
from secagg.encoding import Bounded, Integers, Vector
from secagg.errors import LocalProtocolError, ParameterError, RemoteProtocolError
from secagg.oneshot import OneShotParams
from secagg.protocol import RoundParams

_SAME = 1 + 2.0**-40
"""Vectors that were scaled to the norm before are not reported, as by `Bounded`."""


class Vectors:
    """Vectors of files, the first for sum 0 of a session; the `train` of `take_part`.

    A single path with "{period}" stands for a file of each period. The newest such file is
    judged at once, and each file again when its period is due. The client declines a sum
    without a valid file, and stays for the next sum.

    Parameters
    ----------
    paths : sequence of Path
    integers : bool
        True: the sums are of integers. False: the sums are of floats.
    tell : callable
        Function that prints why the client declines a sum.

    Raises
    ------
    ParameterError
        A file has no vector of such numbers, or there are several paths with a period.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        integers: bool = False,
        tell: Callable[[str], None] = tell,
    ) -> None:
        self._integers, self._told = integers, ""
        # the names of options and the log are of this context, not of the thread that trains
        self._context, self._tell = copy_context(), tell
        self._pattern = next((path for path in paths if PERIOD in str(path)), None)
        self._given = list[Given]()
        self._sent = set[int | str]()
        if self._pattern is None:
            self._given = [read_given(path, integers=integers) for path in paths]
            return
        if len(paths) > 1:
            raise ParameterError(
                f"--vector {self._pattern} stands for the files of all periods; give it alone"
            )
        if found := newest(self._pattern):
            read_given(found, integers=integers)
        else:
            tell(
                f"there is no file of --vector {self._pattern} yet; write the file of each "
                "period before the server asks for the sum of the period"
            )

    def __call__(self, message: bytes, params: RoundParams | OneShotParams) -> Vector:
        """Return the vector of the sum that the server asks for, at most once.

        Raises
        ------
        LocalProtocolError
            No vector is for this sum, or the vector was returned before; the client leaves the
            session.
        RemoteProtocolError
            The period has no valid file; the client declines this sum.
        """
        request = Request.from_bytes(message)
        if self._pattern is not None:
            return self._of_period(self._pattern, request, params)
        number, given = self._numbered(request, params)
        # a server that began again, or lies, would learn the difference of two cohorts
        if number in self._sent:
            raise LocalProtocolError(
                f"the server asks for sum {number} again, whose vector was sent; join again "
                "if it may get that vector a second time"
            )
        self._sent.add(number)
        self._warn(given, params)
        return given.vector

    def _numbered(
        self, request: Request, params: RoundParams | OneShotParams
    ) -> tuple[int, Given]:
        """Return the number of a sum, and the vector for this number."""
        count, number = len(self._given), _number(request, params)
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
        try:
            check_given(self._given[number], request, params, integers=self._integers)
        except ParameterError as error:
            raise LocalProtocolError(str(error)) from None
        return number, self._given[number]

    def _of_period(
        self, pattern: Path, request: Request, params: RoundParams | OneShotParams
    ) -> Vector:
        """Return the vector of a period's file, at most once."""
        period = request.period
        if not period:
            raise LocalProtocolError(
                f"the server names no period, and --vector {pattern} needs the period; join "
                "with the file itself, or ask the server's operator for --every"
            )
        try:
            if period in self._sent:
                raise ParameterError(
                    "the vector was sent before; join again if the server may get that vector "
                    "a second time"
                )
            given = read_given(of_period(pattern, period), integers=self._integers)
            check_given(given, request, params, integers=self._integers)
        except ParameterError as error:
            why = f"no vector for the sum of {period}: {error}"
        else:
            self._sent.add(period)
            self._warn(given, params)
            return given.vector
        # the next attempt at the sum asks again
        if why != self._told:
            self._told = why
            self._context.run(self._tell, why)
        raise RemoteProtocolError(why, sender=None, phase=NO_VECTOR, check="file")

    def _warn(self, given: Given, params: RoundParams | OneShotParams) -> None:
        """Print that a vector is scaled down, or that zeros go out in place of integers.

        The client answers all the same: a server that chose the limit could bisect the numbers.
        """
        if isinstance(params.encoding, Bounded):
            norm = params.encoding.norm
            if np.linalg.norm(given.vector) > norm * _SAME:
                text = (
                    f"{given.path}: this vector is scaled down to the server's --norm, {norm:g}"
                )
                self._context.run(self._tell, text)
            return
        if not isinstance(params.encoding, Integers):
            return
        largest = params.encoding.max
        if (above := np.asarray(given.vector, np.int64) > largest).any():
            place = int(above.argmax())
            name = (
                f"number {place + 1}" if given.columns is None else repr(given.columns[place])
            )
            self._context.run(
                self._tell,
                f"{given.path}: {name} is above the server's --clip, {largest:,}, so this "
                "client sends zeros; correct the file, or tell the server's operator",
            )


def check_given(
    given: Given, request: Request, params: RoundParams | OneShotParams, *, integers: bool
) -> None:
    """Raise `ParameterError` if a file is not for a sum; each reason is public."""
    summed = isinstance(params.encoding, Integers)
    if summed != integers:
        what, remedy = ("integers", "with") if summed else ("floats", "without")
        raise ParameterError(f"the server sums {what}; join {remedy} --integers")
    if given.columns is not None and not request.columns:
        raise ParameterError(
            f"the server names no columns, which {given.path} has; ask the server's "
            "operator for --columns, or write the vector in numpy's format"
        )
    if given.columns is not None and given.columns != request.columns:
        raise ParameterError(f"{given.path} {_difference(given.columns, request.columns)}")
    if given.vector.size != params.length:
        raise ParameterError(
            f"{given.path} has {given.vector.size:,} numbers, and the server sums vectors "
            f"of {params.length:,}; write so many numbers, or correct the server's command"
        )


def _difference(given: Sequence[str], wanted: Sequence[str]) -> str:
    """Return the first difference of two headers, in words, with the remedy."""
    pairs = zip(given, wanted, strict=False)
    place = next((i for i, (one, other) in enumerate(pairs) if one != other), None)
    if place is None:
        text = f"has {len(given):,} columns, and the server sums {len(wanted):,}"
    else:
        text = f"has {given[place]!r} as column {place + 1}, and the server {wanted[place]!r}"
    return f"{text}; write the server's columns, in the same order"


def number_of(number: int) -> bytes:
    """Return the message for one-shot sum `number`; clients read the number from it."""
    return Request(number=number).to_bytes()


def _number(request: Request, params: RoundParams | OneShotParams) -> int | None:
    """Return the number of a sum in the session, or None if the server states no number."""
    if isinstance(params, RoundParams):
        from secagg.session.wire import read_name

        name = read_name(params.session)
        return None if name is None else name.number
    return request.number
