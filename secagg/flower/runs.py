"""Configuration of a run, on which all nodes and the server agree."""

from __future__ import annotations

from flwr.app import UserConfig
from flwr.common.config import get_fused_config
from flwr.serverapp import Grid


def run_config(grid: Grid) -> UserConfig:
    """Return the configuration that the nodes of a run have in their Contexts.

    The configuration is fused from the app's defaults, in the folder where the server has
    installed the app, and from the overrides of the run. A run without an app, as in
    `LocalGrid`, has the overrides only.
    """
    run = grid.run
    return get_fused_config(run) if run.fab_id else dict(run.override_config)
