"""FLARE's federated averaging, with the sum of the updates in the place of the updates."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.workflows.fedavg import FedAvg

from secagg.encoding import flatten
from secagg.errors import ParameterError
from secagg.flare.model import Model, check_finite, summed, write_model
from secagg.protocol import client_id
from secagg.server import RoundResult

_UNAVAILABLE = {
    "aggregator": "only the mean of all sites is known; leave it out",
    "aggregation_weights": "weights are secret; let sites return their number of steps",
    "stop_cond": "no site's metrics are known; leave it out",
    "fedprox_mu": "sites get no metadata; set it in the trainer of the sites",
}


class SumFedAvg(FedAvg):
    """Base of the controllers for servers that get sums only.

    Each round adds the weighted mean of the sites' updates to the model. Loading and saving the
    model, and all other arguments, are the same as in `FedAvg`, without the arguments that read
    a single site's results.

    Parameters
    ----------
    clip : float or None
        Largest absolute value of an element of an update; larger elements are clipped.
    max_weight : int or None
        Largest weight of a site, 1 to 2^53; a weight is the number of steps in a round. None:
        the mean is not weighted.
    fractional_bits : int
        Precision of an update; see `secagg.encoding.FixedPoint`.
    *args, **kwargs
        Arguments of `FedAvg`.

    Raises
    ------
    ParameterError
        An argument reads a single site's results.
    """

    def __init__(
        self,
        *args: Any,
        clip: float | None,
        max_weight: int | None,
        fractional_bits: int,
        **kwargs: Any,
    ) -> None:
        for name, remedy in _UNAVAILABLE.items():
            if kwargs.get(name):
                raise ParameterError(f"{name} is {kwargs[name]!r}, and {remedy}")
        super().__init__(*args, **kwargs)
        self.clip, self.max_weight, self.fractional_bits = clip, max_weight, fractional_bits

    @abstractmethod
    def _configuration(self, task_name: str) -> bytes:
        """Return the digest of the job's configuration that the sites have."""

    @abstractmethod
    def _run_round(
        self, targets: Sequence[str], task_name: str, message: bytes, length: int
    ) -> RoundResult:
        """Return the sum of the updates of some sites."""

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
        assert callback is not None, "FedAvg has one"  # noqa: S101
        arrays = {name: np.asarray(array) for name, array in data.params.items()}
        left_out = self.exclude_vars
        model = Model(
            task=task_name,
            round=self.current_round,
            rounds=self.num_rounds,
            arrays=arrays,
            excluded=tuple(k for k in arrays if left_out and re.search(left_out, k)),
            configuration=self._configuration(task_name),
        )
        vector, schema = flatten(summed(model))
        # here, or the sites would reject the model one by one, each in a log of its own
        check_finite(model)
        result = self._run_round(targets, task_name, write_model(model), vector.size)
        present = {client_id(site) for site in targets} & set(result.survivors)
        missing = [site for site in targets if client_id(site) not in present]
        self.info(f"the sum has {len(present)} of {len(targets)} sites; missing: {missing}")
        self._received_count = len(present) - 1  # FedAvg adds 1
        callback(
            FLModel(
                params_type=ParamsType.DIFF,
                params=schema.unflatten(result.mean),
                current_round=self.current_round,
            )
        )

    def get_num_standing_tasks(self) -> int:
        """Return 0: `send_model` returns after the round, though tasks may stand."""
        return 0
