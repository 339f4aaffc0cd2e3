"""Server that gets the sum of reports, which helpers open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from secagg import Identity
from secagg.flower import OneShot, RemoteHelper
from secagg.flower.helpers import Reachable

from .message_api import fedavg, run
from .work import CLIP, MAX_WEIGHT

app = ServerApp()


def reach_helpers(network: Path) -> Sequence[Reachable]:
    """Return the helpers that a network serves."""
    identity = Identity.from_pem((network / "aggregator.pem").read_bytes())
    return RemoteHelper.read(network / "helpers.json", identity=identity)


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run FedAvg over one-shot sums."""
    config = context.run_config
    strategy = OneShot(
        fedavg(context),
        helpers=reach_helpers(Path(str(config["folder"])).parent),
        clip=CLIP,
        max_weight=MAX_WEIGHT,
        helper_timeout=float(config["timeout"]),
        poll=float(config["poll"]),
    )
    run(strategy, grid, context)
