"""Server: it plans the noise, adds the noisy means, and measures the accuracy by itself."""

from __future__ import annotations

from flwr.app import ArrayRecord, Context, MetricRecord, UserConfig
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvgM

from private_digits.task import accuracy, load, start
from secagg.flower import SecAgg
from secagg.privacy import plan

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train for some rounds, and print the accuracy after each on pictures of the server."""
    run(grid, context.run_config)


def run(grid: Grid, config: UserConfig) -> float:
    """Train for some rounds; print the accuracy after each, and return the last accuracy."""
    nodes, rounds, norm = int(config["num-nodes"]), int(config["rounds"]), float(config["norm"])
    epsilon, noise = float(config["epsilon"]), None
    if epsilon:
        noise = plan(
            nodes,
            start().size,
            norm=norm,
            epsilon=epsilon,
            delta=float(config["delta"]),
            rounds=rounds,
        )
        print(f"error of a mean: {noise.error_norm():.3g}, and updates up to {norm:g}")
    averaging = FedAvgM(
        min_train_nodes=nodes,
        min_available_nodes=nodes,
        fraction_evaluate=0.0,
        server_learning_rate=float(config["step"]),
    )
    strategy = SecAgg(
        averaging, noise=noise, norm=norm, key_timeout=float(config["key-timeout"])
    )
    pictures = load("test")

    def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
        (model,) = arrays.to_numpy_ndarrays()
        found = accuracy(model, pictures)
        print(f"round {number}: accuracy {found:.3f}")
        return MetricRecord({"accuracy": found})

    result = strategy.start(
        grid, ArrayRecord([start()]), num_rounds=rounds, timeout=600.0, evaluate_fn=evaluate
    )
    (trained,) = result.arrays.to_numpy_ndarrays()
    return accuracy(trained, pictures)
