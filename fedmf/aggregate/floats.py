"""The sum in floating point: what fixed point is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from fedmf import _fast
from fedmf.aggregate.aggregation import Phase, RoundAborted, in_the_sum
from fedmf.aggregate.plain import PlainSum
from fedmf.aggregate.vectors import Aggregate, Vectors
from fedmf.errors import SettingError
from fedmf.settings import Settings

__all__ = ["FloatSum"]


@dataclass(frozen=True)
class FloatSum(Settings):
    """The sum in the clear of float64 as they are: no privacy, no rounding, no clip.

    It leaves out the same users as the other aggregations. Its `Aggregate.integers` are the
    bits of the floats, so that digests still tell whether two sums are the same.
    """

    def sum(
        self, vectors: Vectors, *, dropouts: Mapping[int, Phase], session: bytes = b""
    ) -> Aggregate:
        """Sum tables of floats; see `Aggregation`.

        Raises
        ------
        SettingError
            If there is NaN or infinity in a table, as the other aggregations do.
        """
        survivors = in_the_sum(vectors, dropouts)
        if not survivors:
            raise RoundAborted(f"none of the {len(vectors)} users of the cohort is left")
        total, start = np.zeros(vectors.shape), perf_counter()
        for rows in vectors.blocks(survivors):
            _fast.add_rows(total, rows.indices, rows.values)
        if not np.isfinite(total).all():
            raise SettingError("there is NaN or infinity in the sum; it would be lost with it")
        flat = total.reshape(-1)
        return Aggregate(
            sum=flat,
            integers=flat.view(np.int64),
            survivors=survivors,
            clipped=0,
            client_seconds=perf_counter() - start,
            server_seconds=0.0,
            bytes_up=float(flat.nbytes),
            bytes_down=0.0,
        )

    def count(
        self, vectors: Vectors, *, dropouts: Mapping[int, Phase], session: bytes = b""
    ) -> Aggregate:
        """Add up tables of zeros and ones, as `PlainSum` does."""
        return PlainSum().count(vectors, dropouts=dropouts, session=session)
