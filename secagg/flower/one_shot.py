"""Strategy of one-shot sums: one exchange with the nodes, then the helpers open the sum."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Literal

from flwr.app import Message
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from secagg import FixedPoint, Noise, Registry, RoundResult, TooFewSurvivors
from secagg._check import check_integer, check_kind, check_seconds
from secagg.errors import ParameterError
from secagg.flower.courier import Courier
from secagg.flower.grid import FEWEST, Prepared
from secagg.flower.helpers import Reachable, all_reachable, endorsed, reached
from secagg.flower.suitable import check_unweighted
from secagg.flower.wrapper import SecureStrategy
from secagg.oneshot import OneShotParams
from secagg.protocol.identities import check_registry
from secagg.session.batch import Batch
from secagg.session.exchange import at_once
from secagg.session.wire import REPORT


class OneShot(SecureStrategy):
    """Strategy that sees the mean of the nodes' updates, after one exchange in each round.

    ``OneShot(strategy, helpers=helpers, clip=1.0, max_weight=9_999).start(grid, arrays)`` takes
    the place of ``strategy.start(grid, arrays)``. The apps of the nodes have a `OneShotMod`,
    and each node's own configuration names the trusted helpers. A node sends one message in a
    round and keeps no state. The server with t − 1 of the helpers learns no more than the sum.
    See `secagg.oneshot` for the protection, and `SecAgg` for the error of the mean.

    Parameters
    ----------
    strategy : Strategy
        FedAvg, FedProx, FedAvgM, FedAdam, FedYogi or FedAdagrad.
    helpers : iterable of RemoteHelper
        All helpers. A helper that is down when a round begins is not in the round.
    clip : float
        Largest absolute value of an element of an update, the difference of a node's arrays to
        the global model. Larger elements are clipped. ``secagg-clipped-nodes`` in the metrics
        of a round is a part of the weight: of nodes that clipped an element, or lowered the
        weight.
    max_weight : int, optional
        See `SecAgg`. Required without noise.
    fractional_bits, metrics, evaluate, exclude, averaging
        See `SecAgg`.
    noise : Noise, optional
        Noise of every sum in steps of 2^−f, which each helper adds. The mean is then
        unweighted, without metrics. `secagg.privacy.Loss` and `secagg.privacy.epsilon` say what
        a sum spends: all elements count as large as the clip.
    threshold : int
        t, 2 to the number of helpers: any t helpers open the sum.
    min_clients : int, optional
        Smallest number of nodes in a sum that is opened. By default 70 % of the nodes in the
        round, and at least 3.
    registry : Registry, optional
        Public keys of the nodes' identities, which all helpers have, too. With a registry the
        sums are "active": the server may lie about who takes part.
    helper_timeout : float
        Seconds for each step of the helpers. A helper that answers too late is left out.
    poll : float
        Seconds between two looks for replies.
    on_failure : "raise" or "skip"
        With too few nodes or helpers, end the run, or go on with an unchanged model. If all
        rounds fail so, the result has no arrays.

    Raises
    ------
    ParameterError
        The strategy is not on the list, or an argument is out of range; the message has the
        remedy.
    MissingExtra
        The installed cryptography lacks the suite of the helpers' keys.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        helpers: Iterable[Reachable],
        clip: float,
        max_weight: int | None = None,
        fractional_bits: int = 16,
        noise: Noise | None = None,
        threshold: int = 2,
        min_clients: int | None = None,
        registry: Registry | None = None,
        metrics: Mapping[str, float] | None = None,
        evaluate: Mapping[str, float] | None = None,
        exclude: Iterable[str] = (),
        averaging: bool = False,
        helper_timeout: float = 60.0,
        poll: float = 0.5,
        on_failure: Literal["raise", "skip"] = "raise",
    ) -> None:
        check_seconds(helper_timeout=helper_timeout, poll=poll)
        if min_clients is not None:
            check_integer("min_clients", min_clients, 2, 1 << 20)
        if noise is not None:
            wanted = "a secagg.Noise; a plan is for SecAgg, whose nodes add the noise"
            check_kind("noise", noise, Noise, wanted)
            check_unweighted(None, max_weight, metrics, evaluate)
        elif max_weight is None:
            raise ParameterError("a sum without noise is weighted; pass max_weight=…")
        self._helpers = all_reachable(helpers)
        check_integer("threshold", threshold, 2, len(self._helpers))
        super().__init__(
            strategy,
            encoding=FixedPoint(clip, fractional_bits),
            phase=REPORT,
            least=min_clients or FEWEST,
            max_weight=max_weight,
            metrics=metrics,
            evaluate=evaluate,
            exclude=exclude,
            averaging=averaging,
            on_failure=on_failure,
        )
        self._threshold, self._min_clients, self._noise = threshold, min_clients, noise
        self._registry, self._helper_timeout, self._poll = registry, helper_timeout, poll
        # keys and threshold are known now; a round finds out the rest
        params = self._params(max(min_clients or 0, 3), 1, b"flower", self._helpers)
        check_registry(params, registry)

    def _sum(
        self, grid: Grid, prepared: Prepared, timeout: float
    ) -> tuple[RoundResult, list[Message]]:
        """Return the sum of the nodes' reports for a batch; see `Summing`."""
        own, place, seconds = prepared.own, prepared.place, self._helper_timeout

        def params_of(helpers: Sequence[Reachable]) -> OneShotParams:
            return self._params(len(own), prepared.layout.length, prepared.session, helpers)

        agreed = asyncio.run(
            endorsed(self._helpers, params_of, self._threshold, seconds, place)
        )
        # the parameters end with this call, so that no list of clients has to outlive the
        # process
        reports = Batch(
            number=0,
            params=agreed.params,
            message=b"",
            endorsements=agreed.endorsements,
            registry=self._registry,
        )

        async def opened() -> RoundResult:
            async with AsyncExitStack() as stack:
                helpers = reached(agreed.params, agreed.helpers, place, stack)
                return await reports.finish(helpers, seconds)

        courier = Courier(grid, prepared, agreed.params, self._registry, self._poll)
        try:
            reports.open()
            at_once(reports.collect(place, own, courier, timeout))
            return asyncio.run(opened()), courier.errors
        except TooFewSurvivors as error:
            raise courier.explained(error, "min_clients=") from None

    def _params(
        self, clients: int, length: int, session: bytes, helpers: Sequence[Reachable]
    ) -> OneShotParams:
        """Return the parameters of a sum with these helpers."""
        return OneShotParams.suggest(
            clients,
            length,
            self._averages.encoding,
            helpers=[helper.public for helper in helpers],
            security="semi-honest" if self._registry is None else "active",
            max_weight=self._max_weight,
            threshold=self._threshold,
            min_clients=self._min_clients,
            session=session,
            noise=self._noise,
        )
