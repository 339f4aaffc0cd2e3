from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest

from harness import TOY, make_params
from secagg import (
    Client,
    ClientPolicy,
    FixedPoint,
    Integers,
    ParameterError,
    RoundParams,
    graph,
    simulate_round,
)


@pytest.mark.parametrize(
    ("n", "neighbours", "threshold", "accepted"),
    [
        (10, None, 5, False),
        (10, None, 6, True),
        (10, None, 10, True),
        (10, None, 11, False),
        (9, None, 4, False),
        (9, None, 5, True),
        (100, 20, 1, False),
        (100, 20, 2, True),
        (100, 20, 20, True),
        (100, 20, 21, False),
    ],
)
def test_check05_threshold_is_a_majority_or_within_neighbours(
    n: int, neighbours: int | None, threshold: int, accepted: bool
) -> None:
    """The threshold is a majority, or on a graph at most the neighbours."""
    if accepted:
        assert make_params(n, threshold, neighbours=neighbours).threshold == threshold
    else:
        with pytest.raises(ParameterError, match=rf"^threshold\b.*(?<!\S){threshold}\b"):
            make_params(n, threshold, neighbours=neighbours)


def test_check06_two_clients_are_rejected_unless_allowed() -> None:
    """Two clients are rejected without allow_two_clients."""
    with pytest.raises(ParameterError, match="allow_two_clients=True"):
        make_params(2, 2)
    params = make_params(2, 2, allow_two_clients=True)
    with pytest.raises(ParameterError, match="min_clients"):
        Client(0, params)
    with pytest.raises(ParameterError, match="allow_two_clients=True"):
        ClientPolicy(min_clients=2)
    both = ClientPolicy(min_clients=2, allow_two_clients=True)
    assert Client(0, params, policy=both).phase == "advertise_keys"


def test_check06_sum_never_has_fewer_than_three_inputs() -> None:
    assert make_params(3, 2).min_survivors == 3
    assert make_params(2, 2, allow_two_clients=True).min_survivors == 2
    assert make_params(9, 7).min_survivors == 7


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        (ClientPolicy(min_threshold=6), r"\bmin_threshold\b.*\b6\b"),
        (ClientPolicy(min_clients=10), r"\bmin_clients\b.*\b10\b"),
        (ClientPolicy(max_length=3), r"\bmax_length\b.*\b3\b"),
    ],
)
def test_check04_parameters_below_the_policy_are_rejected(
    policy: ClientPolicy, named: str
) -> None:
    with pytest.raises(ParameterError, match=named):
        accept(make_params(9, 5), policy)


def test_check14_headroom_counts_all_clients_not_the_neighbours() -> None:
    """R must exceed the sum of n vectors, however few of them share masks."""
    fits = make_params(100, encoding=Integers(max=2), modulus_bits=8, neighbours=4)
    assert fits.ring.modulus == 256
    with pytest.raises(ParameterError, match="modulus_bits=9"):
        make_params(100, encoding=Integers(max=3), modulus_bits=8, neighbours=4)


@pytest.mark.parametrize(
    ("changes", "smallest"),
    [
        ({"encoding": Integers(max=7)}, 5 * 7 + 1),
        ({"encoding": Integers(max=7), "max_weight": 10}, 5 * 70 + 1),
        ({"encoding": FixedPoint(clip=2.0, fractional_bits=3)}, 2 * 5 * 16 + 1),
        ({"encoding": FixedPoint(clip=1.3, fractional_bits=0)}, 2 * 5 * 2 + 1),
        ({"encoding": FixedPoint(clip=2.0, fractional_bits=3), "max_weight": 3}, 2 * 240 + 1),
    ],
)
def test_check14_smallest_modulus_is_exact(changes: dict[str, object], smallest: int) -> None:
    assert make_params(5, modulus=smallest, **changes).ring.modulus == smallest
    with pytest.raises(ParameterError, match=rf"\b{smallest}\b"):
        make_params(5, modulus=smallest - 1, **changes)


def test_check14_smallest_modulus_has_room_for_every_clipped_element() -> None:
    few = {"encoding": Integers(max=1), "length": 9, "count_clipped": True}
    assert make_params(5, modulus=46, **few).elements == 10
    with pytest.raises(ParameterError, match=r"modulus_bits=6.* count_clipped"):
        make_params(5, modulus=45, **few)
    assert make_params(5, modulus=64, max_weight=2, **few).elements == 11


def test_check14_largest_possible_sum_comes_out_right() -> None:
    for sign in (1.0, -1.0):
        params = make_params(
            5, encoding=FixedPoint(2.0, 3, rounding="nearest"), modulus=161, max_weight=None
        )
        result = simulate_round([np.full(4, 2.0 * sign)] * 5, params)
        assert result.sum.tolist() == [10.0 * sign] * 4


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"n": 1}, r"^n_clients\b.*\b1\b"),
        ({"n": 5.0}, r"n_clients .*5\.0"),
        ({"threshold": 0}, r"^threshold\b.*\b0\b"),
        ({"length": 0}, r"^length\b.*\b0\b"),
        ({"neighbours": 3}, r"^neighbours\b.*\b3\b"),
        ({"neighbours": 6}, r"^neighbours\b.*\b6\b"),
        ({"n": 2, "allow_two_clients": True, "neighbours": 2}, "None"),
        ({"n": 5, "threshold": 10**400}, r"\b1329\b"),
        ({"encoding": FixedPoint}, "encoding"),
        ({"encoding": FixedPoint(2.0**60, 0), "max_weight": 9}, "modulus"),
        ({"modulus_bits": 65}, r"^modulus_bits\b.*\b65\b"),
        ({"modulus": 1}, r"^modulus\b.*\b1\b"),
        ({"modulus": (1 << 62) + 1}, f"modulus {(1 << 62) + 1}"),
        ({"modulus": 97, "modulus_bits": 8}, "modulus_bits"),
        ({"encoding": None}, "encoding"),
        ({"max_weight": 0}, r"^max_weight\b.*\b0\b"),
        ({"length": 1 << 30}, "length 1073741824"),
        ({"session": "name"}, "session"),
        ({"session": bytes(65)}, "session"),
        ({"security": "malicious"}, "'malicious'"),
        ({"security": "semi-malicious"}, "'semi-malicious'"),
        ({"security": "active", "session": b""}, "session=b'"),
        (
            {"n": 100, "neighbours": 12, "threshold": 67, "security": "active"},
            r"^neighbours\b.*\b12\b.*'active'",
        ),
        ({"encoding": Integers(max=1 << 62), "modulus_bits": 64}, str(5 * 2**62 + 1)),
    ],
)
def test_bad_parameter_is_named_with_its_value(changes: dict[str, object], named: str) -> None:
    with pytest.raises(ParameterError, match=named):
        make_params(**{"n": 5, **changes})


# other values of every field, each by itself, from the seven clients of `BASE`
BASE = {"n": 7, "threshold": 5, "session": b"one"}
OTHERS: dict[str, list[object]] = {
    "n_clients": [8],
    "threshold": [6],
    "length": [5],
    "encoding": [
        FixedPoint(clip=4.0),
        FixedPoint(clip=8.0, fractional_bits=15),
        Integers(max=8),
    ],
    "modulus_bits": [33],
    "modulus": [(1 << 32) + 1],
    "neighbours": [6],
    "max_weight": [1, 2],
    "session": [b"", b"two"],
    "allow_two_clients": [True],
    "count_clipped": [True],
    "security": ["active"],
}


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(RoundParams)])
def test_digest_changes_with_every_field(name: str) -> None:
    base = make_params(**BASE)
    assert OTHERS[name]
    for value in OTHERS[name]:
        assert dataclasses.replace(base, **{name: value}).digest != base.digest


def test_digests_of_different_parameters_differ() -> None:
    base = make_params(**BASE)
    digests = {base.digest}
    for name, values in OTHERS.items():
        digests |= {dataclasses.replace(base, **{name: value}).digest for value in values}
    assert len(digests) == 1 + sum(map(len, OTHERS.values()))
    assert dataclasses.replace(base).digest == base.digest


@pytest.mark.parametrize(
    ("n", "least"), [(3, 3), (4, 3), (5, 4), (6, 5), (7, 5), (99, 67), (100, 67), (101, 68)]
)
def test_check05_active_threshold_is_above_two_thirds(n: int, least: int) -> None:
    """The active threshold is above two thirds exactly."""
    assert make_params(n, least, security="active").threshold == least
    with pytest.raises(ParameterError, match=rf"\b{least}\b.*\b{n}\b"):
        make_params(n, least - 1, security="active")


def test_check14_sum_that_does_not_fit_int64_is_rejected() -> None:
    """3 · 2^62 has room in R = 2^64, but not in the int64 the sum is returned in."""
    with pytest.raises(ParameterError, match="int64"):
        make_params(3, 2, encoding=Integers(max=1 << 62), modulus_bits=64)
    assert make_params(3, 2, encoding=Integers(max=((1 << 63) - 1) // 3), modulus_bits=64)


def test_check04_on_a_graph_the_policy_counts_the_neighbourhood() -> None:
    params = make_params(100, neighbours=4)
    with pytest.raises(ParameterError, match=r"\bmin_clients\b.*\b6\b"):
        Client(0, params, policy=dataclasses.replace(TOY, min_clients=6))
    assert Client(0, params, policy=dataclasses.replace(TOY, min_clients=5))


# ---- the graph a client accepts


def no_entropy(size: int) -> bytes:
    raise AssertionError("something secret was computed first")


def accept(params: RoundParams, policy: ClientPolicy | None = None) -> Client:
    return Client(0, params, policy=policy, entropy=no_entropy)


@pytest.mark.parametrize(("n", "k", "t"), [(1000, 34, 17), (1000, 28, 28), (31, 30, 2)])
def test_check04_graph_exposing_clients_is_rejected(n: int, k: int, t: int) -> None:
    """Colluding neighbours, a graph in pieces, and everyone a neighbour at a low threshold."""
    params = make_params(n, t, neighbours=k)
    policy = ClientPolicy(corrupt=0.1, dropout=0.33)
    with pytest.raises(ParameterError, match=rf"^{k}\b.*\b{t}\b") as caught:
        accept(params, policy)
    bits = graph.privacy_bits(n, k, t, 0.1, 0.33)
    assert bits < 40
    assert f" {bits:.1f} " in str(caught.value)
    found = re.search(r"neighbours=(\d+)\D+threshold=(\d+)", str(caught.value))
    assert found is not None
    better = {"neighbours": int(found[1]), "threshold": int(found[2])}
    assert accept(make_params(n, **better), policy)


def test_check04_default_policy_expects_a_fifth_and_a_tenth() -> None:
    """The default policy expects a fifth to collude, and a tenth to drop out."""
    k, t = graph.recommend(1000, 0.2, 0.1)
    assert accept(make_params(1000, t, neighbours=k))
    with pytest.raises(ParameterError):
        accept(make_params(1000, t - 1, neighbours=k))
    assert accept(make_params(1000, t - 1, neighbours=k), ClientPolicy(corrupt=0.18))


def test_check04_policy_requires_sigma_bits() -> None:
    bits = graph.privacy_bits(200, 50, 31, 0.2, 0.1)
    params = make_params(200, 31, neighbours=50)
    assert accept(params, ClientPolicy(sigma=int(bits)))
    with pytest.raises(ParameterError):
        accept(params, ClientPolicy(sigma=int(bits) + 1))


def test_check04_dropouts_alone_can_cut_a_graph() -> None:
    params = make_params(1000, 2, neighbours=4)
    assert accept(params, TOY)
    with pytest.raises(ParameterError, match=r"\b4\b.*\b2\b"):
        accept(params, ClientPolicy(corrupt=0, dropout=0.05))


def test_check04_policy_raises_where_no_graph_is_safe() -> None:
    params = make_params(5, 2, neighbours=2)
    with pytest.raises(ParameterError):
        accept(params, ClientPolicy(corrupt=0.5, dropout=0.5))


@pytest.mark.parametrize(
    ("n", "t", "security", "corrupt", "least"),
    [
        (100, 51, "semi-honest", 0.6, 62),
        (100, 60, "semi-honest", 0.6, 62),
        (4, 3, "semi-honest", 0.5, 4),
        (100, 67, "active", 0.4, 71),
        (100, 70, "active", 0.4, 71),
        (101, 70, "active", 0.4, 72),  # 41 of 101: 2 · 71 is not above 142
        (101, 71, "active", 0.4, 72),
    ],
)
def test_check05_colluders_never_reach_the_threshold(
    n: int, t: int, security: str, corrupt: float, least: int
) -> None:
    """On the complete graph colluders must not reach the threshold."""
    policy = ClientPolicy(corrupt=corrupt)
    named = rf"threshold\b.*\b{t}\b.*\b{least}\b"
    with pytest.raises(ParameterError, match=named):
        policy.check(make_params(n, t, security=security))
    policy.check(make_params(n, least, security=security))
    with pytest.raises(ParameterError, match=rf"threshold\b.*\b{least - 1}\b"):
        policy.check(make_params(n, least - 1, security=security))


def test_check05_error_names_colluders_or_no_threshold() -> None:
    """The error names the number of colluders, and says if no threshold is safe."""
    with pytest.raises(ParameterError, match=r"0\.4 .* 40"):
        ClientPolicy(corrupt=0.4).check(make_params(100, 67, security="active"))
    with pytest.raises(ParameterError):
        ClientPolicy(corrupt=0.99).check(make_params(5, 5))


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_default_policy_accepts_thresholds_of_complete_graph(
    security: str,
) -> None:
    """The smallest legal one, which `make_params` takes, for every n and some large ones."""
    for n in [*range(2, 1000), 4097, 1 << 20]:
        two = n == 2
        policy = ClientPolicy(min_clients=2 if two else 3, allow_two_clients=two)
        wide = {"encoding": Integers(max=1), "allow_two_clients": two}
        policy.check(make_params(n, security=security, **wide))


# ---- the cohort a client accepts


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        (ClientPolicy(min_cohort=10), r"\bmin_cohort\b.*\b10\b"),
        (ClientPolicy(colluders=5), r"threshold\b.*\b5\b.*\b5\b"),
        (ClientPolicy(colluders=10**6), "threshold"),
    ],
)
def test_check43_parameters_that_can_never_suffice_are_rejected(
    policy: ClientPolicy, named: str
) -> None:
    with pytest.raises(ParameterError, match=named):
        accept(make_params(9, 5), policy)


def test_check43_colluders_replace_the_fraction() -> None:
    """The same number by either name; 51 of 1,000 cost (34, 18) too much for 42 bits."""
    params = make_params(1000, 18, neighbours=34)
    stated = {"dropout": 0.05, "sigma": 42}
    for assumed in ({"corrupt": 0.05}, {"corrupt": 0.9, "colluders": 50}):
        assert accept(params, ClientPolicy(**assumed, **stated))
    with pytest.raises(ParameterError):
        accept(params, ClientPolicy(colluders=51, **stated))


@pytest.mark.parametrize("n", [3, 10, 100, 208, 1000, 4097])
@pytest.mark.parametrize(("corrupt", "dropout"), [(0.05, 0.05), (0.1, 0.1), (0.33, 0.33)])
def test_check43_full_roster_of_accepted_parameters_is_accepted(
    n: int, corrupt: float, dropout: float
) -> None:
    """Also at 40.0 bits; smaller rosters, down to the smallest cohort and no further."""
    policy = ClientPolicy(corrupt=corrupt, dropout=dropout)
    try:
        k, t = graph.recommend(n, corrupt, dropout)
    except ParameterError:
        assert n == 3
        return
    params = make_params(n, t, neighbours=k, encoding=Integers(max=1))
    policy.check(params)
    assert policy.objection(params, n) is None
    if k is not None:
        colluders = math.ceil(round(corrupt * n, 9))
        least = graph.smallest_cohort(n, k, t, colluders, dropout)
        assert policy.objection(params, least) is None
        assert policy.smallest_cohort(params) == least
        assert least == max(3, t) or policy.objection(params, least - 1) is not None


# ---- numpy's numbers


@pytest.mark.parametrize("kind", [np.int16, np.int64, np.uint8])
def test_params_accept_numpy_moduli(kind: type[np.integer]) -> None:
    assert make_params(5, 3, modulus_bits=kind(64)).ring.modulus == 1 << 64
    assert make_params(5, 3, modulus=np.int64(1 << 40)).ring.modulus == 1 << 40


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint8])
def test_policy_accepts_numpy_integers(kind: type[np.integer]) -> None:
    policy = ClientPolicy(sigma=kind(40), min_threshold=kind(2), min_clients=kind(3))
    assert accept(make_params(1000, 45, neighbours=74), policy)
    assert policy == ClientPolicy()
    numbers = ClientPolicy(min_cohort=kind(9), colluders=kind(2))
    assert (type(numbers.min_cohort), type(numbers.colluders)) == (int, int)
    assert {type(x) for x in (policy.sigma, policy.min_threshold, policy.min_clients)} == {int}
    assert type(ClientPolicy(max_length=np.int64(9)).max_length) is int


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_policy_accepts_numpy_fractions_exactly(kind: type[np.floating]) -> None:
    """np.float32(0.07) · 100 is 7, and not the 7.0000003 that would make 8."""
    policy = ClientPolicy(corrupt=kind(0.07), dropout=kind(0.05))
    assert (policy.corrupt, policy.dropout) == (0.07, 0.05)
    assert {type(policy.corrupt), type(policy.dropout)} == {float}
    k, t = graph.recommend(100, kind(0.07), kind(0.05))
    assert (k, t) == graph.recommend(100, 0.07, 0.05)
    with pytest.raises(ParameterError):
        ClientPolicy(corrupt=kind(1))


@pytest.mark.parametrize("name", ["corrupt", "dropout", "sigma"])
@pytest.mark.parametrize("bad", [-0.1, 1.0, True, "0.1", float("nan"), None])
def test_check04_assumption_out_of_range_raises_with_its_name(name: str, bad: object) -> None:
    with pytest.raises(ParameterError, match=name):
        ClientPolicy(**{name: bad})


# ---- types and bounds


@pytest.mark.parametrize("name", ["n", "threshold", "length", "max_weight", "modulus_bits"])
def test_bool_is_not_accepted_as_a_number(name: str) -> None:
    with pytest.raises(ParameterError, match="True"):
        make_params(**{"n": 5, name: True})


@pytest.mark.parametrize("name", ["min_clients", "min_threshold", "max_length"])
@pytest.mark.parametrize("bad", [0, -1, 1.0, "3", True, 1 << 40])
def test_check04_policy_out_of_range_raises_with_its_name(name: str, bad: object) -> None:
    with pytest.raises(ParameterError, match=name):
        ClientPolicy(**{name: bad})
    with pytest.raises(ParameterError, match=r"^min_clients\b.*\b1\b"):
        ClientPolicy(min_clients=1, allow_two_clients=True)


@pytest.mark.parametrize("name", ["min_cohort", "colluders"])
@pytest.mark.parametrize("bad", [-1, 1.0, "3", True, 1 << 40])
def test_check43_number_out_of_range_raises_with_its_name(name: str, bad: object) -> None:
    with pytest.raises(ParameterError, match=name):
        ClientPolicy(**{name: bad})


def test_bounds_are_inclusive() -> None:
    policy = ClientPolicy(min_clients=9, min_threshold=5, max_length=4)
    assert Client(0, make_params(9, 5), policy=policy)
    assert make_params(5, session=bytes(64))


def test_check14_two_to_the_63_itself_does_not_fit_int64() -> None:
    with pytest.raises(ParameterError, match="int64"):
        make_params(4, encoding=Integers(max=1 << 61), modulus_bits=64)
