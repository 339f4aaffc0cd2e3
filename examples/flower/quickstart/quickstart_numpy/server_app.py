"""Server: it averages the models of the nodes, and prints the model of the last round."""

from __future__ import annotations

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from quickstart_numpy.task import get_dummy_model
from secagg.flower import SecAgg

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run FedAvg for some rounds."""
    num_rounds = int(context.run_config["num-server-rounds"])
    arrays = ArrayRecord(get_dummy_model())
    strategy = SecAgg(FedAvg(fraction_evaluate=0, min_train_nodes=5), clip=1, max_weight=10_000)
    result = strategy.start(grid=grid, initial_arrays=arrays, num_rounds=num_rounds)
    print("model:", *result.arrays.to_numpy_ndarrays())
