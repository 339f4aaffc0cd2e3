"""Sum by secret sharing; each user is a client of the protocol."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

import secagg
from fedmf.aggregate.aggregation import (
    Dropouts,
    Encoding,
    IntegerSum,
    Progress,
    RoundAborted,
    modulus_bits,
)
from fedmf.aggregate.vectors import Aggregate, Vectors
from fedmf.errors import SettingError

__all__ = ["SecAggSum"]

COMPLETE_UP_TO = 100  # clients: up to here the complete graph is cheap
NEIGHBOURS = 60


@dataclass(frozen=True, kw_only=True)
class SecAggSum(IntegerSum):
    """Sum by secure aggregation, each user a client of the protocol: only the sum is revealed.

    Parameters
    ----------
    neighbours
        Number of others with whom each user exchanges keys and shares: an even number (Bell et
        al. 2020), None for all of them (Bonawitz et al. 2017), or "auto" for all of them in
        cohorts up to 100 and 60 in larger ones.
    threshold
        Number of the n (or neighbours + 1) holders of a user's shares that reconstruct them;
        None for two thirds, rounded up. A higher one withstands more colluding users, a lower
        one more dropouts. Of n it must be more than half; of neighbours, enough for one user in
        twenty to collude and one to drop out (`secagg.ClientPolicy`).
    progress : function of the current phase, the clients done with it and all clients
    clip, fractional_bits
        See `IntegerSum`.

    Raises
    ------
    SettingError
        If a value is out of range; settings that depend on the cohort are checked at the sum.
    """

    neighbours: int | Literal["auto"] | None = "auto"
    threshold: int | None = None
    progress: Progress | None = None

    def _check(self) -> None:
        super()._check()
        if isinstance(self.neighbours, str) and self.neighbours != "auto":
            raise SettingError(
                f"neighbours = {self.neighbours!r} must be an even number, None for all, or "
                "'auto'"
            )

    def params(
        self, n_clients: int, length: int, encoding: Encoding, session: bytes
    ) -> secagg.RoundParams:
        """Return the parameters of a round of `n_clients` users; raises SettingError."""
        neighbours = self.neighbours
        if neighbours == "auto":
            neighbours = None if n_clients <= COMPLETE_UP_TO else NEIGHBOURS
        holders = n_clients if neighbours is None else neighbours + 1
        threshold = self.threshold
        if threshold is None:
            threshold = math.ceil(2 * holders / 3)
        return secagg.RoundParams(
            n_clients=n_clients,
            threshold=threshold,
            length=length,
            encoding=encoding,
            modulus_bits=modulus_bits(n_clients, encoding),
            neighbours=neighbours,
            session=session,
        )

    def _add(
        self, vectors: Vectors, dropouts: Dropouts, session: bytes, encoding: Encoding
    ) -> Aggregate:
        params = self.params(len(vectors), math.prod(vectors.shape), encoding, session)
        try:
            result = secagg.simulate_round(
                vectors.dense(), params, dropouts=dropouts, progress=self.progress
            )
        except secagg.TooFewSurvivors as error:
            raise RoundAborted(str(error)) from error
        n_clients = len(vectors)
        return Aggregate(
            sum=np.asarray(result.sum, dtype=np.float64),
            integers=result.integers,
            survivors=tuple(sorted(result.survivors)),
            clipped=result.clipped,
            client_seconds=result.client_seconds,
            server_seconds=result.server_seconds,
            bytes_up=sum(result.bytes_up.values()) / n_clients,
            bytes_down=sum(result.bytes_down.values()) / n_clients,
        )
