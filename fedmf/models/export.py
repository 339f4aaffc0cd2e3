"""Export of factors for other programs: ``.npz``, Parquet, and the layout of ``implicit``.

A plain product of the exported rows is the prediction on the public scale (low, high). With
w = (high − low) / 4, the prediction is w (q · p) + low − w. So P is multiplied by w, and a last
column has low − w in P and 1 in Q.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedmf.data.internal import to_public
from fedmf.errors import ModelError, SettingError, optional
from fedmf.models.recommender import Floats, Stored
from fedmf.settings import check

Format = Literal["npz", "parquet", "implicit"]
"""Formats of exported factors."""

SUFFIXES = {"npz": (".npz",), "implicit": (".npz",), "parquet": (".parquet", ".pq")}
# formats without export
OTHERS = (".csv", ".feather", ".json", ".npy", ".tsv", ".txt", ".xlsx")


class Exportable(Stored):
    """Trained model of factors P, shape (n_users, k), and Q, shape (n_items, k)."""

    user_factors: Floats
    item_factors: Floats


def public_factors(factors: Exportable) -> tuple[Floats, Floats]:
    """Return P and Q with products that are predictions on the public scale; see the module."""
    p, q = factors.user_factors, factors.item_factors
    if factors.scale is None:
        return p, q
    shift, one = to_public(np.array([0.0, 1.0]), factors.scale).tolist()
    width = one - shift
    if (shift, width) == (0.0, 1.0):
        return p, q
    return (
        np.column_stack((width * p, np.full(len(p), shift))),
        np.column_stack((q, np.ones(len(q)))),
    )


def export(factors: Exportable, path: str | os.PathLike[str], form: Format) -> Path:
    """Write factors and ids to a file, and return the path; see `public_factors`.

    Parameters
    ----------
    factors : trained factors
    path
        File to write; a missing ``.npz`` is appended, as by numpy. A name of another format,
        such as b.csv, is an error.
    form
        ``"npz"``: arrays user_factors, item_factors, user_ids and item_ids, without pickle.
        ``"parquet"``: the columns side ("user" or "item"), id as text, and factors as a list.
        ``"implicit"``: an npz that ``load`` of the factor models of the package implicit reads,
        in float32. A second file ``.ids.npz`` has user_ids and item_ids, in the order of the
        rows.

    Raises
    ------
    SettingError
        If the format is unknown, or the name of the file suits another format.
    ModelError
        If the file cannot be written.
    MissingExtra
        If the format is Parquet and pyarrow is not installed.
    """
    check(Format, form=form)
    p, q = public_factors(factors)
    ids = {
        name: np.array(one.tolist()) if one.dtype.kind == "T" else one  # numpy reads no other
        for name, one in (("user_ids", factors.user_ids), ("item_ids", factors.item_ids))
    }
    target = Path(path)
    others = {*OTHERS, *(one for of in SUFFIXES.values() for one in of)} - {*SUFFIXES[form]}
    if (suffix := target.suffix.lower()) in others:
        fitting = next((name for name, of in SUFFIXES.items() if suffix in of), None)
        remedy = "" if fitting is None else f", or choose the format {fitting!r}"
        raise SettingError(
            f"the format {form!r} cannot be written to {target.name}: let the name of the file "
            f"end in {SUFFIXES[form][0]}{remedy}"
        )
    if form != "parquet" and target.suffix != ".npz":
        target = target.with_name(f"{target.name}.npz")
    try:
        if form == "parquet":
            target.write_bytes(_parquet(factors, p, q))
        elif form == "npz":
            target.write_bytes(_npz({"user_factors": p, "item_factors": q, **ids}))
        else:
            small = {"user_factors": p.astype(np.float32), "item_factors": q.astype(np.float32)}
            target.write_bytes(_npz(small))
            target.with_suffix(".ids.npz").write_bytes(_npz(ids))
    except OSError as error:
        if target.is_file():  # a part of the factors; not a device
            target.unlink()
        raise ModelError(f"the factors cannot be written to {target}: {error}") from error
    return target


def _npz(arrays: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _parquet(factors: Exportable, p: Floats, q: Floats) -> bytes:
    pyarrow = optional("pyarrow", "Parquet files need")
    parquet = optional("pyarrow.parquet", "Parquet files need")
    sides = ["user"] * len(p) + ["item"] * len(q)
    names = [str(one) for ids in (factors.user_ids, factors.item_ids) for one in ids.tolist()]
    columns = {"side": sides, "id": names, "factors": [*p.tolist(), *q.tolist()]}
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()
