"""Lies about raters: no sum has the gradient of an item that one user rated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp

from fedmf import FedMF, Trainer
from fedmf.aggregate import PlainSum
from fedmf.data import Ratings, from_triples
from fedmf.flower import FedSum, Node
from fedmf.flower.node import LARGEST_FACTOR
from fedmf.models.federated import Raters
from flower_nodes import configs
from secagg import ParameterError, TooFewSurvivors
from secagg.flower import SecAgg, SecAggMod
from secagg.flower.testing import LocalGrid

USERS, NODES, RARE = 12, 4, 7
MANY = np.full(8, 10**6)


def ratings(*more: tuple[int, int]) -> Ratings:
    """Ratings of seven items by most users, of the last item by user 5 alone, and more."""
    rng = np.random.default_rng(0)
    pairs = [(u, int(i)) for u in range(USERS) for i in rng.choice(7, 4, replace=False)]
    pairs += [(5, RARE), *more]
    users, items = (list(one) for one in zip(*pairs, strict=True))
    values = [1.0 + (u + i) % 5 for u, i in pairs]
    return from_triples(users, items, values, scale=(1.0, 5.0), item_ids=np.arange(8))


def recommender(rounds: int = 3) -> Trainer:
    model = FedMF(k=2, min_raters=3, mean=3.5)
    return Trainer(model, aggregation=PlainSum(), rounds=rounds)


Lie = Callable[["Lying"], None]


class Lying(FedSum):
    """Server that calls a function before each round, and keeps the sums."""

    def __init__(self, lie: Lie, **settings: object) -> None:
        given = {"n_users": USERS, "n_items": 8, "scale": (1.0, 5.0), "largest": 3}
        super().__init__(recommender(), **{**given, "min_nodes": NODES, **settings})
        self.lie, self.rows, self.said = lie, [], []

    def configure_train(self, *given):
        self.lie(self)
        self.said.append(None if self._raters is None else self._raters.counts.copy())
        return super().configure_train(*given)

    def _step(self, total, excess, aborted=None):
        if total is not None:
            self.rows.append(np.asarray(total.integers).reshape(8, -1)[RARE])
        super()._step(total, excess, aborted)


class Run:
    def __init__(self, lie: Lie, **settings: object) -> None:
        self.ratings, self.strategy = ratings(), Lying(lie, **settings)
        app = ClientApp(mods=[SecAggMod()])
        app.train()(self.train)
        self.grid = LocalGrid(app, configs(range(1, NODES + 1)))

    def train(self, message: Message, context: Context) -> Message:
        users = np.arange(context.node_id - 1, USERS, NODES)
        return Node(recommender(), self.ratings, users).train(message, context)

    def start(self, rounds: int | None = None, **settings: str) -> Lying:
        strategy = self.strategy
        secagg = SecAgg(strategy, key_timeout=1e-9, **strategy.sums, **settings)
        start, number = strategy.initial_arrays, rounds or strategy.num_rounds
        secagg.start(self.grid, start, num_rounds=number, timeout=0.0)
        return strategy


def honest(strategy: Lying) -> None:
    pass


def instead_of_the_count(strategy: Lying) -> None:
    strategy._raters = Raters(MANY, 1.0)


def after_the_count(counts: np.ndarray, users: int = USERS) -> Lie:
    def lie(strategy: Lying) -> None:
        if strategy._raters is not None:
            strategy._n_users, strategy._raters = users, Raters(counts, 1.0)

    return lie


def in_the_second_sum(strategy: Lying) -> None:
    if len(strategy.said) == 2:
        strategy._raters.counts[RARE] = 3


LIES = {
    "in place of the count": instead_of_the_count,
    "after the count": after_the_count(MANY),
    "beyond the users": after_the_count(np.full(8, USERS + 1)),
    "none of them": after_the_count(np.empty(0, np.int64)),
    "in the second sum": in_the_second_sum,
    "more users": after_the_count(MANY, 10**6),
}


def test_an_honest_server_gets_zeros_in_the_row_of_an_item_with_one_rater():
    strategy = Run(honest).start()
    assert [one.survivors for one in strategy.history_] == [USERS] * 3
    assert not np.any(strategy.rows)
    alone = recommender().fit(ratings())
    assert [one.digest for one in strategy.history_] == [one.digest for one in alone.history_]


@pytest.mark.parametrize("lie", LIES)
def test_check31_nodes_are_in_no_sum_with_counts_that_cannot_be(lie: str) -> None:
    run = Run(LIES[lie])
    with pytest.raises(TooFewSurvivors):
        run.start()
    assert not np.any(run.strategy.rows)
    refused = [reply for reply in run.grid.replies if reply.has_error()]
    assert {reply.error.reason for reply in refused} == {"secagg: RemoteProtocolError"}
    assert len(refused) == NODES


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e140])
def test_check31_models_that_fail_some_trainings_are_rejected(bad: float) -> None:
    """A node whose users rated other items would be left alone in the sum."""

    def poison(strategy: Lying) -> None:
        if strategy._raters is not None:
            strategy._public["item-factors"][0] = bad

    run = Run(poison)
    # the server's own part finds a NaN
    with pytest.raises(ParameterError if np.isnan(bad) else TooFewSurvivors):
        run.start()
    refused = [reply for reply in run.grid.replies if reply.has_error()]
    assert len(refused) == (0 if np.isnan(bad) else NODES)


def test_check31_what_a_model_leaves_at_a_node_makes_no_later_step_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = FedMF(k=2, update="paper", rate=0.5, min_raters=3, mean=3.5)
    trainer = Trainer(model, aggregation=PlainSum(), rounds=3)
    monkeypatch.setitem(globals(), "recommender", lambda: trainer)

    def largest(strategy: Lying) -> None:
        if strategy._raters is not None:
            strategy._public["item-factors"][:] = LARGEST_FACTOR

    run = Run(largest)
    with pytest.raises(ParameterError):  # the honest part of the server finds too much clipped
        run.start()
    for context in run.grid.contexts.values():
        factors = context.state["fedmf 1"]["user-factors"].numpy()
        assert np.abs(factors).max() == LARGEST_FACTOR


def test_nodes_that_were_not_counted_are_below_the_threshold_of_a_sum():
    """Zeros in place of their tables would leave the table of the node that was counted."""

    class CountingOne(LocalGrid):
        def answer(self, message: Message) -> Message:
            config = message.content.get("config", {})
            counting = config.get("step") == "count"
            if counting and message.metadata.dst_node_id != 1:
                return Message(Error(5, "Node Unavailable"), reply_to=message)
            return super().answer(message)

    def guessed(strategy: Lying) -> None:
        if strategy.said:
            strategy._raters = Raters(np.full(8, USERS), 1.0)

    run = Run(guessed)
    run.grid = CountingOne(run.grid._app, configs(range(1, NODES + 1)))
    run.start(on_failure="skip", rounds=1)
    with pytest.raises(TooFewSurvivors):
        run.start(rounds=2)
    assert not run.strategy.rows


def test_a_low_count_selects_no_nodes():
    """Nodes that left an item out because of their own raters would leave those of others."""

    def low(strategy: Lying) -> None:
        if strategy._raters is not None:
            strategy._raters.counts[:] = np.minimum(strategy._raters.counts, 3)

    strategy, alone = Run(low).start(), Run(honest).start()
    first, same = next(iter(strategy.history_)), next(iter(alone.history_))
    assert first.survivors == same.survivors == USERS
    assert not np.any(strategy.rows)


def test_a_run_has_a_count_of_its_own():
    """A server cannot take the nodes' memory of one run into another."""
    run = Run(honest)
    run.start()
    other = Run(instead_of_the_count)
    other.grid = LocalGrid(other.grid._app, configs(range(1, NODES + 1)), run_id=2)
    for node, context in other.grid.contexts.items():
        context.state = run.grid.contexts[node].state
    with pytest.raises(TooFewSurvivors):
        other.start()
