"""Trainings on a grid in one process against the same recommenders' `fit`, bit for bit."""

from __future__ import annotations

import copy
import os

import numpy as np
import pytest
from flwr.app import (
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp

import fedmf
from fedmf import fcf
from fedmf.aggregate import RoundAborted
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.flower import FedSum, Node
from fedmf.training import Schedule
from fedmf.training.loop import Loop
from flower_nodes import configs
from secagg import ClientPolicy
from secagg.flower import SecAgg, SecAggMod
from secagg.flower.testing import LocalGrid

NODES = 4
RATINGS = simulate(16, 20, 160, seed=1)
SILENT = 5
RATINGS = RATINGS.take(RATINGS.users != SILENT)  # a user who has no rating to train on
VIEWS = fcf.views(RATINGS)
FACTORS = fedmf.FedMF(k=3)
STEPS = fedmf.FedMF(k=3, update="paper", rate=0.01, biases=True)


def trainer(model=FACTORS, aggregation=None, **settings):
    return fedmf.Trainer(model, aggregation, rounds=4, seed=3, **settings)


def masked():
    return fedmf.FedMMF(None, trainer())


MAKERS = {
    "FedMF, exact users": trainer,
    "FedMF, steps of users": lambda: trainer(STEPS),
    "FedMF, without counts": lambda: trainer(
        fedmf.FedMF(k=3, update="paper", rate=0.01, min_raters=1)
    ),
    "FedALS": lambda: trainer(fedmf.FedALS(k=3), fedmf.PlainSum(clip=64.0)),
    "FedMMF, ridge": masked,
    "FCF": lambda: fcf.FCF(fcf.Implicit(k=3), rounds=2, steps=3, seed=2),
    "FCF, one Adam": lambda: fcf.FCF(
        fcf.Implicit(k=3), rounds=2, steps=2, reset=False, min_raters=1
    ),
    "FederatedCF": lambda: fcf.FederatedCF(fcf.Implicit(k=3), rounds=3, seed=2),
    "FederatedCF, centred, in blocks": lambda: fcf.FederatedCF(
        fcf.tuned(3).set_params(reg=2.0), rounds=2, block=2, seed=2
    ),
}


def ratings_of(recommender):
    return VIEWS if recommender.__module__.startswith("fedmf.fcf") else RATINGS


class Run:
    """A training on nodes, each with every NODES-th user, and what their evaluation finds."""

    def __init__(self, recommender, ratings=None, *, mods=None, nodes=NODES, **settings):
        self.recommender = recommender
        self.ratings = ratings_of(recommender) if ratings is None else ratings
        self.nodes, self.models = nodes, {}
        mods = [SecAggMod(ClientPolicy(), public=["num-examples"])] if mods is None else mods
        app = ClientApp(mods=mods)
        app.train()(self.train)
        app.evaluate()(self.evaluate)
        own = configs(range(1, nodes + 1))
        self.grid = LocalGrid(app, {u: {"partition-id": u - 1, **own[u]} for u in own})
        largest = -(-self.ratings.n_users // nodes)
        self.strategy = FedSum(
            recommender,
            n_items=self.ratings.n_items,
            scale=self.ratings.scale,
            **{
                "n_users": self.ratings.n_users,
                "largest": largest,
                "evaluate": True,
                **settings,
            },
        )

    def users(self, context: Context) -> np.ndarray:
        return np.arange(context.node_config["partition-id"], self.ratings.n_users, self.nodes)

    def node(self, context: Context) -> Node:
        return Node(self.recommender, self.ratings, self.users(context))

    def train(self, message: Message, context: Context) -> Message:
        return self.node(context).train(message, context)

    def evaluate(self, message: Message, context: Context) -> Message:
        model = self.node(context).model(message.content["arrays"], context)
        self.models[context.node_id] = self.users(context), model
        content = RecordDict({"metrics": MetricRecord({"num-examples": 1})})
        return Message(content, reply_to=message)

    def secagg(self, **settings):
        given = {"key_timeout": 1e-9, "poll": 1e-9, "evaluate": {}}
        return SecAgg(self.strategy, **{**given, **self.strategy.sums, **settings})

    def start(self, strategy=None, rounds=None):
        number = self.strategy.num_rounds if rounds is None else rounds
        start = self.strategy.initial_arrays
        self.result = (strategy or self.secagg()).start(
            self.grid, start, num_rounds=number, timeout=0.0
        )
        return self

    @property
    def items(self) -> np.ndarray:
        return self.result.arrays["item-factors"].numpy()


def digests(history):
    return [(one.digest, one.clipped, one.trained_items, one.survivors) for one in history]


def assert_same(run: Run, recommender) -> None:
    """Assert that sums, item factors and the nodes' predictions are those of `fit`."""
    recommender.fit(run.ratings)
    assert digests(run.strategy.history_) == digests(recommender.history_)
    model = recommender.model_
    factors = getattr(model, "base", model)
    np.testing.assert_array_equal(run.items, factors.item_factors)
    assert len(run.models) == run.nodes
    for users, found in run.models.values():
        pairs = (
            np.repeat(users, run.ratings.n_items),
            np.tile(np.arange(run.ratings.n_items), users.size),
        )
        np.testing.assert_array_equal(found.predict(*pairs), model.predict(*pairs))


@pytest.mark.parametrize("name", MAKERS)
def test_sums_factors_and_predictions_are_those_of_one_process(name: str) -> None:
    assert_same(Run(MAKERS[name]()).start(), MAKERS[name]())


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("FedMF, steps of users", 7),
        pytest.param("FCF", RATINGS.n_users, marks=pytest.mark.large),
    ],
)
def test_any_number_of_nodes_gives_the_same(name: str, nodes: int) -> None:
    run = Run(MAKERS[name](), nodes=nodes)
    assert_same(run.start(), MAKERS[name]())


def test_plain_sums_give_the_same():
    """The mean of the nodes' replies is enough, whoever computes it."""
    run = Run(trainer(), mods=[])
    assert_same(run.start(run.strategy), trainer())


def losing(*words: str) -> fedmf.PlainSum:
    """Sum without the users of node 2 in the rounds whose names end with these words."""

    class Losing(fedmf.PlainSum):
        def _add(self, vectors, dropouts, session, encoding):
            lost = range(1, 16, NODES) if session.decode().endswith(words) else ()
            gone = dict.fromkeys(lost, "masked_input")
            return super()._add(vectors, gone, session, encoding)

    return Losing(clip=64.0)


def test_a_node_that_drops_out_of_the_mean_is_left_out_of_it():
    run = without_node_2(1)
    assert survivors(run) == [16, 16, 16, 16]
    alone = trainer(FACTORS, losing("mean 1")).fit(RATINGS)
    np.testing.assert_array_equal(run.items, alone.model_.item_factors)


def test_a_node_that_was_not_counted_is_in_no_sum():
    run = without_node_2(2)
    assert survivors(run) == [12, 12, 12, 12]
    sums = [f"sum {number}" for number in range(1, 5)]
    alone = trainer(FACTORS, losing("count 1", *sums)).fit(RATINGS)
    np.testing.assert_array_equal(run.items, alone.model_.item_factors)


def test_a_sum_of_fewer_nodes_than_the_count_is_not_used_and_all_are_counted_again():
    run = without_node_2(4)
    assert survivors(run) == [16, 0, 16]  # the second count took the place of a sum
    first, lost, last = run.strategy.history_
    assert lost.aborted
    assert last.count_digest == first.count_digest
    alone = fedmf.Trainer(FACTORS, Aborting(clip=64.0), rounds=3, seed=3).fit(RATINGS)
    np.testing.assert_array_equal(run.items, alone.model_.item_factors)


class Aborting(fedmf.PlainSum):
    """Sum of which the second one of the training is aborted."""

    def _add(self, vectors, dropouts, session, encoding):
        if session.endswith(b"sum 2"):
            raise RoundAborted("too few")
        return super()._add(vectors, dropouts, session, encoding)


def survivors(run: Run) -> list[int]:
    return [one.survivors for one in run.strategy.history_]


def without_node_2(server_round: int) -> Run:
    """A training in one round of which node 2 is lost before it trains."""
    run = Run(trainer(FACTORS, fedmf.PlainSum(clip=64.0)))
    answer = run.grid.answer

    def spoiling(message: Message) -> Message:
        config = message.content.get("config", {})
        now = config.get("server-round") == server_round
        if now and message.metadata.dst_node_id == 2:
            return Message(Error(5, "Node Unavailable"), reply_to=message)
        return answer(message)

    run.grid.answer = spoiling
    return run.start()


def test_a_round_below_the_threshold_leaves_the_model():
    items = []
    for rounds in (3, 4):
        run = Run(trainer())
        for node in (1, 2):
            run.grid.drop(node, 4 + 4 + 4)  # the mean, the count, and the first sum
        run.start(run.secagg(on_failure="skip"), rounds=rounds)
        items.append(run.items)
    first, lost = run.strategy.history_
    assert (first.survivors, lost.survivors, lost.digest) == (16, 0, None)
    assert lost.aborted
    np.testing.assert_array_equal(*items)


@pytest.mark.parametrize("before", [0, 1], ids=["mean", "count"])
def test_a_mean_or_count_below_the_threshold_is_repeated(before):
    run = Run(trainer())
    contexts = copy.deepcopy(run.grid.contexts)
    for node in (1, 2):
        run.grid.drop(node, 4 * before)
    run.start(run.secagg(on_failure="skip"), rounds=before + 1)
    assert not len(run.strategy.history_)
    run.grid.contexts = contexts
    for node in (1, 2):
        run.grid.drop(node, 1000)
    run.start(rounds=6 - before)
    alone = trainer().fit(RATINGS)
    assert digests(run.strategy.history_) == digests(alone.history_)
    counts = [[one.count_digest for one in h] for h in (run.strategy.history_, alone.history_)]
    assert counts[0] == counts[1] != [None] * 4


KEPT = {
    "FedMF, exact users": {},
    "FedMF, steps of users": {"user-factors": (4, 5)},
    "FedMMF, ridge": {"masked-ratings": None},
    "FCF": {},
}


@pytest.mark.parametrize("name", KEPT)
def test_a_node_keeps_only_what_its_users_need(name: str) -> None:
    """Only rows of the node's own users, and nothing of an earlier run."""
    run = Run(MAKERS[name]())
    for context in run.grid.contexts.values():
        context.state["fedmf 77"] = ArrayRecord()
    run.start()
    for context in run.grid.contexts.values():
        kept = context.state.get("fedmf 1", {})
        counted = {"fedmf 1 raters"} if run.strategy._plan.needs_counts else set()
        assert set(context.state) == counted | ({"fedmf 1"} if KEPT[name] else set())
        shapes = {key: array.shape for key, array in kept.items()}
        n = np.isin(RATINGS.users, run.users(context)).sum()
        assert shapes == {key: shape or (n,) for key, shape in KEPT[name].items()}


def test_masks_are_fitted_once(monkeypatch):
    fits = []
    fit = fedmf.RidgeMask.fit
    monkeypatch.setattr(fedmf.RidgeMask, "fit", lambda *a: fits.append(1) or fit(*a))
    Run(masked(), evaluate=False).start()
    assert len(fits) == NODES


def test_a_node_that_lost_its_state_begins_anew():
    run = Run(trainer(STEPS)).start(rounds=4)
    context = run.grid.contexts[1]
    context.state.clear()
    users, model = run.users(context), run.node(context).model(run.result.arrays, context)
    mean = Loop(fedmf.PlainSum(), Schedule(), 1).means(RATINGS)[0]
    start, _ = STEPS.at_mean(mean).initial(RATINGS, np.random.default_rng((3, 0, 0)))
    np.testing.assert_array_equal(model.user_factors[users], start[users])


@pytest.mark.parametrize(
    "recommender",
    [
        trainer(cohort=8),
        trainer(dropout=0.1),
        trainer(aggregation=fedmf.FloatSum()),
        fcf.CF(),
        trainer(aggregation=fedmf.PlainSum(clip=2.0**20, fractional_bits=40)),
    ],
    ids=["cohort", "dropout", "floats", "centralised", "sums beyond 2^50"],
)
def test_a_recommender_that_does_not_fit_is_rejected(recommender):
    with pytest.raises(fedmf.SettingError):
        Run(recommender)


def test_a_node_with_more_users_than_the_largest_trains_like_any_other():
    """An answer without its users would tell the server their number, bit by bit."""
    ratings = simulate(17, 20, 160, seed=1)
    run, alone = Run(trainer(), ratings, largest=4).start(), trainer().fit(ratings)
    assert digests(run.strategy.history_) == digests(alone.history_)


def test_more_users_than_stated_are_rejected():
    with pytest.raises(fedmf.SettingError):
        Run(fcf.FCF(rounds=1, min_raters=1), n_users=15).start()


def test_nodes_sum_the_mean_rating_once_and_first():
    run = Run(trainer()).start()
    assert run.strategy.num_rounds == 1 + 1 + 4
    alone = Loop(fedmf.PlainSum(), Schedule(), 1).means(RATINGS)[0]
    assert run.result.arrays["mean"].numpy().tolist() == [alone]
    assert Run(masked()).strategy.num_rounds == 1 + 4
    assert Run(trainer(fedmf.FedMF(mean=3.0))).strategy.num_rounds == 1 + 4


def test_ratings_of_another_scale_give_the_same():
    values = (RATINGS.values - 1) * 25
    run = Run(masked(), RATINGS.with_values(values, (0.0, 100.0)))
    assert_same(run.start(), masked())


@pytest.mark.parametrize(
    "recommender",
    [
        fcf.FCF(min_raters=17),
        fedmf.Trainer(fedmf.FedMF(k=2, mean=3.0, min_raters=17), rounds=1),
    ],
    ids=["FCF", "FedMF"],
)
def test_no_item_with_enough_raters_is_rejected_after_the_count(recommender):
    run = Run(recommender)
    with pytest.raises(fedmf.DataError):
        run.start()
    assert len(run.grid.replies) == 4 * NODES


def test_users_of_an_unfinished_epoch_are_exact_for_the_last_items():
    recommender = fcf.FCF(fcf.Implicit(k=3), steps=3, min_raters=1)
    run = Run(recommender).start(rounds=2)
    context = run.grid.contexts[1]
    model = run.node(context).model(run.result.arrays, context)
    training = recommender.training(recommender.model.weigh(VIEWS))
    x = training.with_users(run.items, np.zeros(3)).x
    users = run.users(context)
    np.testing.assert_array_equal(model.user_factors[users], x[users])


@pytest.mark.parametrize("users", [[], [16], [-1], [0, 0], [0.5], [[0]]])
def test_users_that_are_no_rows_are_rejected(users):
    with pytest.raises(fedmf.SettingError):
        Node(trainer(), RATINGS, users)


class Shuffled(Run):
    """A training whose nodes state their users in another order each time."""

    order = np.random.default_rng(1)

    def users(self, context: Context) -> np.ndarray:
        return self.order.permutation(super().users(context))


def test_the_order_of_users_does_not_matter():
    assert_same(Shuffled(trainer(STEPS)).start(), trainer(STEPS))


def test_ratings_that_do_not_suit_the_recommender_are_rejected():
    ratings = RATINGS.with_values(-RATINGS.values, (-5.0, 0.0))
    run = Run(fcf.FCF(min_raters=1), ratings)
    start = run.strategy.initial_arrays
    message, *_ = run.strategy.configure_train(1, start, ConfigRecord(), run.grid)
    with pytest.raises(fedmf.DataError):
        run.train(message, run.grid.contexts[1])


def test_a_message_of_another_strategy_is_rejected():
    run = Run(trainer())
    content = RecordDict({"arrays": run.strategy.initial_arrays, "config": ConfigRecord()})
    message = run.grid.create_message(content, "train", 1, "1")
    with pytest.raises(fedmf.SettingError):
        run.train(message, run.grid.contexts[1])


def test_callbacks_are_called_for_each_round():
    seen, sums = [], []
    Run(trainer(callbacks=[seen.append])).start()
    Run(fcf.FCF(rounds=2, steps=2, callbacks=[lambda one: sums.append(one.round)])).start()
    assert [one.round for one in seen] == [1, 2, 3, 4]
    assert sums == [1, 2, 3, 4]


@pytest.mark.slow
@pytest.mark.skipif("FEDMF_DATA" not in os.environ, reason="FEDMF_DATA names no data")
@pytest.mark.parametrize(
    "make",
    [
        lambda: fedmf.Trainer(fedmf.FedMF(), rounds=10),
        lambda: fedmf.FedMMF(trainer=fedmf.Trainer(fedmf.FedMF(), rounds=10)),
        lambda: fcf.FCF(rounds=1),
    ],
    ids=["FedMF", "FedMMF", "FCF"],
)
def test_ml_100k_in_8_shards_gives_the_digests_of_one_process(make):
    train = random_split(fedmf.load("ml-100k"), seed=0).train
    ratings = fcf.views(train) if isinstance(make(), fcf.FCF) else train
    assert_same(Run(make(), ratings, nodes=8).start(), make())


def test_clipped_elements_that_the_model_does_not_bear_are_rejected():
    any_clipped = fcf.FCF(aggregation=fedmf.PlainSum(clip=0.01), rounds=1)
    for recommender in (any_clipped, trainer(aggregation=fedmf.PlainSum(clip=0.3))):
        with pytest.raises(fedmf.SettingError):
            Run(recommender).start()
