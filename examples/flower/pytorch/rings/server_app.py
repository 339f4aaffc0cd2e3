"""Server: it averages the networks of the nodes."""

from __future__ import annotations

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from rings.task import new_net
from secagg.flower import SecAgg

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train for some rounds, and print the accuracy after each."""
    strategy = SecAgg(
        FedAvg(min_train_nodes=5), clip=1.0, max_weight=100, evaluate={"accuracy": 1.0}
    )
    arrays = ArrayRecord(new_net().state_dict())
    rounds = int(context.run_config["rounds"])
    result = strategy.start(grid, arrays, num_rounds=rounds)
    for number, metrics in result.evaluate_metrics_clientapp.items():
        print(f"round {number}: accuracy {metrics['accuracy']:.3f}")
