"""Sums by the protocols of secagg: by secret sharing, and by one message from each user.

With secret sharing each user is a client of the protocol. With one message from each user,
helpers open the sum of the users' masks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

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
from secagg.protocol.suites import SuiteName
from secagg.simulate import temporary_journals


@dataclass(frozen=True, kw_only=True)
class SecAggSum(IntegerSum):
    """Sum by secure aggregation, each user a client of the protocol: only the sum is revealed.

    All sums of an object are rounds of the same session, so sums after the first are faster.

    Parameters
    ----------
    neighbours
        Number of users that exchange keys and shares with each user: an even number (Bell et
        al. 2020), or None for all users (Bonawitz et al. 2017). "auto" means all users in
        cohorts up to 100. In larger cohorts `secagg.graph.recommend` finds the number.
    threshold
        Number of shares that reconstruct a user's secret, out of the n or neighbours + 1 that
        were handed out. None: 70 %, or the number that `secagg.graph.recommend` finds with
        "auto". A higher threshold withstands more colluding users, a lower threshold more
        dropouts. Without neighbours the threshold must be more than half of n. With neighbours
        the threshold must suit a cohort with a fifth of the users colluding and a tenth
        dropping out (`secagg.ClientPolicy`).
    suite
        "hybrid" hides the vectors from a later quantum computer, too; "x25519" has smaller
        messages. None: the default of `secagg.RoundParams`.
    progress
        Function of the name of the phase, the number of finished clients and of all clients.
    clip, fractional_bits : see `IntegerSum`

    Raises
    ------
    SettingError
        If a value is out of range. Limits that depend on the cohort are checked by the sum.
    """

    neighbours: int | Literal["auto"] | None = "auto"
    threshold: int | None = None
    suite: SuiteName | None = None
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
        return secagg.RoundParams.suggest(
            n_clients,
            length,
            encoding,
            neighbours=self.neighbours,
            threshold=self.threshold,
            session=session,
            suite=self.suite,
        )

    @cached_property
    def _session(self) -> secagg.SimulatedSession:
        return secagg.SimulatedSession()

    def _add(
        self, vectors: Vectors, dropouts: Dropouts, session: bytes, encoding: Encoding
    ) -> Aggregate:
        params = self.params(len(vectors), math.prod(vectors.shape), encoding, session)
        try:
            # no warning: the Aggregate counts clipped values, and a training has many rounds
            with losses_ignored():
                result = secagg.simulate_round(
                    vectors.dense(),
                    params,
                    dropouts=dropouts,
                    session=self._session,
                    progress=self.progress,
                )
        except secagg.TooFewSurvivors as error:
            raise RoundAborted(str(error)) from error
        except secagg.RemoteProtocolError as error:
            if error.check != "size":
                raise
            raise RoundAborted(str(error)) from error  # the users reject so small a cohort
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

    def _params(
        self,
        journals: Sequence[HelperJournal],
        n_clients: int,
        length: int,
        encoding: Encoding,
        session: bytes,
    ) -> OneShotParams:
        return OneShotParams.suggest(
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

    def _add(
        self, vectors: Vectors, dropouts: Dropouts, session: bytes, encoding: Encoding
    ) -> Aggregate:
        reporting = in_the_sum(vectors, dropouts)
        n_clients = max(FEWEST, len(vectors))  # a smaller cohort is aborted
        try:
            # no warning: the Aggregate counts clipped values, and a training has many rounds
            with temporary_journals(self.helpers, "x25519") as journals, losses_ignored():
                length = math.prod(vectors.shape)
                params = self._params(journals, n_clients, length, encoding, session)
                result = secagg.simulate_one_shot(
                    vectors.dense(),
                    params,
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
