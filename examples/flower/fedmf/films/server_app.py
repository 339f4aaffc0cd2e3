"""Server: it learns sums over all users, and from them the factors of the films."""

from __future__ import annotations

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedmf.flower import FedSum
from films.task import load_split, recommender
from secagg.flower import SecAgg

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train, and print the digest of each sum and the error of the trained model."""
    ratings = load_split(context).train  # a real server knows these numbers only
    nodes = int(context.run_config["nodes"])
    strategy = FedSum(
        recommender(context),
        n_users=ratings.n_users,
        n_items=ratings.n_items,
        scale=ratings.scale,
        largest=-(-ratings.n_users // nodes),
        min_nodes=nodes,
        evaluate=True,
    )
    sums = strategy.sums
    sums["max_weight"] = 100_000  # test ratings of a node
    wait = float(context.run_config["key-timeout"])
    secagg = SecAgg(strategy, evaluate={"squared-error": 25.0}, key_timeout=wait, **sums)
    result = secagg.start(grid, strategy.initial_arrays, num_rounds=strategy.num_rounds)
    for record in strategy.history_:
        print(f"round {record.round}: {record.survivors} users, digest {record.digest}")
    (metrics,) = result.evaluate_metrics_clientapp.values()
    print(f"test error, squared: {metrics['squared-error']:.4f}")
