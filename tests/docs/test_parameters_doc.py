"""docs/parameters.md and graphs.md are recomputed: tables and formulas are the code's."""

from __future__ import annotations

import importlib
import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import independent_bounded
from harness import make_params
from independent_noise import bound, scaled_share
from secagg import Bounded, ClientPolicy, FixedPoint, Integers, Noise, ParameterError, Phase
from secagg.graph import privacy_bits, recommend, smallest_cohort, tails
from secagg.protocol.traffic import client_traffic

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "\n".join(
    (DOCS / name).read_text(encoding="utf-8") for name in ("parameters.md", "graphs.md")
)


def rows(header: str) -> list[list[str]]:
    """The cells of the table whose header line begins so."""
    lines = TEXT[TEXT.index(f"\n| {header}") + 1 :].splitlines()
    table = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


def pair(cell: str) -> tuple[int, int]:
    k, t = cell.strip("*").split(", ")
    return int(k), int(t)


def count(fraction: float, n: int) -> int:
    return math.ceil(Fraction(str(fraction)) * n)


COMPARED = rows("server | corrupt / dropout | n | k, t | highest t | E1 bits")
DEFAULTS = rows("server | corrupt / dropout | n | k, t | highest t | privacy bits")


def case(row: list[str]) -> tuple[str, int, float, float]:
    corrupt, dropout = map(float, row[1].split(" / "))
    return row[0], 10 ** int(row[2].removeprefix("10^")), corrupt, dropout


def is_good(
    n: int, k: int, t: int, c: int, d: int, security: str, *, split: bool, of_n: bool, own: int
) -> bool:
    """E1, E2 and E3 at σ = 40 and η = 20, with the doc's A, B and C undone as asked."""
    drawn_from = n if of_n else n - 1
    limit = t if security == "semi-honest" else 2 * t - k - own
    e1 = n * tails.at_least(drawn_from, c, k, limit)
    e2 = tails.in_pieces(n, c + d, k)
    e3 = n * tails.at_least(drawn_from, d, k, k - t + 1)
    private = max(e1, e2) <= Fraction(1, 2**41) if split else e1 + e2 <= Fraction(1, 2**40)
    return private and e3 <= Fraction(1, 2**20)


@pytest.mark.parametrize("row", COMPARED, ids=lambda row: " ".join(row[:3]))
def test_comparison_is_that_of_the_finder(
    row: list[str],
) -> None:
    """The comparison is what the code finds and its differences are those named."""
    security, n, corrupt, dropout = case(row)
    c, d = count(corrupt, n), count(dropout, n)
    found = recommend(n, corrupt, dropout, security, 40, 20)
    k, t = found
    assert (k, t) == pair(row[3])
    assert found.highest_threshold == int(row[4])
    limit = t if security == "semi-honest" else 2 * t - k - 1
    bits = [
        tails.bits(tails.too_many_corrupt(n, c, k, limit)),
        tails.bits(tails.in_pieces(n, c + d, k)),
        tails.bits(tails.few_left(n, d, k, t)),
    ]
    assert [f"{b:.1f}" for b in bits] == row[5:8]

    ours = {"split": False, "of_n": False, "own": 1}
    undone = {8: {"split": True}, 9: {"of_n": True}, 10: {"own": 0}}
    everything = {"split": True, "of_n": True, "own": 0}
    for column, changes in {**undone, 11: everything}.items():
        if row[column] == "–":
            assert (column, security) == (10, "semi-honest")
            continue
        k, t = pair(row[3]) if row[column] == "=" else pair(row[column])
        rule = ours | changes
        assert (row[column] == "=") == ((k, t) == tuple(found)) or column == 11
        assert is_good(n, k, t, c, d, security, **rule)
        assert not is_good(n, k, t - 1, c, d, security, **rule)
        assert not any(
            is_good(n, k - 2, below, c, d, security, **rule)
            for below in range(max(2, t - 4), min(k - 2, t + 1) + 1)
        )


@pytest.mark.parametrize("row", DEFAULTS, ids=lambda row: " ".join(row[:3]))
def test_defaults_are_those_of_the_finder(row: list[str]) -> None:
    security, n, corrupt, dropout = case(row)
    found = recommend(n, corrupt, dropout, security)
    shown = [found.privacy_bits, found.completion_bits]
    assert pair(row[3]) == tuple(found)
    assert int(row[4]) == found.highest_threshold
    assert row[5:] == ["∞" if b == math.inf else f"{b:.1f}" for b in shown]


def test_figures_in_the_text_are_those_of_the_code() -> None:
    assert "# {}, {}".format(*recommend(1000, corrupt=0.05, dropout=0.05)) in TEXT
    assert "k {}, t {}".format(*recommend(1000, 0, 0.33)) in TEXT
    assert tails.bits(tails.in_pieces(1000, 330, 34)) < 40


def test_figures_for_fewer_clients_are_those_of_the_code() -> None:
    """By rounding; by the same colluders among fewer; and not, where they are counted so."""
    fewer = rows("of 1000 turn up | privacy bits")
    assert len(fewer) == 5
    for clients, shown in fewer:
        bits = privacy_bits(int(clients), 34, 18, 0, 0.05, colluders=50)
        assert f"{bits:.1f}" == shown

    assert recommend(208, 0.1, 0.1) == (36, 19)
    alike = {m: privacy_bits(m, 36, 19, 0.1, 0.1) for m in range(40, 209)}
    assert min(alike, key=alike.__getitem__) == 201
    assert (count(0.1, 201), count(0.1, 200)) == (21, 20)
    plain = " ".join(TEXT.split())
    assert f"{alike[208]:.1f} bits for 208" in plain
    assert f"{alike[201]:.1f} for 201" in plain

    assert count(50 / 600, 600) == 50 <= 0.084 * 600
    found = recommend(1000, 0.084, 0.05)
    assert "`recommend(1000, 0.084, 0.05)` is {}, {},".format(*found) in plain
    least = min(privacy_bits(m, *found, 0, 0.05, colluders=50) for m in range(600, 1001))
    assert f"{least:.1f} bits" in plain
    assert f"The smallest cohort is {smallest_cohort(1000, *found, 50, 0.05)}." in plain
    assert f"{smallest_cohort(1000, 34, 18, 50, 0.05)} of 1000 for (34, 18)" in plain
    assert smallest_cohort(208, 36, 19, 21, 0.1) == 208
    assert recommend(1000, 0.2, 0.1) == (74, 45)
    assert smallest_cohort(1000, 74, 45, 200, 0.1) == 1000
    roomy = recommend(1000, 0.2223, 0.1)
    shown = "{}, {}, from `RoundParams.suggest(1000, ..., corrupt=0.2223)`"
    assert shown.format(*roomy) in plain
    assert f"accepted from {smallest_cohort(1000, *roomy, 200, 0.1)} clients" in plain


def test_formulas_give_the_bytes() -> None:
    def b(x: int) -> int:
        return x + (2 if x < 2**8 else 3 if x < 2**16 else 5)

    def i(v: int) -> int:
        return 1 if v < 2**7 else 2 if v < 2**8 else 3 if v < 2**16 else 5 if v < 2**32 else 9

    formulas = rows("phase | way | bytes")
    assert len(formulas) == 9
    for n, k, u, weighted, active, counted, suite in [
        (9, None, 3, True, False, False, "x25519"),
        (700, 40, 300, False, False, False, "hybrid"),
        (3000, None, 9, True, False, True, "x25519"),
        (300, None, 9, True, True, True, "x25519"),
        (90, None, 9, True, True, True, "hybrid"),
    ]:
        params = make_params(
            n,
            neighbours=k,
            length=12_345,
            max_weight=4 if weighted else None,
            encoding=Integers(max=3),
            modulus_bits=26,
            count_clipped=counted,
            security="active" if active else "semi-honest",
            suite=suite,
        )
        g1 = n - 1 if k is None else k + 1
        g2, g3 = g1 - 2, g1 - 5
        traffic = client_traffic(params, client_id=u, cohort=n - 1, u2=g2, u3=g3)
        names = {"u": u, "n1": n - 1, "g1": g1, "g2": g2, "g3": g3, "b": b, "i": i}
        names["p"] = len(params.to_bytes())
        names |= {"s": 64, "g4": g3} if active else {"s": 0, "g4": 0}
        hybrid = suite == "hybrid"
        names |= {"a": int(active), "q": int(hybrid), "x": 1248 if hybrid else 96}
        names["L"] = math.ceil(math.log2(g1))
        packed = -(-26 * (12_345 + weighted + counted) // 8)
        seen = dict.fromkeys(traffic, 0)
        for phase, way, formula in formulas:
            plain = formula.strip("`").replace("·", "*").replace("−", "-")
            plain = plain.replace("⌈e*w / 8⌉", str(packed))
            if Phase(phase) not in traffic:
                assert not active
                continue
            assert eval(plain, {}, names) == getattr(traffic[Phase(phase)], way)  # noqa: S307
            seen[Phase(phase)] += 1
        assert traffic[Phase.ADVERTISE_KEYS].down == 0
        assert list(seen.values()) == ([1, 2, 2, 2, 2] if active else [1, 2, 2, 2])


@pytest.mark.parametrize("row", rows("constant | value"), ids=lambda row: row[0])
def test_constants_have_their_values(row: list[str]) -> None:
    path, _, name = row[0].strip("`").rpartition(".")
    value = getattr(importlib.import_module(path), name)
    assert value == eval(row[1].replace("^", "**").replace("−", "-"))  # noqa: S307


ONES = Integers(max=1)
ROTATION = independent_bounded.Rotation(independent_bounded.Bounded(1.0, 9), b"", 4, False)
WIDE = {"encoding": ONES, "modulus_bits": 64}
BOUNDS: dict[str, tuple[Callable[[int], object], int, int]] = {
    # accepted at the value, rejected one step beyond it in this direction
    "n_clients": (lambda n: make_params(n, **WIDE), 2**20, 1),
    "length": (lambda d: make_params(length=d, encoding=ONES, modulus_bits=8), 2**31, 1),
    "modulus that is a power of two": (lambda b: make_params(modulus_bits=b), 64, 1),
    "any other modulus": (lambda r: make_params(modulus=r, encoding=ONES), 2**62, 1),
    "modulus of Integers(max=M), n clients, weights up to w": (
        lambda r: make_params(5, modulus=r, encoding=Integers(max=7), max_weight=3),
        5 * 7 * 3 + 1,
        -1,
    ),
    "modulus with count_clipped, n clients, length d": (
        lambda r: make_params(5, modulus=r, encoding=ONES, length=9, count_clipped=True),
        5 * 9 + 1,
        -1,
    ),
    "modulus of FixedPoint": (
        lambda r: make_params(5, modulus=r, encoding=FixedPoint(1.7, 3), max_weight=3),
        2 * 5 * math.ceil(1.7 * 8) * 3 + 1,
        -1,
    ),
    "modulus with noise": (
        lambda r: make_params(5, 4, modulus=r, encoding=Integers(max=7), noise=Noise(200, 1)),
        5 * 7 + 1 + 2 * bound(scaled_share(256 * 200, 4, 1), 5),
        -1,
    ),
    "modulus of Bounded": (
        lambda r: make_params(5, modulus=r, encoding=Bounded(1.0, 9)),
        next(r for r in itertools.count(3) if ROTATION.has_room(5, r, 0)),
        -1,
    ),
    "s, deviation of a client's noise": (
        # four honest shares of 1024 / 256 steps each, rounded up
        lambda scaled: make_params(5, 4, noise=Noise(Fraction(scaled, 256))),
        2 * 1023 + 1,
        -1,
    ),
    "colluders of the noise": (
        lambda c: make_params(5, 4, noise=Noise(200, c), modulus_bits=40),
        4 - 2,
        1,
    ),
    "steps of Bounded": (lambda steps: Bounded(1.0, steps), 2**30, 1),
    "norm of Bounded": (lambda exponent: Bounded(2.0**exponent, 1), 100, 1),
    "sum": (
        lambda total: make_params(7, encoding=Integers(max=-(-total // 7)), modulus_bits=64),
        2**63 - 1,
        1,
    ),
    "max_weight": (lambda w: make_params(3, max_weight=w, **WIDE), 2**53, 1),
    "session": (lambda size: make_params(session=bytes(size)), 64, 1),
    "survivors": (lambda size: ClientPolicy(min_clients=size), 3, -1),
    "threshold, complete graph": (lambda t: make_params(10, t), 6, -1),
    "threshold, on a graph": (lambda t: make_params(30, t, neighbours=10), 2, -1),
    "min_clients of a policy": (lambda size: ClientPolicy(min_clients=size), 3, -1),
}


def test_bounds_are_those_of_the_page() -> None:
    table = {row[0]: row[1] for row in rows("bound | value")}
    policy = ClientPolicy()
    defaults = {
        "corrupt of a policy": (policy.corrupt, 0.2),
        "dropout of a policy": (policy.dropout, 0.1),
        "σ": (policy.sigma, recommend.__defaults__[1], 40),
        "η": (recommend.__defaults__[2], 30),
    }
    assert table.keys() == BOUNDS.keys() | defaults.keys()
    for name, (make, value, step) in BOUNDS.items():
        make(value)
        with pytest.raises(ParameterError):
            make(value + step)
        shown = table[name].removesuffix(" bytes")
        if re.fullmatch(r"[\d^− ]+", shown) and "power" not in name:
            assert value == eval(shown.replace("^", "**").replace("−", "-"))  # noqa: S307
    for name, values in defaults.items():
        assert {float(value) for value in values} == {float(table[name])}
    assert make_params(10).min_survivors == 6
    assert make_params(4).min_survivors == int(table["survivors"])
