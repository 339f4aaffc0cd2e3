"""Controller of the server: FLARE's federated averaging over secure rounds.

The controller drives a `secagg.session.Session`. FLARE's task brings every site into the
session once, and FLARE's auxiliary messages then carry the session's own tasks and answers. One
task of FLARE for each exchange would be the alternative. This alternative would need names of
attempts, acknowledgements, deadlines and the presence of sites once more, with slower polls.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import SystemRandom
from typing import Any

from nvflare.apis.controller_spec import Task
from nvflare.apis.shareable import Shareable

from secagg.encoding import FixedPoint
from secagg.errors import BudgetSpent, RemoteProtocolError, TooFewSurvivors, Verdict
from secagg.flare import names
from secagg.flare.averaging import SumFedAvg
from secagg.flare.link import SiteDesk
from secagg.flare.noise import JobNoise
from secagg.flare.tasks import configuration, enrol
from secagg.flare.verdicts import REGISTRY, keep_verdict
from secagg.privacy import against
from secagg.protocol import Registry, RoundParams
from secagg.protocol.shape import Security
from secagg.protocol.suites import SuiteName
from secagg.server import RoundResult
from secagg.session import Deadlines, Session

_LEAVE = 10.0
"""Seconds that sites have to learn of the end of a job; FLARE ends the other sites."""


class SecAggFedAvg(SumFedAvg):
    """FLARE's `FedAvg` over secure sums: the server sees no site's weights.

    Each round adds the weighted mean of the sites' updates to the model. Sites run
    `SecAggExecutor`. Loading and saving the model, and all other arguments, are the same as in
    `FedAvg`, without the arguments that read a single site's results.

    Parameters
    ----------
    clip : float, optional
        Largest absolute value of an element of an update; larger elements are clipped. Required
        without noise and norm.
    max_weight : int, optional
        Largest weight of a site, 1 to 2^53; a weight is the number of steps in a round. None:
        the mean is not weighted.
    fractional_bits : int
        Precision of an update; see `secagg.encoding.FixedPoint`.
    noise : dict, optional
        Noise of every sum for differential privacy, which the sites add. Either "epsilon" and
        "delta", the budget of all rounds, with "rounds", the number of sums: by default
        `num_rounds`. Or "sigma", σ in steps of the encoding. Both with "min_survivors", the
        fewest sites of a sum, and "colluders"; see `secagg.privacy.plan` and `secagg.Noise`.
        The mean has no weights.
    norm : float, optional
        C, the largest L2 norm of an update; sites scale longer updates down to C. Required with
        noise, in place of `clip`.
    threshold : int, optional
        Number of sites that a round needs to the end; by default the threshold of
        `secagg.RoundParams.suggest`, 70 % of up to 100 sites.
    security : "semi-honest" or "active"
        See `secagg.RoundParams`. "active" takes sites with FLARE's certificates.
    suite : "hybrid" or "x25519", optional
        "hybrid" hides the updates from a later quantum computer, too. None: the default of
        `secagg.RoundParams`.
    train_timeout : float
        Seconds for the training of a round, > 0. Later sites are not in the sum.
    exchange_timeout : float
        Seconds for each other exchange, and for the sites to come, > 0.
    attempts : int
        Largest number of attempts at a round.
    *args, **kwargs
        Arguments of `FedAvg`, such as `num_clients`, `num_rounds` and `exclude_vars`.

    Raises
    ------
    ParameterError
        An argument is invalid, or reads a single site's results.
    """

    def __init__(
        self,
        *args: Any,  # FLARE's job API asks the base class if there are args and kwargs
        clip: float | None = None,
        max_weight: int | None = None,
        fractional_bits: int = 16,
        noise: dict[str, float] | None = None,
        norm: float | None = None,
        threshold: int | None = None,
        security: Security = "semi-honest",
        suite: SuiteName | None = None,
        train_timeout: float = 600.0,
        exchange_timeout: float = 60.0,
        attempts: int = 3,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            *args, clip=clip, max_weight=max_weight, fractional_bits=fractional_bits, **kwargs
        )
        self.threshold, self.security, self.suite = threshold, security, suite
        self.attempts = attempts
        self.train_timeout, self.exchange_timeout = train_timeout, exchange_timeout
        self.noise, self.norm = noise, norm
        numbers = self.num_clients, self.num_rounds, fractional_bits
        self._noise = JobNoise.of(noise, norm, clip, max_weight, *numbers)
        # validates the arguments here, before the job begins
        self._params(self.num_clients, 1)
        self._deadlines = replace(Deadlines.of(exchange_timeout), input=train_timeout)
        self._desk: SiteDesk | None = None
        self._registry: Registry | None = None
        self._agreed = b""

    def run(self) -> None:
        """Run the job; called by FLARE."""
        sites = [client.name for client in self.engine.get_clients()]
        self._agreed = configuration(self, sites, self.exchange_timeout)
        more: dict[str, object] = {}
        registry = None
        if self.security == "active":
            roster, signatures = enrol(self, sites, self.exchange_timeout)
            sites, more = list(signatures), {names.SIGNATURES: signatures}
            registry = roster.registry(signatures, None)
        self._registry = registry
        make = partial(
            Session,
            sites,
            name=f"flare {self.fl_ctx.get_job_id()}",
            deadlines=self._deadlines,
            attempts=self.attempts,
            registry=registry,
            budget=None if self._noise is None else self._noise.budget,
        )
        desk = self._desk = SiteDesk(sites, make)
        try:
            # before the tasks: a site sends requests as soon as the task brings a token
            self.engine.register_aux_message_handler(desk.topic, desk.handle)
            for site, token in desk.tokens.items():
                data = {names.STEP: names.TAKE_PART, names.TOPIC: desk.topic} | more
                task = Task(names.TASK, Shareable(data | {names.TOKEN: token}))
                self.send(task, self.fl_ctx, targets=[site])
            super().run()
        finally:
            desk.close()
            ends = time.monotonic() + _LEAVE
            while self.communicator.get_num_standing_tasks() and time.monotonic() < ends:
                time.sleep(self._task_check_period)

    def _convict(self, verdicts: Iterable[Verdict]) -> None:
        """Log the verdicts of a round, and write them into the folder of the job."""
        for one in verdicts:
            assert self._registry is not None, "of active rounds"  # noqa: S101
            folder = Path(self.get_run_dir())
            path = keep_verdict(folder, self.current_round, one, self._registry)
            self.warning(
                f"{self._registry.called(one.client)} broke the protocol, verdict {one.kind}: "
                f"secagg judge {path} --registry {folder / REGISTRY}"
            )

    def _configuration(self, task_name: str) -> bytes:
        return self._agreed

    def _run_round(
        self, targets: Sequence[str], task_name: str, message: bytes, length: int
    ) -> RoundResult:
        assert self._desk is not None, "run makes it"  # noqa: S101
        params = self._params(len(targets), length)
        self.info(f"a sum of {len(targets)} sites, suite {params.suite}")
        if params.noise is not None:
            self.info(f"this sum has noise against {against(params)}")
        work = self._desk.session.round(params, message, cohort=list(targets))
        try:
            result = self._desk.run(work, self.abort_signal)
        except (BudgetSpent, TooFewSurvivors, RemoteProtocolError) as error:
            self._convict(error.verdicts)
            raise
        self._convict(result.verdicts)
        return result

    def sample_clients(self, num_clients: int | None = None) -> list[str]:
        """Return `num_clients` random sites of the session, or all sites if there are fewer."""
        sites = [] if self._desk is None else sorted(self._desk.tokens)
        return SystemRandom().sample(sites, min(num_clients or len(sites), len(sites)))

    def _params(self, sites: int, length: int) -> RoundParams:
        if self._noise is not None:
            return self._noise.of_length(length).params(
                sites,
                length,
                threshold=self.threshold,
                neighbours=None,
                security=self.security,
                suite=self.suite,
                session=b"flare",
            )
        assert self.clip is not None, "checked"  # noqa: S101
        return RoundParams.suggest(
            sites,
            length,
            FixedPoint(clip=self.clip, fractional_bits=self.fractional_bits),
            security=self.security,
            suite=self.suite,
            max_weight=self.max_weight,
            # a given threshold counts among all sites, on the complete graph
            neighbours="auto" if self.threshold is None else None,
            threshold=self.threshold,
            session=b"flare",
        )
