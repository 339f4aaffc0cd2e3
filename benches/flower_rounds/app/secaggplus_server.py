"""Server of Flower's SecAgg+, on its legacy API."""

from __future__ import annotations

import numpy as np
from flwr.app import Context
from flwr.common import (
    FitRes,
    NDArrays,
    Parameters,
    Scalar,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
)
from flwr.server import LegacyContext, ServerConfig
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.serverapp import Grid, ServerApp

from .meter import metered
from .work import CLIP, MAX_WEIGHT

app = ServerApp()


class Float32FedAvg(FedAvg):
    """FedAvg whose model stays float32; SecAgg+ returns float64, twice the bytes to a node."""

    def aggregate_fit(
        self,
        server_round: int,
        results: list[tuple[ClientProxy, FitRes]],
        failures: list[tuple[ClientProxy, FitRes] | BaseException],
    ) -> tuple[Parameters | None, dict[str, Scalar]]:
        """Return the mean as float32."""
        mean, metrics = super().aggregate_fit(server_round, results, failures)
        if mean is not None:
            arrays = [array.astype(np.float32) for array in parameters_to_ndarrays(mean)]
            mean = ndarrays_to_parameters(arrays)
        return mean, metrics


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run FedAvg over SecAgg+, on the complete graph with a threshold above half."""
    config = context.run_config
    nodes, start = int(config["nodes"]), np.zeros(int(config["length"]), np.float32)
    with metered(grid, context) as meter:

        def evaluate(number: int, model: NDArrays, _: dict[str, Scalar]) -> None:
            meter.after_round(number, model[0])

        strategy = Float32FedAvg(
            fraction_evaluate=0.0,
            min_fit_clients=nodes,
            min_available_clients=nodes,
            evaluate_fn=evaluate,
            on_fit_config_fn=lambda number: {"server-round": number},
            initial_parameters=ndarrays_to_parameters([start]),
        )
        legacy = LegacyContext(context, ServerConfig(int(config["rounds"])), strategy)
        secure = SecAggPlusWorkflow(
            num_shares=1.0,
            reconstruction_threshold=nodes // 2 + 1,
            max_weight=MAX_WEIGHT,
            clipping_range=CLIP,
            timeout=float(config["timeout"]),
        )
        DefaultWorkflow(fit_workflow=secure)(grid, legacy)
        meter.reported = legacy.history.metrics_distributed_fit
