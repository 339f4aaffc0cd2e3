"""Server that gets the sum of masked updates, in four exchanges."""

from __future__ import annotations

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from secagg.flower import SecAgg

from .message_api import fedavg, run
from .work import CLIP, MAX_WEIGHT

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run FedAvg over secure sums."""
    config = context.run_config
    strategy = SecAgg(
        fedavg(context),
        clip=CLIP,
        max_weight=MAX_WEIGHT,
        suite="x25519",  # SecAgg+ has no other
        key_timeout=float(config["timeout"]),
        poll=float(config["poll"]),
    )
    run(strategy, grid, context)
