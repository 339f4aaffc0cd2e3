"""Sums in the clear, in fixed and in floating point, to compare private sums with."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

import secagg
from fedmf import _fast
from fedmf.aggregate.aggregation import (
    Dropouts,
    Encoding,
    IntegerSum,
    RoundAborted,
    in_the_sum,
    modulus_bits,
)
from fedmf.aggregate.vectors import Aggregate, Vectors
from fedmf.errors import SettingError
from fedmf.settings import Settings


@dataclass(frozen=True, kw_only=True)
class PlainSum(IntegerSum):
    """Sum in the clear: no privacy, but the same integers as the private sums.

    `Aggregate.bytes_up` counts the encoded vectors alone. A round is aborted only if no user is
    left. Raises SettingError if `clip` or `fractional_bits` is out of range.

    Parameters
    ----------
    clip, fractional_bits : see `IntegerSum`
    """

    def _add(
        self, vectors: Vectors, dropouts: Dropouts, session: bytes, encoding: Encoding
    ) -> Aggregate:
        survivors = _survivors(vectors, dropouts)
        fixed = encoding if isinstance(encoding, secagg.FixedPoint) else None
        total = np.zeros(vectors.shape, dtype=np.int64)
        clipped, server_seconds, start = 0, 0.0, perf_counter()
        for rows in vectors.blocks(survivors):
            vector = rows.values.reshape(-1)
            integers, beyond = (
                fixed.encode_integers(vector) if fixed else (vector.astype(np.int64), 0)
            )
            clipped += beyond
            arrived = perf_counter()
            _fast.add_rows(total, rows.indices, integers.reshape(rows.values.shape))
            server_seconds += perf_counter() - arrived
        client_seconds = perf_counter() - start - server_seconds
        flat = total.reshape(-1)
        return Aggregate(
            sum=fixed.decode_integers(flat) if fixed else flat.astype(np.float64),
            integers=flat,
            survivors=survivors,
            clipped=clipped,
            client_seconds=client_seconds,
            server_seconds=server_seconds,
            bytes_up=flat.size * modulus_bits(len(vectors), encoding) / 8,
        )


@dataclass(frozen=True)
class FloatSum(Settings):
    """Sum in the clear of unencoded float64 numbers: no privacy, no rounding, no clip.

    The same users are left out as in the other aggregations. `Aggregate.integers` are the bits
    of the floats, read as int64, so that equal sums have equal digests.
    """

    def sum(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes = b"") -> Aggregate:
        """Sum tables of floats, see `Aggregation`; raises SettingError for NaN or infinity."""
        survivors = _survivors(vectors, dropouts)
        total, start = np.zeros(vectors.shape), perf_counter()
        for rows in vectors.blocks(survivors):
            _fast.add_rows(total, rows.indices, rows.values)
        if not np.isfinite(total).all():
            raise SettingError("the sum has NaN or infinity: check the gradients of the model")
        flat = total.reshape(-1)
        return Aggregate(
            sum=flat,
            integers=flat.view(np.int64),
            survivors=survivors,
            clipped=0,
            client_seconds=perf_counter() - start,
            bytes_up=float(flat.nbytes),
        )

    def count(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes = b"") -> Aggregate:
        """Add up tables of zeros and ones, as `PlainSum` does."""
        return PlainSum().count(vectors, dropouts=dropouts, session=session)


def _survivors(vectors: Vectors, dropouts: Dropouts) -> tuple[int, ...]:
    survivors = in_the_sum(vectors, dropouts)
    if not survivors:
        raise RoundAborted(f"all {len(vectors)} users of the cohort have dropped out")
    return survivors
