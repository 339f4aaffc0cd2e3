"""Sum by one message from each user; helpers open the sum of the users' masks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

import secagg
from fedmf.aggregate.aggregation import (
    Dropouts,
    Encoding,
    IntegerSum,
    Progress,
    RoundAborted,
    in_the_sum,
)
from fedmf.aggregate.vectors import Aggregate, Vectors
from fedmf.errors import SettingError
from fedmf.settings import Range
from secagg.encoding.clipping import losses_ignored
from secagg.oneshot import HelperJournal, OneShotParams
from secagg.oneshot.params import MAX_HELPERS, MAX_SEEDS
from secagg.protocol.suggestion import fewest_hiding
from secagg.simulate import temporary_journals

FEWEST_HELPERS = 2  # that open: a single helper could read every vector
FEWEST = 3  # users in a sum: of two, each could subtract their own vector


@dataclass(frozen=True, kw_only=True)
class OneShotSum(IntegerSum):
    """Sum by one message from each user, opened by helpers, with the integers of `PlainSum`.

    The same users are left out as in the other aggregations. A round is aborted if fewer than
    three users are left, or fewer than two honest users if a fifth of all collude. Security is
    "semi-honest", as in `SecAggSum`; see `secagg.oneshot`.

    Parameters
    ----------
    helpers
        Number of helpers, 2 to 16; every round has new helpers.
    threshold
        Number of helpers that open a sum together: 2 ≤ threshold ≤ helpers. *`threshold`
        helpers who collude with the server read every user's vector.*
    progress
        Function of the name of the phase, the number of finished clients and of all clients.
    clip, fractional_bits : see `IntegerSum`

    Raises
    ------
    SettingError
        If a value is out of range, or if C(helpers, threshold − 1), the number of seeds of a
        user, is more than 256.
    """

    helpers: Annotated[int, Range(int, FEWEST_HELPERS, MAX_HELPERS)] = 3
    threshold: Annotated[int, Range(int, FEWEST_HELPERS, MAX_HELPERS)] = 2
    progress: Progress | None = None

    def _check(self) -> None:
        super()._check()
        if self.threshold > self.helpers:
            raise SettingError(
                f"threshold = {self.threshold} must be at most helpers = {self.helpers}"
            )
        seeds = math.comb(self.helpers, self.threshold - 1)
        if seeds > MAX_SEEDS:
            raise SettingError(
                f"helpers = {self.helpers} with threshold = {self.threshold} needs {seeds} "
                f"seeds of each user, more than {MAX_SEEDS}; take fewer helpers"
            )

    def _add(
        self, vectors: Vectors, dropouts: Dropouts, session: bytes, encoding: Encoding
    ) -> Aggregate:
        reporting = in_the_sum(vectors, dropouts)
        length = math.prod(vectors.shape)
        try:
            # no warning: the Aggregate counts clipped values, and a training has many rounds
            with (
                temporary_journals(self.helpers, "x25519") as journals,
                losses_ignored(),
            ):
                result = secagg.simulate_one_shot(
                    vectors.dense(),
                    self._params(journals, len(vectors), length, encoding, session),
                    journals,
                    absent=vectors.keys() - set(reporting),
                    progress=self.progress,
                )
        except secagg.TooFewSurvivors as error:
            raise RoundAborted(str(error)) from error
        return Aggregate(
            sum=np.asarray(result.sum, dtype=np.float64),
            integers=result.integers,
            survivors=result.survivors,
            clipped=result.clipped,
            client_seconds=result.client_seconds,
            server_seconds=result.server_seconds,
            bytes_up=result.report_bytes * len(reporting) / len(vectors),
            key_holder_seconds=sum(result.helper_seconds.values()),
        )

    def _params(
        self,
        journals: list[HelperJournal],
        n_clients: int,
        length: int,
        encoding: Encoding,
        session: bytes,
    ) -> OneShotParams:
        n_clients = max(FEWEST, n_clients)  # a smaller cohort is aborted
        found = OneShotParams.suggest(
            n_clients,
            length,
            encoding,
            helpers=[journal.public for journal in journals],
            security="semi-honest",
            threshold=self.threshold,
            # fewer than the suggested 70 %, which simulated dropouts would often miss: reports
            # need no answers of other users, so two honest users in each sum are enough
            min_clients=fewest_hiding(n_clients),
            session=session,
        )
        return replace(found, modulus_bits=None)  # 32 bits need no packing
