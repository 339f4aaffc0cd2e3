"""Secure statistics on NVIDIA FLARE: each step of a plan is a round of the secure averaging.

The controller sends the study's message as an array that no sum has. The sites return whole
numbers below 2^32, whose mean times their number is the exact sum. In a job of FLARE::

    job.to_server(StudyController("/srv/plan.toml", "/srv/result.json", num_clients=5))
    site = StudySite("/srv/plan.toml", "/srv/table.csv", "/srv/table.ledger")
    job.to(SecAggExecutor(site), "site-1", tasks=["secagg"])

Sites agree on the plan outside of FLARE: `StudySite` reads the site's own file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from nvflare.apis.executor import Executor
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

from secagg.flare import SecAggFedAvg
from secagg.statistics import Ledger, Plan, Result, Site, Study

MOST_STEPS = 100


class StudySite(Executor):
    """Executor of a site, for `SecAggExecutor`, that answers the steps of the site's plan.

    Parameters
    ----------
    plan, table, ledger : str
        Files of the site: the plan, the table, and the ledger of the table.
    """

    def __init__(self, plan: str, table: str, ledger: str) -> None:
        super().__init__()
        self.plan, self.table, self.ledger = plan, table, ledger

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: Any, abort_signal: Any
    ) -> Shareable:
        """Return the vector of the next step."""
        arrays = FLModelUtils.from_shareable(shareable).params
        site = Site(self.table, Plan.read(self.plan), ledger=Ledger(self.ledger))
        vector = site(arrays["study"].tobytes()).astype(np.float64)
        sums = {"sums": vector, "study": np.zeros_like(arrays["study"])}
        return FLModelUtils.to_shareable(FLModel(params=sums, params_type=ParamsType.DIFF))


class StudyController(SecAggFedAvg):
    """Controller that opens the sum of each step, and writes the result as JSON.

    Parameters
    ----------
    plan, result : str
        Files of the server.
    num_clients : int
        Number of sites, all of which must stay until the end.
    train_timeout, exchange_timeout : float
        See `SecAggFedAvg`.
    """

    def __init__(
        self,
        plan: str,
        result: str,
        num_clients: int,
        train_timeout: float = 600.0,
        exchange_timeout: float = 60.0,
    ) -> None:
        super().__init__(
            num_clients=num_clients,
            num_rounds=MOST_STEPS,
            threshold=num_clients,
            clip=2.0**32,
            fractional_bits=0,
            exclude_vars="study",
            train_timeout=train_timeout,
            exchange_timeout=exchange_timeout,
        )
        self.plan, self.result = plan, result
        self.stop_condition = True  # so that FLARE asks `should_stop` after each round
        self.study: Study | None = None

    def run(self) -> None:
        """Run the steps of the plan; called by FLARE."""
        self.study = Study(Plan.read(self.plan))
        self.model = self._next(self.study)
        super().run()

    def update_model(self, model: FLModel, aggr_result: FLModel) -> FLModel:
        """Return the message of the next step in place of a model."""
        assert self.study is not None, "run makes the study"
        mean = np.asarray(aggr_result.params["sums"])
        sums = np.rint(mean * self._received_count)
        self.study = self.study.then(sums.astype(np.int64))
        return self._next(self.study)

    def is_curr_model_better(self, curr_model: FLModel) -> bool:
        """Return True after the last step: the result is saved once."""
        return self.study is not None and self.study.ended

    def should_stop(self, metrics: Any = None) -> bool:
        """Return True after the last step."""
        return self.study is not None and self.study.ended

    def save_model(self, model: FLModel) -> None:
        """Write the tables that readers see."""
        assert self.study is not None, "run makes the study"
        Path(self.result).write_text(Result.of(self.study).to_json())

    def _next(self, study: Study) -> FLModel:
        message = np.frombuffer(study.message(), np.uint8)
        return FLModel(params={"sums": np.zeros(study.step.length), "study": message})
