"""Vectors that a server adds: the names and the kind of their elements, and the sum's file."""

from __future__ import annotations

import io
from typing import Annotated

import numpy as np
import typer

from secagg._check import check_integer
from secagg.cli.console import counted, flag
from secagg.cli.tables import as_columns, as_table
from secagg.encoding import Bounded, FixedPoint, Integers, Vector
from secagg.errors import ParameterError
from secagg.privacy import Plan

Length = Annotated[
    int | None,
    typer.Option(
        help="Number of elements of a vector, d.", show_default="number of the columns"
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES|FILE",
        help="Names of the elements, with commas, or a CSV file with the names in its first "
        "line. Members' CSV files must have these names. The sum is a CSV file, too.",
        show_default="no names; the sum is in numpy's format",
    ),
]
Whole = Annotated[
    bool,
    flag(
        "--integers",
        "Add whole numbers from 0 to --clip, such as counts; members give --integers, too.",
    ),
]


def named(columns: str | None, length: int | None) -> tuple[tuple[str, ...], int]:
    """Return the names of the elements, or (), and the number of elements."""
    names = () if columns is None else as_columns(columns)
    if length is None and not names:
        raise ParameterError("--length is missing; give the length, or the names as --columns")
    if length is not None and names and length != len(names):
        raise ParameterError(
            f"--columns has {counted(len(names), 'name')}, and --length is {length:,}; leave "
            "out one of them"
        )
    return names, len(names) if length is None else length


def encoding_of(
    clip: float | None, plan: Plan | None = None, *, integers: bool
) -> FixedPoint | Integers | Bounded:
    """Return the encoding of floats within a clip or a norm, or of integers up to a clip."""
    if plan is not None:
        for name in ["--integers"] * integers + ["--clip"] * (clip is not None):
            raise ParameterError(
                f"{name} is of sums without --epsilon, and --norm bounds the vectors of a sum "
                "with noise of the clients; leave out one of them"
            )
        return plan.encoding
    if clip is None:
        raise ParameterError(
            "--clip is missing; give the largest absolute value of an element, or --epsilon "
            "and --norm for sums with noise of the clients"
        )
    if not integers:
        return FixedPoint(clip)
    if not clip.is_integer():
        raise ParameterError(
            f"--clip {clip:g} is no whole number; with --integers give the largest count that "
            "a vector can have"
        )
    check_integer("clip", int(clip), 1, 1 << 62)
    return Integers(int(clip))


def suffix(columns: tuple[str, ...]) -> str:
    """Return the end of the name of a sum's file."""
    return ".csv" if columns else ".npy"


def content_of(total: Vector, columns: tuple[str, ...]) -> bytes:
    """Return a sum as the content of a file: CSV with a header, or numpy's format."""
    if columns:
        return as_table(columns, total).encode()
    content = io.BytesIO()
    np.save(content, total)
    return content.getvalue()
