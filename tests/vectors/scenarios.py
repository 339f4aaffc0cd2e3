"""The rounds of rounds.json of suite x25519: the participants, and their dropouts."""

from draws import draw
from inputs import ACTIVE, WIDE, make, party
from parties import Party
from whole_round import Round, graph_order, neighbourhoods

from independent_noise import Noise
from independent_params import Parameters
from independent_primitives import u64le
from independent_sums import Bounded, FixedPoint, Integers


def annex_a(security: str) -> Round:
    params = Parameters(4, 3, 3, FixedPoint(1.0, 8), 2**15, max_weight=10, session=b"example",
                    security=security)  # fmt: skip
    inputs = {1: ([0.5, -0.25, 1.5], 2), 2: ([0.001953125, 0.005859375, -1.0], 3),
              3: ([0.1, 0.2, -0.3], 10), 300: ([0.0, 0.0, 0.0], 1)}  # fmt: skip
    parties = []
    for i, (u, (vector, weight)) in enumerate(inputs.items(), 1):
        draws = [bytes([0x10 * kind + i]) * 32 for kind in (1, 2, 3)]
        draws.append(
            b"".join(u64le(1000 * i + 10 * (j - 1) + c) for j in (1, 2) for c in range(10))
        )
        identity = bytes([0x40 + i]) * 32 if security == "active" else None
        drop = "masked_input" if u == 300 else None
        parties.append(Party(u, vector, draws, weight, identity, drop, hedged=False))
    return Round(f"annex-a-{security}", params, parties)


def rejected_coefficients() -> Round:
    """Two coefficients are all ones in their low 61 bits: drawn again, one of them twice."""
    params = Parameters(3, 2, 2, Integers(5), 16, session=b"drawn again")
    parties = [party("drawn-again", params, u, hedged=False) for u in (1, 2, 3)]
    ones = u64le(2**64 - 1)
    first = parties[1].entropy[3]
    parties[1].entropy[3:] = [ones + first[8:24] + ones + first[32:], draw("again", 8) + ones,
                            draw("and again", 8)]  # fmt: skip
    return Round("drawn-again", params, parties)


def stochastic() -> Round:
    params = Parameters(3, 3, 9, FixedPoint(2.5, 3), 2**12, session=b"stochastic")
    parties = [party("stochastic", params, u) for u in (1, 2, 3)]
    for p in parties:
        p.rounding = "stochastic"
        p.entropy.append(draw(f"stochastic rounding {p.u}", 16))
    return Round("stochastic", params, parties)


def isolated() -> Round:
    """On a graph: a client whose neighbours all drop out gets no Shares; the others go on."""
    params = Parameters(12, 3, 3, FixedPoint(1.0, 4), 2**16, neighbours=4)
    seed, among = draw("isolated", 32), [10 * i for i in range(1, 13)]
    alone = graph_order(seed, among)[5]
    around = [v for v in neighbourhoods(params, among, seed)[alone] if v != alone]
    drops = dict.fromkeys(around, "share_keys")
    r = make("graph-isolated", params, among, drops, seed, session=b"isolated")
    assert alone in r.u2
    assert alone not in r.answers["share_keys"]
    return r


def rounds() -> list[Round]:
    fixed = FixedPoint(4.0, 6)
    third = 2**64 // 5 + 1
    all_phases = {
        255: "advertise_keys",
        0: "share_keys",
        300: "masked_input",
        2**63: "unmasking",
    }
    ring = [u for u in WIDE if u != 255]
    return [
        annex_a("semi-honest"),
        annex_a("active"),
        make("complete", Parameters(9, 5, 5, fixed, 2**32), [*WIDE[:7], *WIDE[-2:]],
             all_phases),
        make("complete-nobody-drops", Parameters(3, 2, 4, fixed, 2**20), [7, 8, 9], {}),
        make("complete-weighted-prime", Parameters(5, 3, 6, fixed, 65521, max_weight=9),
             WIDE[:5], {1: "masked_input", 128: "unmasking"}),
        make("complete-rejecting", Parameters(4, 3, 40, Integers(1000), third), [1, 2, 3, 4],
             {2: "masked_input"}),
        make("complete-64-bits",
             Parameters(4, 3, 3, FixedPoint(2.0**40, 19), 2**64, max_weight=2),
             [1, 2, 3, 4], {3: "masked_input"}),
        make("complete-33-bits", Parameters(4, 3, 5, Integers(2**30), 2**33), [1, 2, 3, 4], {}),
        make("two-clients", Parameters(2, 2, 3, Integers(1), 3, allow_two_clients=True),
             [5, 2**40], {}),
        rejected_coefficients(),
        stochastic(),
        make("graph", Parameters(11, 4, 3, fixed, 2**16, neighbours=6), ring,
             {0: "share_keys", 300: "masked_input", 2**63: "unmasking"},
             draw("graph round", 32)),
        make("graph-prime-weighted",
             Parameters(9, 4, 2, fixed, 1000003, neighbours=6, max_weight=3),
             WIDE[:9], {128: "masked_input"}, draw("graph prime", 32)),
        make("graph-few-came", Parameters(9, 4, 2, fixed, 2**16, neighbours=6), WIDE[:5],
             {127: "masked_input"}, draw("graph few", 32)),
        isolated(),
        make("active", Parameters(10, 7, 3, fixed, 2**24, **ACTIVE), WIDE[:10],
             {1: "share_keys", 256: "masked_input", 65536: "consistency_check"}),
        make("active-unmasking", Parameters(4, 3, 2, fixed, 2**40, max_weight=5, **ACTIVE),
             [1, 2, 3, 2**64 - 1], {2: "unmasking"}),
        make("active-prime", Parameters(3, 3, 3, fixed, 65537, **ACTIVE), [1, 2, 3], {}),
        make("active-one-never-comes", Parameters(5, 4, 2, fixed, 2**16, **ACTIVE),
             [1, 2, 3, 4, 5], {5: "advertise_keys"}),
        make("complete-counted", Parameters(4, 3, 6, fixed, 2**20, count_clipped=True),
             [1, 2, 3, 4], {2: "masked_input"}),
        make("counted-integers", Parameters(3, 3, 2, Integers(5), 101, count_clipped=True),
             [1, 2, 3], {}),
        make("active-counted-weighted",
             Parameters(4, 3, 5, fixed, 65521, max_weight=7, count_clipped=True, **ACTIVE),
             [1, 2, 3, 300], {300: "consistency_check"}),
        *sessions(),
        *noisy(),
        make("one-wrong-of-t-plus-1", Parameters(4, 3, 2, fixed, 2**16), [1, 2, 3, 4], {},
             wrong=[2]),
        make("one-wrong-of-t-plus-2", Parameters(5, 3, 2, fixed, 2**16), [1, 2, 3, 4, 5], {},
             wrong=[4]),
        make("two-wrong-of-t-plus-4", Parameters(9, 5, 2, Integers(9), 101),
             [*range(1, 10)], {}, wrong=[3, 6]),
    ]  # fmt: skip


def noisy() -> list[Round]:
    """Rounds with noise, with vectors of bounded norm, and with more survivors than t."""
    bounded, fixed, noise = Bounded(1.5, 40), FixedPoint(4.0, 6), Noise(2**14, 1)
    return [
        make("min-survivors", Parameters(5, 3, 2, fixed, 2**16, min_survivors=4),
             [1, 2, 3, 4, 5], {2: "masked_input"}),
        make("min-survivors-graph",
             Parameters(9, 4, 2, fixed, 2**16, neighbours=6, min_survivors=8), WIDE[:9],
             {128: "masked_input"}, draw("survivors graph", 32)),
        make("bounded", Parameters(4, 3, 11, bounded, 2**12), [1, 2, 3, 4], {}),
        make("noise-bounded",
             Parameters(6, 4, 13, bounded, 4099, count_clipped=True, noise=noise,
                        min_survivors=5),
             [1, 2, 3, 300, 65536, 2**63], {2: "masked_input", 300: "unmasking"}),
        make("noise-bounded-active",
             Parameters(7, 5, 16, bounded, 2**12, noise=noise, min_survivors=6, **ACTIVE),
             [0, 1, 2, 3, 4, 5, 2**64 - 1], {1: "masked_input", 4: "consistency_check"}),
        make("noise-weighted",
             Parameters(4, 3, 6, fixed, 2**24, max_weight=9, count_clipped=True, noise=noise),
             [1, 2, 3, 4], {3: "masked_input"}),
        make("noise-integers",
             Parameters(5, 4, 9, Integers(3), 65521, max_weight=2, noise=Noise(3000, 1)),
             [1, 2, 3, 4, 5], {}),
        make("noise-graph",
             Parameters(11, 4, 3, fixed, 2**16, neighbours=6, noise=noise, min_survivors=9),
             WIDE[:11], {0: "share_keys", 300: "masked_input"}, draw("noise graph", 32)),
    ]  # fmt: skip


def sessions() -> list[Round]:
    """Two rounds of one session each, on both graphs and in both variants."""
    fixed, seed = FixedPoint(4.0, 6), draw("session graph", 32)
    found = []
    for name, params, among, drops in (
        ("session", Parameters(4, 3, 3, fixed, 2**20), [1, 2, 3, 300], {3: "masked_input"}),
        ("session-active", Parameters(4, 3, 2, fixed, 2**16, **ACTIVE), [1, 2, 3, 4],
         {4: "advertise_keys"}),
        ("session-graph", Parameters(8, 4, 2, fixed, 2**16, neighbours=6), WIDE[:8],
         {127: "masked_input"}),
    ):  # fmt: skip
        draws = seed if params.k else None
        first = make(f"{name}-first", params, among, drops, draws)
        other = {among[0]: "masked_input"}
        found += [first, make(f"{name}-later", params, among, other, draws, first=first)]
    return found
