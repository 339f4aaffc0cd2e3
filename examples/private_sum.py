"""Private sum of ten clients in one process; one drops out, the server learns only the sum."""

import numpy as np

import secagg

vectors = {client: np.random.default_rng(client).normal(size=1000) for client in range(10)}
params = secagg.RoundParams(
    n_clients=10, threshold=7, length=1000, encoding=secagg.FixedPoint(clip=8.0)
)
result = secagg.simulate_round(vectors, params, dropouts={3: "masked_input"})

truth = np.sum([vectors[client] for client in result.survivors], axis=0)
print(f"{len(result.survivors)} survivors; sum {result.sum[:3]}; truth {truth[:3]}")
