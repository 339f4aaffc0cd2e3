"""Server that gets all models."""

from __future__ import annotations

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from .message_api import fedavg, run

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run plain FedAvg."""
    run(fedavg(context), grid, context)
