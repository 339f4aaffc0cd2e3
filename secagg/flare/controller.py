"""Controller of the server: FLARE's federated averaging over secure rounds.

The controller drives a `secagg.session.Session`. FLARE's task brings every site into the
session once, and FLARE's auxiliary messages then carry the session's own tasks and answers. One
task of FLARE for each exchange would be the alternative. It would need names of attempts,
acknowledgements, deadlines and the presence of sites once more, and it polls more slowly.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from secrets import SystemRandom
from typing import Any

import numpy as np
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.workflows.fedavg import FedAvg

from secagg.encoding import flatten
from secagg.errors import ParameterError
from secagg.flare import names
from secagg.flare.desk import Desk
from secagg.flare.model import Model, summed, write_model
from secagg.flare.settings import round_params
from secagg.flare.tasks import enrol, task
from secagg.protocol import RoundParams, client_id
from secagg.protocol.params import Security
from secagg.session import Deadlines

__all__ = ["SecAggFedAvg"]

_UNAVAILABLE = {
    "aggregator": "only the mean of all sites is known; leave it out",
    "aggregation_weights": "weights are secret; let sites return their number of steps",
    "stop_cond": "no site's metrics are known; leave it out",
    "fedprox_mu": "sites get no metadata; set it in the trainer of the sites",
}
_LEAVE = 10.0
"""Seconds that sites have at the end of a job to learn of it; FLARE ends the others."""


class SecAggFedAvg(FedAvg):
    """FLARE's `FedAvg` over secure sums: the server sees no site's weights.

    Each round adds the weighted mean of the sites' updates to the model. Sites run
    `SecAggExecutor`. Loading and saving the model, and all other arguments, are those of
    `FedAvg`, but for those that read a single site's results.

    Parameters
    ----------
    clip : float
        Largest absolute value of an element of an update; larger ones are clipped.
    max_weight : int, optional
        Largest weight of a site, its number of steps in a round, 1 to 2^53. None: the mean is
        not weighted.
    fractional_bits : int
        Precision of an update; see `secagg.encoding.FixedPoint`.
    threshold : int, optional
        Number of sites that a round needs to its end; by default the smallest above two thirds.
    security : "semi-honest" or "active"
        See `secagg.RoundParams`. "active" takes sites with FLARE's certificates.
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
        clip: float,
        max_weight: int | None = None,
        fractional_bits: int = 16,
        threshold: int | None = None,
        security: Security = "semi-honest",
        train_timeout: float = 600.0,
        exchange_timeout: float = 60.0,
        attempts: int = 3,
        **kwargs: Any,
    ) -> None:
        for name, remedy in _UNAVAILABLE.items():
            if kwargs.get(name):
                raise ParameterError(f"{name} is {kwargs[name]!r}, and {remedy}")
        super().__init__(*args, **kwargs)
        self.clip, self.max_weight, self.fractional_bits = clip, max_weight, fractional_bits
        self.threshold, self.security, self.attempts = threshold, security, attempts
        self.train_timeout, self.exchange_timeout = train_timeout, exchange_timeout
        self._params(self.num_clients, 1)  # validates the arguments before the job begins
        self._deadlines = replace(Deadlines.of(exchange_timeout), input=train_timeout)
        self._desk: Desk | None = None

    def run(self) -> None:
        """Run the job; FLARE calls it."""
        sites = [client.name for client in self.engine.get_clients()]
        roster, signatures = None, None
        if self.security == "active":
            roster, signatures = enrol(self, sites, self.exchange_timeout)
        desk = self._desk = Desk(
            sites if signatures is None else signatures,
            name=f"flare {self.fl_ctx.get_job_id()}",
            deadlines=self._deadlines,
            attempts=self.attempts,
            registry=None if roster is None else roster.registry(signatures, None),
        )
        try:
            self.engine.register_aux_message_handler(desk.topic, desk.handle)
            for site, token in desk.tokens.items():
                data: dict[str, object] = {names.TOPIC: desk.topic, names.TOKEN: token}
                if signatures is not None:
                    data[names.SIGNATURES] = signatures
                self.send(task(names.TAKE_PART, data), self.fl_ctx, targets=[site])
            super().run()
        finally:
            desk.close()
            ends = time.monotonic() + _LEAVE
            while super().get_num_standing_tasks() and time.monotonic() < ends:
                time.sleep(self._task_check_period)

    def send_model(
        self,
        task_name: str = "train",
        data: Any = None,
        targets: Any = None,
        min_responses: int | None = None,
        timeout: int = 0,
        callback: Callable[[Any], object] | None = None,
    ) -> None:
        """Run a round with `targets`, and pass the mean of their updates to `callback`."""
        assert self._desk is not None, "run makes it"  # noqa: S101
        assert callback is not None, "FedAvg has one"  # noqa: S101
        arrays = {name: np.asarray(array) for name, array in data.params.items()}
        left_out = re.compile(self.exclude_vars) if self.exclude_vars else None
        model = Model(
            task=task_name,
            round=self.current_round,
            rounds=self.num_rounds,
            arrays=arrays,
            excluded=tuple(k for k in arrays if left_out is not None and left_out.search(k)),
        )
        vector, schema = flatten(summed(model))
        params = self._params(len(targets), vector.size)
        work = self._desk.session.round(params, write_model(model), cohort=list(targets))
        result = self._desk.run(work, self.abort_signal)
        present = {client_id(site) for site in targets} & set(result.survivors)
        missing = [site for site in targets if client_id(site) not in present]
        self.info(f"the sum has {len(present)} of {len(targets)} sites; missing: {missing}")
        self._received_count = len(present) - 1  # FedAvg counts one more
        callback(
            FLModel(
                params_type=ParamsType.DIFF,
                params=schema.unflatten(result.mean),
                current_round=self.current_round,
            )
        )

    def sample_clients(self, num_clients: int | None = None) -> list[str]:
        """Return `num_clients` random sites of the session, or all if it has fewer."""
        sites = [] if self._desk is None else sorted(self._desk.tokens)
        return SystemRandom().sample(sites, min(num_clients or len(sites), len(sites)))

    def get_num_standing_tasks(self) -> int:
        """Return 0: `send_model` returns after the round, and the sites' one task stands."""
        return 0

    def _params(self, sites: int, length: int) -> RoundParams:
        return round_params(
            sites,
            length,
            clip=self.clip,
            fractional_bits=self.fractional_bits,
            max_weight=self.max_weight,
            threshold=self.threshold,
            security=self.security,
        )
