"""Server: it opens the sum of each step, and prints the tables that readers see."""

from __future__ import annotations

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, MetricRecord, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from hospitals.task import PLAN
from secagg.flower import SecAgg
from secagg.statistics import Result, Study

app = ServerApp()


def weight_of(replies: list[RecordDict], key: str) -> MetricRecord:
    """Return the number of nodes in a sum, which is the weight of the only reply."""
    return MetricRecord({key: replies[0].metric_records["metrics"][key]})


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the steps of the plan, each a round over the same nodes."""
    nodes, study = int(context.run_config["nodes"]), Study(PLAN)
    while not study.ended:
        average = FedAvg(
            fraction_evaluate=0, min_train_nodes=nodes, train_metrics_aggr_fn=weight_of
        )
        # elements are whole numbers below 2^32, so their mean times their number is exact;
        # all nodes must stay, since sums over different nodes would show their difference
        secure = SecAgg(
            average,
            clip=2.0**32,
            fractional_bits=0,
            max_weight=1,
            threshold=nodes,
            averaging=True,
        )
        result = secure.start(
            grid,
            ArrayRecord({"sums": Array(np.zeros(study.step.length))}),
            num_rounds=1,
            train_config=ConfigRecord({"study": study.message()}),
        )
        weight = result.train_metrics_clientapp[1]["num-examples"]
        sums = np.rint(result.arrays["sums"].numpy() * weight)
        study = study.then(sums.astype(np.int64))
    print(Result.of(study))
