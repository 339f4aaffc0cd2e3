"""One-shot rounds for tests: strategies that draw them, and the assertion of an exact sum."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from hypothesis import strategies as st

from secagg._check import check_kind
from secagg.encoding import Vector
from secagg.encoding.clipping import losses_ignored
from secagg.errors import TooFewSurvivors
from secagg.oneshot import Accumulator, Helper, HelperJournal, OneShotParams, OneShotPolicy
from secagg.oneshot.client import write_report
from secagg.oneshot.suites import BoxKey
from secagg.protocol import Identity, Registry
from secagg.server import RoundResult
from secagg.testing.invariants import check_result, require
from secagg.testing.rounds import InsecureReplayedEntropy, Round, make_identity, toy_policy
from secagg.testing.strategies import client_ids, inputs, params

Tree = int | tuple["Tree", "Tree"]
"""A client's id for its report alone, or a pair of trees to merge."""

_TOY = OneShotPolicy(min_threshold=1, min_clients=2, colluders=0)


@dataclass(frozen=True, eq=False, kw_only=True)
class OneShotRound:
    """Inputs, helpers and entropy of a sum to run, drawn by `one_shot_rounds`.

    Attributes
    ----------
    params : OneShotParams
    vectors, weights : mappings by client id
        Vectors of the clients that report; `weights` is None in an unweighted sum.
    present : tuple of int, ascending
        Numbers of the helpers that answer, enough for a sum. The others drop out.
    tree : id, or pair of trees
        Order of merging the accumulators of single reports.
    seed : object
        Seed of the entropy of the clients.
    """

    params: OneShotParams
    vectors: Mapping[int, Vector]
    weights: Mapping[int, int] | None
    present: tuple[int, ...]
    tree: Tree
    seed: object = 0

    @cached_property
    def registry(self) -> Registry | None:
        """Registry of all clients' identities; None in the semi-honest variant."""
        return self.plain.registry

    @cached_property
    def plain(self) -> Round:
        """Round by secret sharing with these vectors, weights and modulus; no dropouts."""
        n = max(2, len(self.vectors))
        agreed = self.params.shared(n)
        return Round(
            params=agreed,
            vectors=self.vectors,
            weights=self.weights,
            dropouts={},
            policy=toy_policy(agreed),
            seed=self.seed,
        )

    def report(self, client_id: int) -> bytes:
        """Return a client's report, with seeds that follow from the round's seed."""
        made, _ = write_report(
            self.vectors[client_id],
            self.params,
            client_id,
            self.plain.weight(client_id),
            identity=make_identity(client_id) if self.params.active else None,
            policy=_TOY,
            entropy=self.plain.entropy(client_id),
        )
        return made

    @contextmanager
    def helpers(self, folder: str | os.PathLike[str]) -> Iterator[list[Helper]]:
        """Context manager of the helpers in `present`, with new journals in an empty folder."""
        with ExitStack() as journals:
            helpers = []
            for j in self.present:
                path = Path(folder) / f"helper {j}"
                entropy = InsecureReplayedEntropy(("helper", j))
                made = HelperJournal.create(path, self.params.suite, entropy=entropy)
                own = journals.enter_context(made)
                helpers.append(Helper(self.params, own, registry=self.registry, policy=_TOY))
            yield helpers

    def accumulator(self, tree: Tree | None = None) -> Accumulator:
        """Return the accumulator of a tree: all reports, merged in the tree's order."""
        tree = self.tree if tree is None else tree
        if isinstance(tree, tuple):
            merged = self.accumulator(tree[0])
            merged.merge(self.accumulator(tree[1]))
            return merged
        leaf = Accumulator(self.params, registry=self.registry)
        leaf.add(self.report(tree))
        return leaf


def helper_keys(count: int) -> list[tuple[bytes, bytes]]:
    """Return the public keys of the helpers 1 to `count` of tests, suite "x25519"."""
    return [_public(number) for number in range(1, count + 1)]


@st.composite
def one_shot_params(draw: st.DrawFn) -> OneShotParams:
    """Draw valid OneShotParams for 1 to 7 helpers, suite "x25519" and no noise.

    The threshold is at most 4, and the rest as in `params`.
    """
    agreed = draw(params())
    helpers = draw(st.integers(1, 7))
    return OneShotParams(
        n_clients=agreed.n_clients,
        length=agreed.length,
        encoding=agreed.encoding,
        modulus_bits=agreed.modulus_bits,
        modulus=agreed.modulus,
        helpers=tuple(helper_keys(helpers)),
        threshold=draw(st.integers(1, min(4, helpers))),
        min_clients=draw(
            st.sampled_from([2, agreed.n_clients]) | st.integers(2, agreed.n_clients)
        ),
        max_weight=agreed.max_weight,
        security=draw(st.sampled_from(["active", "semi-honest"])),
        suite="x25519",
        session=agreed.session or b"one-shot",
    )


@st.composite
def one_shot_rounds(draw: st.DrawFn) -> OneShotRound:
    """Draw an `OneShotRound`: parameters, inputs, helpers that drop out, and a merge tree.

    Enough helpers are present for a sum, but a few rounds have too few clients.
    """
    agreed = draw(one_shot_params())
    least, n = agreed.min_clients, agreed.n_clients
    # the limits are drawn often, where errors by one client show
    count = draw(st.sampled_from([n, n, least, least - 1]) | st.integers(least, n))
    ids = draw(st.just([*range(count)]) | client_ids(count))
    needed = max(agreed.threshold, agreed.quorum)
    numbers = st.sampled_from(range(1, len(agreed.helpers) + 1))
    present = draw(
        st.sets(numbers, min_size=needed, max_size=needed) | st.sets(numbers, min_size=needed)
    )
    tree = draw(_trees(ids))
    seed = draw(st.integers(0, (1 << 32) - 1))
    vectors, weights = inputs(draw, agreed.shared(n), ids)
    return OneShotRound(
        params=agreed,
        vectors=vectors,
        weights=weights,
        present=tuple(sorted(present)),
        tree=tree,
        seed=seed,
    )


def assert_exact_one_shot_sum(
    round: OneShotRound, aggregate: Callable[[OneShotRound], RoundResult]
) -> None:
    """Run `round` with an aggregator and check the result.

    The sum must be, bit for bit, the plain integer sum over all clients. The aggregator must
    raise `TooFewSurvivors` if there are fewer than ``params.min_clients``, and only then.

    Parameters
    ----------
    round : OneShotRound
        Round to run, for example drawn by ``testing.one_shot_rounds()``.
    aggregate : callable
        Function under test. `aggregate` gets the round, leaves out the helpers that are not in
        ``round.present``, and returns an OneShotResult or raises TooFewSurvivors.

    Raises
    ------
    AssertionError
        The sum, the survivors, `outvoted` or the abort is wrong.
    ParameterError
        The aggregator returned another type.
    """
    ids, least = tuple(sorted(round.vectors)), round.params.min_clients
    try:
        # the drawn vectors are clipped, or below a step, on purpose
        with losses_ignored():
            result = aggregate(round)
    except TooFewSurvivors as error:
        require(len(ids) < least, f"a sum of enough clients was aborted: {error}")
        return
    check_kind("the aggregator's result", result, RoundResult, "an OneShotResult")
    require(len(ids) >= least, f"{len(ids)} clients, fewer than {least}, were opened: {result}")
    require(
        tuple(result.survivors) == ids, f"the sum is over {result.survivors} instead of {ids}"
    )
    outvoted = tuple(getattr(result, "outvoted", ()))
    require(not outvoted, f"honest helpers {outvoted} were outvoted")
    check_result(round.plain, result)


@st.composite
def _trees(draw: st.DrawFn, ids: Iterable[int]) -> Tree:
    """Draw a tree over all ids, balanced, a chain, or of any other form."""
    leaves: list[Tree] = [*ids]
    while len(leaves) > 1:
        at = draw(st.integers(0, len(leaves) - 2))
        leaves[at : at + 2] = [(leaves[at], leaves[at + 1])]
    return leaves[0]


@cache
def _public(number: int) -> tuple[bytes, bytes]:
    # the same in every round, drawn in the order of HelperJournal.create
    entropy = InsecureReplayedEntropy(("helper", number))
    box = BoxKey("x25519", entropy(32))
    return box.public, Identity(entropy(32)).public
