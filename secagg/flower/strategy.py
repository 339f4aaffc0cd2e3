"""Strategy of the four exchanges, and the server's side of the exchanges."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from typing import Literal

from flwr.app import Message
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from secagg import (
    Bounded,
    ClientPolicy,
    FixedPoint,
    Noise,
    Registry,
    RoundParams,
    RoundResult,
    Server,
    privacy,
)
from secagg._check import check_integer, check_kind, check_seconds
from secagg._printable import at_least
from secagg.errors import ParameterError, RemoteProtocolError, TooFewSurvivors, Verdict
from secagg.flower.courier import Courier
from secagg.flower.grid import FEWEST, Prepared
from secagg.flower.suitable import check_unweighted
from secagg.flower.wrapper import SecureStrategy
from secagg.privacy.noised import Noised
from secagg.protocol import Phase
from secagg.protocol.shape import Security
from secagg.protocol.suites import SuiteName, as_suite
from secagg.session import Deadlines
from secagg.session.exchange import Exchange, at_once
from secagg.session.expenses import Expenses
from secagg.session.rounds import Attempt

logger = logging.getLogger("flwr.secagg")


class SecAgg(SecureStrategy):
    """Strategy whose rounds see the mean of the nodes' updates, and no single update.

    ``SecAgg(strategy, clip=1.0, max_weight=10_000).start(grid, arrays)`` takes the place of
    ``strategy.start(grid, arrays)``. Each round is a sum in four exchanges (Bonawitz et al.
    2017) among the nodes that the strategy samples, whose apps have a `SecAggMod`.
    The result is exact but for clipping and rounding: an element of the mean has an error below
    2^−fractional_bits, before the cast to the array's dtype. Integers and Booleans are not
    summed.

    Parameters
    ----------
    strategy : Strategy
        FedAvg, FedProx, FedAvgM, FedAdam, FedYogi or FedAdagrad.
    clip : float, optional
        Largest absolute value of an element of an update, the difference of a node's arrays to
        the global model. Larger elements are clipped and counted: the metrics of a round have
        the number as ``secagg-clipped``. Required, as `max_weight` is, without noise and norm.
    max_weight : int, optional
        W, the largest weight of a node, 1 to 2^53: a number of examples, if the strategy
        weights by ``num-examples``. A larger weight is lowered to W, and counted as a clipped
        element. So 1 makes the mean unweighted. Nodes keep W, the clip, f and the bounds of
        metrics of their first sum, in all runs; see docs/flower.md.
    fractional_bits : int
        f, 0 ≤ f ≤ 52: elements are rounded to multiples of 2^−f. A plan has its own steps.
    noise : Plan or Noise, optional
        Noise of every sum, for differential privacy; see docs/flower.md. A plan of
        `secagg.privacy.plan`, whose budget ends the run, or σ in steps of the encoding. With
        noise or a norm the mean is unweighted, without metrics.
    norm : float, optional
        C, the largest L2 norm of an update; nodes scale longer updates down to C. A plan has
        its own norm. Without noise, sums of such updates are exact but for rounding.
    min_survivors : int, optional
        m, the fewest nodes of a noised sum. A plan has its own m. By default the threshold.
    threshold : int, optional
        t, the number of nodes that must stay for a sum; fewer than t may collude with the
        server. `secagg.RoundParams.suggest` chooses the default and `neighbours`: 70 % of up to
        100 nodes, which all share keys, and more than two thirds if `security` is "active".
    neighbours : int, optional
        k; see `secagg.RoundParams`.
    security : "semi-honest" or "active"
        "active" protects nodes from a server that lies, by signatures and a fifth exchange on
        the complete graph. Each node needs an identity; see docs/flower.md.
    suite : "hybrid" or "x25519", optional
        "hybrid" hides the updates from a later quantum computer, too. None: the default of
        `secagg.RoundParams`.
    registry : Registry, optional
        Public keys of the nodes' identities. Required if `security` is "active", an error
        otherwise.
    metrics : mapping of str to float
        Metrics of training to average securely, with the largest absolute value B of each, > 0.
        The mean has an error below B / clip · 2^−fractional_bits. A metric that is missing at
        some node, or no finite number, is left out of the round with a warning at the server.
        All other metrics of training stay in the nodes.
    evaluate : mapping of str to float
        Metrics of evaluation, likewise. Empty: evaluate messages pass as they are, and nodes
        answer with metrics that they declare public. None: the strategy may not evaluate, so
        the strategy's ``fraction_evaluate`` is 0.
    exclude : iterable of str
        Names of arrays to leave out, such as integer buffers; they keep the server's value.
    averaging : bool
        Accept a strategy of another class, or with functions of its own that aggregate metrics.
        They must depend on the mean of the replies only.
    key_timeout : float
        Seconds for each exchange but that of the training, which has `start`'s ``timeout``. A
        node that does not answer in time drops out.
    poll : float
        Seconds between two looks for replies.
    on_failure : "raise" or "skip"
        With too few nodes, end the run, or go on with the model as it is. If all rounds
        fail so, the result has no arrays.

    Attributes
    ----------
    verdicts : list of Verdict
        Proofs against nodes, of all active sums until now. Write ``verdict.data`` into a file
        for ``secagg judge``.

    Raises
    ------
    ParameterError
        The strategy is not on the list, or an argument is out of range; the message has the
        remedy.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        clip: float | None = None,
        max_weight: int | None = None,
        fractional_bits: int = 16,
        noise: privacy.Plan | Noise | None = None,
        norm: float | None = None,
        min_survivors: int | None = None,
        threshold: int | None = None,
        neighbours: int | None = None,
        security: Security = "semi-honest",
        suite: SuiteName | None = None,
        registry: Registry | None = None,
        metrics: Mapping[str, float] | None = None,
        evaluate: Mapping[str, float] | None = None,
        exclude: Iterable[str] = (),
        averaging: bool = False,
        key_timeout: float = 60.0,
        poll: float = 0.5,
        on_failure: Literal["raise", "skip"] = "raise",
    ) -> None:
        check_seconds(key_timeout=key_timeout, poll=poll)
        for name, value in (("threshold", threshold), ("neighbours", neighbours)):
            if value is not None:
                check_integer(name, value, 2, 1 << 20)
        if threshold is None and neighbours is not None:
            raise ParameterError(
                "neighbours needs a threshold; pass both from secagg.graph.recommend"
            )
        if security not in ("semi-honest", "active"):
            raise ParameterError(
                f"security must be 'semi-honest' or 'active', not {security!r}"
            )
        if suite is not None:
            as_suite(suite)
        if registry is not None:
            check_kind("registry", registry, Registry, "a secagg.Registry")
            if neighbours is not None:
                raise ParameterError(
                    "security 'active' is on the complete graph only; leave neighbours out"
                )
        if (security == "active") != (registry is not None):
            raise ParameterError(
                "security 'active' needs registry=secagg.Registry.from_json(…), and "
                "'semi-honest' has no registry; pass both or none"
            )
        least = max(FEWEST, threshold or 0, (neighbours or 0) + 1)
        encoding: Bounded | FixedPoint
        self._noised: Noised | None = None
        if noise is None and norm is None:
            if clip is None or max_weight is None or min_survivors is not None:
                raise ParameterError(
                    "a sum without noise needs clip=… and max_weight=…, and has no "
                    "min_survivors; pass both, or noise=…"
                )
            encoding = FixedPoint(clip, fractional_bits)
        else:
            check_unweighted(clip, max_weight, metrics, evaluate)
            self._noised = Noised.of(noise, norm, min_survivors, fractional_bits)
            encoding = self._noised.encoding
            least = max(least, self._noised.min_survivors or 0)
        super().__init__(
            strategy,
            encoding=encoding,
            phase=Phase.ADVERTISE_KEYS,
            least=least,
            max_weight=max_weight,
            metrics=metrics,
            evaluate=evaluate,
            exclude=exclude,
            averaging=averaging,
            on_failure=on_failure,
        )
        # over all starts of this strategy
        self._expenses = Expenses(None if self._noised is None else self._noised.budget)
        self._threshold, self._neighbours = threshold, neighbours
        self._security, self._suite, self._registry = security, suite, registry
        self._key_timeout, self._poll = key_timeout, poll
        self.verdicts = list[Verdict]()

    def _check_rounds(self, rounds: int) -> None:
        plan = None if self._noised is None else self._noised.plan
        if plan is not None and rounds > plan.rounds:
            raise ParameterError(
                f"num_rounds is {rounds}, and the noise of the plan is for {plan.rounds}; make "
                f"a plan with rounds={rounds}, or more, since failed sums can count, too"
            )

    def _sum(
        self, grid: Grid, prepared: Prepared, timeout: float
    ) -> tuple[RoundResult, list[Message]]:
        """Return the sum of what the nodes reply to a batch; see `Summing`."""
        own = prepared.own
        params = self._params(len(own), prepared.layout.length, prepared.session)
        attempt = _Attempt(
            place=prepared.place,
            params=params,
            message=b"",
            cohort=list(own),
            registry=self._registry,
            spend=lambda: self._expenses.spend(prepared.place, params),
        )
        self._expenses.check(params)
        logger.info("secagg: a sum of %d nodes, suite %s", len(own), params.suite)
        keys = self._key_timeout
        # an exchange has one pull, also without time for another one
        training = timeout or sys.float_info.min
        deadlines = Deadlines(keys=keys, shares=keys, input=training, unmask=keys)
        courier = Courier(grid, prepared, params, self._registry, self._poll)
        try:
            result = at_once(attempt.run(courier, deadlines))
        except (TooFewSurvivors, RemoteProtocolError) as error:
            self._convict(error.verdicts)
            if isinstance(error, RemoteProtocolError):
                raise
            fewest = "threshold=" if self._noised is None else "min_survivors"
            raise courier.explained(error, fewest) from None
        if (epsilon := self._expenses.epsilon) is not None:
            spent, who = at_least(epsilon), privacy.against(params)
            logger.info("secagg: all sums have spent epsilon %s against %s", spent, who)
        self._convict(result.verdicts)
        return result, courier.errors

    def _convict(self, verdicts: Iterable[Verdict]) -> None:
        """Keep and log the verdicts of a sum; no text in them is of a node."""
        for one in verdicts:
            assert self._registry is not None, "of active sums"  # noqa: S101
            self.verdicts.append(one)
            logger.warning(
                "secagg: %s broke the protocol, verdict %s of %d bytes in the strategy's "
                "verdicts; see secagg judge",
                self._registry.called(one.client),
                one.kind,
                len(one.data),
            )

    def _params(self, clients: int, length: int, session: bytes) -> RoundParams:
        """Return the parameters of a sum; a threshold without neighbours is of all nodes."""
        if self._noised is not None:
            return self._noised.params(
                clients,
                length,
                threshold=self._threshold,
                neighbours=self._neighbours,
                security=self._security,
                suite=self._suite,
                session=session,
            )
        return RoundParams.suggest(
            clients,
            length,
            self._averages.encoding,
            security=self._security,
            suite=self._suite,
            max_weight=self._max_weight,
            neighbours="auto" if self._threshold is None else self._neighbours,
            threshold=self._threshold,
            session=session,
            count_clipped=True,
        )


class _Attempt(Attempt):
    """Attempt that ends if nodes with the default policy would reject the cohort.

    Otherwise each node would reject the cohort in the node's own log.
    """

    def _close(self, server: Server, exchange: Exchange) -> None:
        super()._close(server, exchange)
        params, size = self.params, len(server.outbox)
        needed = ClientPolicy().smallest_cohort(params)
        if server.phase is Phase.SHARE_KEYS and size < needed:
            raise TooFewSurvivors(
                f"{size} of {params.n_clients} nodes sent keys, and on this graph nodes with "
                f"the default policy take part with {needed} or more; for room take a larger "
                f"threshold than {params.threshold}, or more neighbours than "
                f"{params.neighbours}",
                phase=Phase.ADVERTISE_KEYS,
                survivors=size,
                needed=needed,
            )
