"""One-shot sum: each client sends one message and leaves; two of three helpers open the sum.

All parties run here in one process. In practice a helper has its own machine. It never copies
its journal, and deletes it when no list of helpers has its keys.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import secagg
from secagg.oneshot import Accumulator, Helper, HelperJournal, OneShotParams, report

CLIENTS = 6


def client(u: int, params: OneShotParams) -> bytes:
    """Return a client's only message; a client needs no state after it."""
    return report(np.full(params.length, u / 4), params, u)


def aggregate(reports: list[bytes], params: OneShotParams, helpers: list[Helper]) -> np.ndarray:
    """Add the reports, and let the helpers that are there open the sum."""
    accumulator = Accumulator(params)
    for data in reports:
        accumulator.add(data)
    for helper in helpers:
        for boxes in accumulator.boxes(helper.number):
            accumulator.drop(helper.check(boxes))
    request = accumulator.request()  # store accumulator.to_bytes() before it is sent
    result = accumulator.result(helper.open(request) for helper in helpers)
    print(f"sum of {len(result.survivors)} vectors; its first element is {result.sum[0]:.3f}")
    return result.sum


def main(folder: Path) -> np.ndarray:
    """Run a batch in which client 3 never reports, and helper 2 is away."""
    journals = [HelperJournal.create(folder / f"helper {j}", "x25519") for j in (1, 2, 3)]
    params = OneShotParams(  # from the application, never from the aggregator
        n_clients=CLIENTS,
        length=1000,
        encoding=secagg.FixedPoint(clip=8.0),
        helpers=tuple(journal.public for journal in journals),
        threshold=2,
        min_clients=4,
        security="semi-honest",
        suite="x25519",
        session=b"survey",
    )
    reports = [client(u, params) for u in range(CLIENTS) if u != 3]
    return aggregate(reports, params, [Helper(params, journals[j]) for j in (0, 2)])


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        main(Path(name))
