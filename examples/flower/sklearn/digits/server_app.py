"""Server: it averages the coefficients of the nodes."""

from __future__ import annotations

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from digits.task import START
from secagg.flower import SecAgg

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train for some rounds, and print the accuracy after each."""
    strategy = SecAgg(
        FedAvg(min_train_nodes=5),
        clip=2.0,
        max_weight=2000,
        evaluate={"accuracy": 1.0},
        key_timeout=float(context.run_config["key-timeout"]),
    )
    result = strategy.start(grid, START, num_rounds=int(context.run_config["rounds"]))
    for number, metrics in result.evaluate_metrics_clientapp.items():
        print(f"round {number}: accuracy {metrics['accuracy']:.3f}")
