"""Asynchronous training with secure sums (FedBuff): each model version is a session of its own.

A client takes a model, trains at its own pace, and reports under the parameters that came with
the model. A batch of any version closes after K reports. The server learns the batch's sum, and
adds it with the weight 1 / √(1 + staleness). Time is simulated; HTTP and helpers are real.
"""

import asyncio
import heapq
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from secagg import Bounds, FixedPoint, Identity, LinkError, Registry, collect, http
from secagg.collect.service import serve_collection
from secagg.oneshot import HelperJournal, OneShotParams, OneShotPolicy
from secagg.session import bind

T = TypeVar("T")
Array = NDArray[np.float64]
Sum = tuple[int, NDArray[np.int64], int]


CLIENTS, ACTIVE, K, LEAST, OLDEST, STEPS, RATE, LENGTH = 40, 30, 12, 10, 5, 20, 1.0, 9
# to the nearest integer only so that the sums can be compared with sums in the clear
ENCODING = FixedPoint(clip=4.0, rounding="nearest")
IDENTITIES = {
    u: Identity(bytes([u + 1]) * 32) for u in range(CLIENTS)
}  # real clients draw them
KEYS = Registry({u: one.public for u, one in IDENTITIES.items()})
AGGREGATOR = Identity(bytes([99]) * 32)


def examples_of(u: int) -> Array:
    """Return a client's own inputs, times their noisy labels 1 or -1."""
    x = np.random.default_rng(u).normal([0] * 8 + [1, 0], [1] * 8 + [0, 2], (40, 10))
    return np.asarray(x[:, :9] * np.sign(x @ [*range(-4, 5), 1])[:, None])


def loss_of(model: Array) -> float:
    """Return the mean log loss on the examples of all clients."""
    return float(
        np.mean([np.log1p(np.exp(-examples_of(u) @ model)).mean() for u in range(CLIENTS)])
    )


def update_of(u: int, model: Array) -> Array:
    """Return what a client adds to a model: the gradient of its own examples."""
    z = examples_of(u)
    return np.asarray((z / (1 + np.exp(z @ model))[:, None]).mean(0))


class Server(Protocol[T]):
    """Server of a training; T is what a client takes with a model."""

    async def begin(self, version: int, model: Array) -> None:
        """Begin a version."""

    async def offer(self) -> T:
        """Return what a client takes."""

    async def report(self, u: int, taken: T, update: Array) -> None:
        """Take the update of a client."""

    def sums(self, version: int) -> AsyncIterator[Sum]:
        """Yield version, sum and number of reports of the batches that are due."""


class Clear:
    """Server that sees each update: by the same rules, for comparison."""

    def __init__(self) -> None:
        self.batches: dict[int, list[NDArray[np.int64]]] = {}
        self.newest = 0, np.zeros(LENGTH)

    async def begin(self, version: int, model: Array) -> None:
        """Begin a version."""
        self.batches[version], self.newest = [], (version, model)

    async def offer(self) -> tuple[int, Array]:
        """Return what a client takes: the newest model, and what its report needs."""
        return self.newest

    async def report(self, u: int, taken: tuple[int, Array], update: Array) -> None:
        """Take an update of the model that a client took."""
        if taken[0] in self.batches:
            self.batches[taken[0]].append(ENCODING.encode_integers(update)[0])

    async def sums(self, version: int) -> AsyncIterator[Sum]:
        """Yield the sums of the batches that are due."""
        for taken, batch in list(self.batches.items()):
            old = version - taken > OLDEST
            if len(batch) >= K or (old and len(batch) >= LEAST):
                yield taken, np.sum(batch, 0), len(batch)
            elif not old:
                continue
            self.batches[taken] = []
            if old:
                del self.batches[taken]


class Secure:
    """Server that sees sums: a collection over HTTP, and helpers that open its batches."""

    def __init__(
        self,
        database: collect.Database,
        url: str,
        helpers: list[tuple[str, tuple[bytes, bytes]]],
    ) -> None:
        self.database, self.url = database, url
        self.versions: dict[int, int] = {}
        self.addresses = [address for address, _ in helpers]
        self.helpers = [keys for _, keys in helpers]
        trusted = frozenset(signing for _, signing in self.helpers)
        self.policy = OneShotPolicy(helpers=trusted, min_clients=LEAST, bounds=Bounds(ENCODING))
        asking = collect.Asking(self.reach)
        self.closer = collect.Closer(database, asking, KEYS)
        self.worker = collect.Worker(database, asking, KEYS)

    @asynccontextmanager
    async def reach(self, params: OneShotParams) -> AsyncIterator[list[http.HttpHelper]]:
        """Yield links to the helpers, who endorse the parameters."""
        async with AsyncExitStack() as stack:
            reached = (
                http.reach_helper(a, params, identity=AGGREGATOR) for a in self.addresses
            )
            yield [await stack.enter_async_context(one) for one in reached]

    async def begin(self, version: int, model: Array) -> None:
        """Begin a version."""
        params = OneShotParams.suggest(
            CLIENTS,
            LENGTH,
            ENCODING,
            helpers=self.helpers,
            min_clients=LEAST,
            session=bind(b"model %d" % version, model.tobytes()),
        )
        async with self.reach(params) as links:
            endorsed = [link.endorsement for link in links]
        begun = collect.begin_session(self.database, params, endorsed, model.tobytes())
        self.versions[begun.number] = version

    async def offer(self) -> http.Offer:
        """Return the newest parameters, which name the model."""
        return await http.get_offer(self.url, policy=self.policy, encoding=ENCODING)

    async def report(self, u: int, taken: http.Offer, update: Array) -> None:
        """Send an update, and leave."""
        try:
            await http.send_report(
                self.url, update, u, policy=self.policy, identity=IDENTITIES[u], offer=taken
            )
        except LinkError as error:
            if error.check != "closed":  # the version is too old, and the update is lost
                raise

    async def sums(self, version: int) -> AsyncIterator[Sum]:
        """Yield the sums of the batches that are due."""
        for batch in collect.open_batches(self.database):
            taken = self.versions[batch.session]
            old = version - taken > OLDEST
            if batch.reports >= K or (old and batch.reports >= LEAST):
                collect.close_batch(self.database, batch.number, reopen=not old)
                found = await collect.lead(self.closer, self.worker, batch.number)
                await self.closer.step(batch.number)  # drops the reports
                yield taken, found.integers, len(found.survivors)
            elif old:
                collect.drop_batch(self.database, batch.number)


async def train(
    server: Server[T], model_of: Callable[[T], Array]
) -> tuple[float, Array, list[tuple[int, int, int, list[int]]]]:
    """Return the time, the model, and the sums of clients that come when they like."""
    draw, model, version, now = np.random.default_rng(0), np.zeros(LENGTH), 0, 0.0
    slowness = draw.lognormal(0, 1, CLIENTS)
    idle, took = [*range(CLIENTS)], set[tuple[int, int]]()
    busy: list[tuple[float, int, T]] = []
    found = list[tuple[int, int, int, list[int]]]()
    await server.begin(version, model)
    while version < STEPS:
        # a client takes each version once, so that it is in one batch of a session
        while len(busy) < ACTIVE and (free := [u for u in idle if (u, version) not in took]):
            u = free[draw.integers(len(free))]
            idle.remove(u)
            took.add((u, version))
            heapq.heappush(busy, (now + slowness[u], u, await server.offer()))
        now, u, taken = heapq.heappop(busy)
        await server.report(u, taken, update_of(u, model_of(taken)))
        idle.append(u)
        async for old, integers, count in server.sums(version):
            weight = RATE / np.sqrt(1 + version - old)
            model = model + weight * integers / (count * 2.0**ENCODING.fractional_bits)
            found.append((old, version, count, list(map(int, integers))))
            version += 1
            await server.begin(version, model)
    return now, model, found


def in_rounds(until: float) -> tuple[int, Array]:
    """Return rounds and model of synchronous rounds, each as long as the slowest client."""
    draw, model, now, rounds = np.random.default_rng(0), np.zeros(LENGTH), 0.0, 0
    slowness = draw.lognormal(0, 1, CLIENTS)
    while True:
        chosen = draw.choice(CLIENTS, ACTIVE, replace=False)
        now += slowness[chosen].max()
        if now > until:
            return rounds, model
        model = model + RATE * np.mean([update_of(u, model) for u in chosen], 0)
        rounds += 1


async def main(folder: Path) -> None:
    """Train by secure sums, in the clear, and in rounds; compare."""
    clear = await train(Clear(), lambda taken: taken[1])
    async with AsyncExitStack() as stack:
        helpers = []
        for j in (1, 2):  # in practice each on a machine of another operator
            journal = HelperJournal.create(folder / f"helper {j}", "x25519")
            serving = http.serve_helper(
                journal, AGGREGATOR.public, registry=KEYS, min_clients=LEAST, port=0
            )
            helpers.append((await stack.enter_async_context(serving), journal.public))
        database = collect.open_database(str(folder / "reports.sqlite"), new=True)
        stack.callback(database.close)
        collecting = serve_collection(database, registry=KEYS, port=0)
        at = await stack.enter_async_context(collecting)
        server = Secure(database, at.url, helpers)
        secure = await train(server, lambda offer: np.frombuffer(offer.message))
    assert secure[2] == clear[2], "the same integers, of the same versions"
    now, model, found = secure
    staleness = Counter(version - old for old, version, *_ in found)
    print(f"{len(found)} sums of {sum(one[2] for one in found)} reports, as in the clear")
    print("staleness: " + ", ".join(f"{tau} x{n}" for tau, n in sorted(staleness.items())))
    print(f"log loss {loss_of(model):.3f} at time {now:.1f}")
    rounds, model = in_rounds(now)
    print(f"log loss {loss_of(model):.3f} after {rounds} synchronous rounds in the same time")


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        asyncio.run(main(Path(name)))
