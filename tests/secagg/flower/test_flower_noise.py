"""Noise in sums on Flower, and budgets of nodes against a server that lies about the noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Message, RecordDict

from flower_helpers import Door, Party
from flower_nodes import (
    NODES,
    Meddler,
    configs,
    errors,
    fedavg,
    make_app,
    model,
    noting,
    run,
    secure_app,
    train,
)
from secagg import BudgetSpent, Noise, ParameterError, TooFewSurvivors
from secagg.flower import SecAgg, SecAggMod
from secagg.flower.testing import LocalGrid
from secagg.flower.wire import read_task
from secagg.oneshot import OneShotParams
from secagg.privacy import Budget, Loss, PrivacyLedger, plan
from secagg.protocol import Phase

pytest.importorskip("dp_accounting")

DELTA = 1e-5
LENGTH = sum(array.numpy().size for array in model().values())
PLAN = plan(len(NODES), LENGTH, norm=2.0, epsilon=8, delta=DELTA)
SPENT = "secagg: BudgetSpent"


def noised(noise: Any = PLAN, strategy: Any = None, **settings: Any) -> SecAgg:
    return SecAgg(strategy or fedavg(), noise=noise, key_timeout=1e-9, **settings)


def budgeted(epsilon: float = 8.0) -> dict[int, dict[str, Any]]:
    """Configurations of nodes with a budget; each has its own folder, and so its own ledger."""
    found = configs()
    for node, config in found.items():
        config["secagg-state-dir"] += f"/{node}"
        config |= {"secagg-epsilon": epsilon, "secagg-delta": DELTA}
    return found


def sums(nodes: dict[int, dict[str, Any]], epsilon: float = 8.0) -> list[int]:
    """Number of sums in the ledger of each node."""
    folders = [Path(config["secagg-state-dir"]) for config in nodes.values()]
    budget = Budget(epsilon, DELTA)
    return [PrivacyLedger(folder / "privacy.json", budget).sums for folder in folders]


def still(message: Message, context: Context) -> Message:
    """Return the model as it was, without metrics."""
    (record,) = message.content.array_records.values()
    return Message(RecordDict({"arrays": ArrayRecord(dict(record))}), reply_to=message)


def test_nodes_add_the_noise_of_the_plan() -> None:
    length = 4000
    planned = plan(len(NODES), length, norm=2.0, epsilon=8, delta=DELTA, count_clipped=True)
    start = ArrayRecord([np.zeros(length)])
    grid = LocalGrid(secure_app(train=still), configs())
    result = noised(planned).start(grid, start, num_rounds=1, timeout=0.0)
    (found,) = result.arrays.to_numpy_ndarrays()
    assert np.std(found) == pytest.approx(planned.error(), rel=0.08)
    assert abs(result.train_metrics_clientapp[1]["secagg-clipped-vectors"]) < 60


def test_helpers_add_the_noise_of_a_one_shot_sum(semi_honest: Party) -> None:
    sigma = 3000
    start = ArrayRecord([np.zeros(4000)])
    grid = LocalGrid(semi_honest.app(still), configs())
    strategy = semi_honest.wrapped(noise=Noise(sigma), max_weight=None)
    result = strategy.start(grid, start, num_rounds=1, timeout=0.0)
    (found,) = result.arrays.to_numpy_ndarrays()
    error = 2**-16 * sigma * np.sqrt(3) / len(NODES)  # three helpers, any two of which open
    assert np.std(found) == pytest.approx(error, rel=0.08)


def test_updates_are_cut_to_the_norm() -> None:
    """The mean is unweighted, whatever number of examples a node has."""

    def far(message: Message, context: Context) -> Message:
        found = train(message, context)
        (record,) = message.content.array_records.values()
        moved = {name: Array(array.numpy() + 3.0) for name, array in record.items()}
        found.content["arrays"] = ArrayRecord(moved)
        return found

    start = ArrayRecord({"a": Array(np.zeros(9))})
    grid = LocalGrid(secure_app(train=far), configs())
    strategy = noised(None, norm=0.75)
    result = strategy.start(grid, start, num_rounds=1, timeout=0.0)
    np.testing.assert_allclose(result.arrays["a"].numpy(), 0.25, rtol=0, atol=1e-4)
    assert not errors(grid)


WRONG: list[dict[str, Any]] = [
    {"clip": 1.0},
    {"max_weight": 1},
    {"metrics": {"train-loss": 1.0}},
    {"evaluate": {"eval-loss": 1.0}},
    {"norm": 1.0},
    {"min_survivors": 3},
    {"noise": Noise(100)},
    {"noise": 2.0},
    {"noise": None},
    {"noise": None, "norm": float("nan")},
    {"noise": None, "clip": 1.0},
    {"noise": None, "clip": 1.0, "max_weight": 1, "min_survivors": 3},
]


@pytest.mark.parametrize("settings", WRONG, ids=str)
def test_arguments_that_do_not_go_with_noise(settings: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        noised(**settings)


@pytest.mark.parametrize("settings", [{"max_weight": 1}, {"noise": PLAN}, {"noise": None}])
def test_arguments_that_do_not_go_with_noise_of_helpers(
    settings: dict[str, Any], semi_honest: Party
) -> None:
    with pytest.raises(ParameterError):
        semi_honest.wrapped(**{"max_weight": None, "noise": Noise(1), **settings})


def test_the_budget_ends_the_run() -> None:
    nodes = configs()
    strategy, grid = noised(), LocalGrid(secure_app(), nodes)
    with pytest.raises(ParameterError):
        run(grid, strategy, rounds=2)
    assert not grid.replies
    assert run(grid, strategy).arrays
    with pytest.raises(BudgetSpent):
        run(LocalGrid(secure_app(), nodes, run_id=2), strategy)
    skipping = noised(on_failure="skip")
    assert run(LocalGrid(secure_app(), nodes, run_id=3), skipping).arrays
    again = LocalGrid(secure_app(), nodes, run_id=4)
    assert not run(again, skipping).arrays
    assert not again.replies


@pytest.mark.parametrize("weighted", [False, True])
def test_a_plan_has_a_weight_if_the_sum_has_weights(weighted: bool, door: Door) -> None:
    trained: list[int] = []
    strategy = noised(on_failure="skip") if weighted else door.strategy(on_failure="skip")
    strategy._averages = replace(strategy._averages, weighted=weighted)
    mod = SecAggMod() if weighted else door.mod()
    grid = LocalGrid(make_app([mod], noting(trained)), configs())
    assert not run(grid, strategy).arrays
    assert not trained
    assert set(errors(grid)) == {"secagg: RemoteProtocolError"}


def test_a_plan_is_for_its_nodes_and_elements() -> None:
    for planned in (replace(PLAN, length=13), replace(PLAN, n_clients=4)):
        with pytest.raises(ParameterError):
            run(LocalGrid(secure_app(), configs()), noised(planned))
    smaller = replace(PLAN, n_clients=9)
    assert run(LocalGrid(secure_app(), configs()), noised(smaller)).arrays
    with pytest.raises(TooFewSurvivors):
        run(LocalGrid(secure_app(), configs(range(3))), noised())


# --- budgets of nodes --------------------------------------------------------------


def of_helpers(door: Door, epsilon: float) -> Noise:
    """Noise of helpers with which a node's budget has room for one sum."""
    if door.name == "four":
        return PLAN.noise
    params = OneShotParams.suggest(
        len(NODES),
        LENGTH,
        door.strategy()._averages.encoding,
        helpers=[journal.public for journal in door.party.journals],
        security="semi-honest",
        noise=Noise(1 << 20),
    )
    squares = Loss.of(params).squares * (1 << 40) / Budget(epsilon, DELTA).squares
    return Noise(Fraction(int(squares**0.5) + 1))


@pytest.fixture
def noise(door: Door) -> Callable[[], SecAgg]:
    """Strategies with so much noise that a node's budget has room for one sum."""
    if door.name == "four":
        return noised
    given = {"noise": of_helpers(door, 8.0), "max_weight": None}
    return lambda **settings: door.strategy(**{**given, **settings})


def test_check30_budget_is_spent_and_outlives_restarts(
    door: Door, noise: Callable[..., SecAgg]
) -> None:
    nodes = budgeted()
    assert run(door.grid(nodes=nodes), noise()).arrays
    assert sums(nodes) == [1] * len(NODES)
    trained: list[int] = []
    again = door.grid(noting(trained), nodes, run_id=2)
    assert not run(again, noise(on_failure="skip")).arrays
    assert not trained
    assert set(errors(again)) == {SPENT}
    assert sums(nodes) == [1] * len(NODES)


def test_a_node_with_another_id_has_the_same_budget(
    door: Door, noise: Callable[..., SecAgg]
) -> None:
    nodes = budgeted()
    run(door.grid(nodes=nodes), noise())
    moved = {node + 100: config for node, config in nodes.items()}
    again = door.grid(nodes=moved, run_id=2)
    assert not run(again, noise(on_failure="skip")).arrays
    assert set(errors(again)) == {SPENT}


def test_budget_declines_exact_sums_before_the_training(door: Door) -> None:
    trained: list[int] = []
    nodes = budgeted()
    grid = door.grid(noting(trained), nodes)
    assert not run(grid, door.strategy(on_failure="skip")).arrays
    assert not trained
    assert set(errors(grid)) == {SPENT}
    assert not list(Path(nodes[NODES[0]]["secagg-state-dir"]).glob("*.bounds"))


LIES: dict[str, Any] = {
    "lower sigma": replace(PLAN, budget=Budget(9, DELTA)),
    "fewer survivors": replace(PLAN, min_survivors=3, colluders=0),
    "no noise": None,
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("first", [False, True], ids=["at once", "after a sum"])
def test_check30_lies_about_the_noise_are_declined_before_training(
    lie: str, first: bool
) -> None:
    trained: list[int] = []
    nodes = budgeted(20.0)
    wide = replace(PLAN, budget=Budget(8, DELTA))
    if first:
        assert run(LocalGrid(secure_app(), nodes), noised(wide)).arrays
    else:  # the lie is too much for the budget
        nodes = budgeted(8.0 if lie != "fewer survivors" else 7.0)
    told = LIES[lie]
    strategy = noised(told, on_failure="skip", norm=2.0 if told is None else None)
    grid = LocalGrid(secure_app(train=noting(trained)), nodes, run_id=2)
    assert not run(grid, strategy).arrays
    assert not trained
    assert set(errors(grid)) <= {SPENT, "secagg: ParameterError"}
    assert errors(grid)


def test_a_failed_sum_is_spent_once_the_masked_input_has_left() -> None:
    nodes = budgeted()
    grid = LocalGrid(secure_app(), nodes)
    for node in NODES:
        grid.drop(node, after=3)  # its keys, its shares and its masked input
    assert not run(grid, noised(on_failure="skip")).arrays
    assert sums(nodes) == [1] * len(NODES)


def test_a_budget_that_is_spent_meanwhile_declines_before_the_training() -> None:
    """A server can begin two sums at once, while the budget has room for either."""
    nodes, trained = budgeted(), list[int]()
    grid = Meddler(secure_app(train=noting(trained)), nodes)

    def meddle(message: Message, answer: Callable[[Message], Message]) -> Message:
        task = read_task(message.content)
        if task is not None and task.phase == Phase.MASKED_INPUT:
            path = Path(nodes[message.metadata.dst_node_id]["secagg-state-dir"], "privacy.json")
            PrivacyLedger(path, Budget(8.0, DELTA)).spend(PLAN.params(session=b"another"))
        return answer(message)

    grid.meddle = meddle
    assert not run(grid, noised(on_failure="skip")).arrays
    assert not trained
    assert set(errors(grid)) == {SPENT}


@pytest.mark.parametrize(
    "config",
    [{"secagg-epsilon": 8.0}, {"secagg-epsilon": 0, "secagg-delta": DELTA}],
    ids=str,
)
def test_wrong_budgets_of_nodes(config: dict[str, Any], door: Door) -> None:
    nodes = {node: {**own, **config} for node, own in configs().items()}
    grid = door.grid(nodes=nodes)
    assert not run(grid, door.strategy(on_failure="skip")).arrays
    assert set(errors(grid)) == {"secagg: ParameterError"}


def test_a_torn_ledger_stops_its_node_alone() -> None:
    nodes = budgeted()
    folder = Path(nodes[NODES[0]]["secagg-state-dir"])
    folder.mkdir(parents=True)
    (folder / "privacy.json").write_text("{")
    grid = LocalGrid(secure_app(), nodes)
    assert run(grid, noised()).arrays
    assert errors(grid) == ["secagg: JournalError"]
