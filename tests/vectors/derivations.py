"""Vectors of docs/protocol.md §3.3, §5.2, §5.4, §5.10-§5.13: digests, shares, signed bytes."""

from itertools import chain

from draws import draw, given
from faults_params import not_parameters
from params import described
from whole_round import neighbourhoods

import independent_keys as keys
from independent_bounded import Bounded
from independent_client import Client
from independent_keys import SHAMIR_PRIME
from independent_noise import Noise
from independent_params import Parameters
from independent_primitives import (
    hedged,
    hedging_secret,
    identity_key,
    ids,
    number,
    sign,
    u64le,
)
from independent_sums import FixedPoint, Integers

IDS = [0, 1, 300, 2**32, 2**64 - 1]


def parameters() -> dict[str, object]:
    base = Parameters(10, 7, 1000, FixedPoint(8.0, 16), 2**32, session=b"round 7")
    graph = base.but(neighbours=6, threshold=4)
    changed = {
        "base": base,
        "n_clients": base.but(n_clients=11),
        "threshold": base.but(threshold=8),
        "length": base.but(length=1001),
        "clip": base.but(encoding=FixedPoint(8.5, 16)),
        "fractional bits": base.but(encoding=FixedPoint(8.0, 15)),
        "clip no binary fraction": base.but(encoding=FixedPoint(0.1, 20)),
        "encoding": base.but(encoding=Integers(2**19)),
        "integers max": base.but(encoding=Integers(2**19 + 1)),
        "modulus 2^33": base.but(modulus=2**33),
        "modulus 2^64": base.but(modulus=2**64),
        "modulus prime": base.but(modulus=2**61 - 1),
        "modulus odd": base.but(modulus=2**32 + 9),
        "neighbours": graph,
        "neighbours 8": graph.but(neighbours=8, threshold=5),
        "max_weight": base.but(max_weight=100),
        "max_weight 1": base.but(max_weight=1),
        "session": base.but(session=b"round 8"),
        "session empty": base.but(session=b""),
        "session shorter": base.but(session=b"round "),
        "session of zero": base.but(session=b"\0"),
        "session of 64 bytes": base.but(session=bytes(range(64))),
        "allow_two_clients": base.but(allow_two_clients=True),
        "count_clipped": base.but(count_clipped=True),
        "count_clipped and allow_two_clients": base.but(
            allow_two_clients=True, count_clipped=True
        ),
        "two clients": Parameters(2, 2, 1, Integers(1), 3, allow_two_clients=True),
        "active": base.but(security="active"),
        "hybrid": base.but(suite="hybrid"),
        "hybrid, active": base.but(suite="hybrid", security="active"),
        "hybrid, graph": graph.but(suite="hybrid"),
        "hybrid of few elements": base.but(suite="hybrid", length=1),
        "hybrid of more than 300 clients": base.but(
            suite="hybrid", n_clients=301, threshold=200, length=2**20, modulus=2**40
        ),
        "the fewest elements for which hybrid is suggested": base.but(length=3033),
        "an element less": base.but(length=3032),
        "the same on a graph": graph.but(length=2121),
        "an element less on a graph": graph.but(length=2120),
        "300 clients": base.but(n_clients=300, threshold=200, length=2**20, modulus=2**40),
        "301 clients": base.but(n_clients=301, threshold=200, length=2**20, modulus=2**40),
        "min_survivors": base.but(min_survivors=9),
        "min_survivors below the threshold": base.but(min_survivors=5),
        "noise": base.but(noise=Noise(256 * 300, 0)),
        "noise, colluders, min_survivors": base.but(noise=Noise(76801, 2), min_survivors=9),
        "noise, weights, counts": base.but(
            noise=Noise(76801, 2), max_weight=9, count_clipped=True, encoding=Integers(9)
        ),
        "bounded": base.but(encoding=Bounded(1.5, 1000)),
        "bounded, noise, counts": base.but(
            encoding=Bounded(0.1, 1426), noise=Noise(800_000, 3), count_clipped=True
        ),
        "bounded, the smallest modulus": base.but(encoding=Bounded(1.0, 1), modulus=67),
        "largest numbers": Parameters(2**20, 2**20, 2**28, Integers(2**42), 2**64),
    }
    return {
        "digests": [
            {"changed": name, "parameters": described(p), "holders": p.h, "bits": p.b,
             "elements": p.e, "least": p.least, "survivors": p.m, "share": p.share,
             "suggested": p.suggested(),
             "bytes": p.encode(), "digest": p.digest(),
             "layout": [{"field": field, "bytes": x} for field, x in p.layout().items()]}
            for name, p in changed.items()
        ],
        "refused": [
            {"name": name, "check": check, "bytes": data}
            for name, check, data in not_parameters()
        ],
    }  # fmt: skip


def client_ids() -> dict[str, object]:
    """§5.12. Each case has a name, its NFC spelling if that is another, and its id."""
    long = "long " * 60
    names = ["alice", "Alice", "alice ", " ", "7", "\0", "user@example.org", "zo\u00eb",
             "\ufb01", "\u6570\u636e", "\U0001f511", "\uac00", "\u0323\u0307",
             long]  # fmt: skip
    spelt = {"zoe\u0308": "zo\u00eb", "\u1100\u1161": "\uac00", "\u212b": "\u00c5",
             "\u0307\u0323": "\u0323\u0307"}  # fmt: skip
    cases = {name: name for name in names} | spelt
    return {
        "names": [
            {"name": name, "normal": normal.encode(), "id": keys.client_id(name)}
            for name, normal in cases.items()
        ],
        "refused": ["", "\ud800", "a\udfffb", "\udbff"],
    }


def roster() -> dict[str, object]:
    digest = Parameters(10, 7, 1000, FixedPoint(8.0, 16)).digest()
    out = []
    for among, suite in (([1, 2, 3], "x25519"), (IDS, "x25519"), ([7], "x25519"),
                         ([1, 2, 3], "hybrid"), ([7], "hybrid")):  # fmt: skip
        of = {u: (draw(f"roster c {u}", 32), draw(f"roster s {u}", 32),
                  draw(f"roster e {u}", 1184 if suite == "hybrid" else 0))
              for u in among}  # fmt: skip
        roster = keys.roster_digest(of)
        out.append({
            "suite": suite, "parameters_digest": digest, "digest": roster,
            "session": keys.session_id(digest, roster),
            "clients": [{"id": u, "seal_key": c, "mask_key": s, "kem_key": e}
                        for u, (c, s, e) in of.items()],
        })  # fmt: skip
    return {"rosters": out}


LOW_ORDER = [
    bytes(32),
    u64le(1) + bytes(24),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    (2**255 - 20).to_bytes(32, "little"),
]
NOT_CANONICAL = [
    x.to_bytes(32, "little")
    for x in (2**255 - 19, 2**255 - 18, 2**255 - 10, 2**255 - 1, 2**255, 2**255 + 9, 2**256 - 1)
]


def shamir() -> dict[str, object]:
    edge = [0, 1, 2**56 - 1, SHAMIR_PRIME - 1]
    secrets = [bytes(32), b"\xff" * 32, bytes(range(32)), draw("shamir secret", 32)]
    splits = []
    for n, t in ((1, 1), (4, 1), (2, 2), (5, 3), (7, 7), (12, 9), (40, 21)):
        b, s = draw(f"shamir b {n} {t}", 32), draw(f"shamir s {n} {t}", 32)
        if (n, t) == (5, 3):
            b, s = b"\xff" * 32, bytes(32)
        a = [
            [number(draw(f"shamir {n} {t} {j} {c}", 8)) % SHAMIR_PRIME for c in range(10)]
            for j in range(1, t)
        ]
        if t > 3:
            a[-1] = [edge[c % 4] for c in range(10)]
        constants = keys.limbs(b) + keys.limbs(s)
        shares = [keys.share(constants, a, x) for x in range(1, n + 1)]
        points = list(range(n - t + 1, n + 1)) if n % 2 else list(range(1, t + 1))
        assert keys.combine({x: shares[x - 1] for x in points}) == constants
        splits.append({"holders": n, "threshold": t, "b": b, "mask_seed": s,
                       "coefficients": ids(chain(*a)),
                       "shares": shares, "combine_points": points})  # fmt: skip
    full = draw("shamir coefficients", 240)
    ones = u64le(2**64 - 1)
    first = full[:8] + ones + full[16:160] + u64le(SHAMIR_PRIME) + full[168:]
    second = ones + draw("shamir again", 8)
    third = draw("shamir third", 8)
    draws = [full], [first, draw("shamir both", 16)], [first, second, third]
    wrong = [2**56, 0, 0, 0, 0], [0, 0, 0, 2**56, 0], [0, 0, 0, 0, 2**32]
    rows = Client(1, Parameters(7, 4, 1, Integers(1), 8))._coefficients
    return {
        "limbs": [{"secret": x, "limbs": keys.limbs(x)} for x in secrets],
        "splits": splits,
        "draws": [
            {"threshold": 4, "entropy": x, "coefficients": ids(chain(*rows(given(x))))}
            for x in draws
        ],
        "no_secret": [*wrong, [SHAMIR_PRIME - 1] * 5],
    }


def hedging() -> dict[str, object]:
    cases, text = [], b"secagg/2 hedged shares"
    for size, sizes in ((0, [32]), (32, [8, 8]), (64, [8160, 1]), (65, [8161, 8])):
        secret, fresh = draw(f"hedging secret {size}", size), draw(f"hedging {size}", 32)
        outputs = [*map(hedged(secret, fresh, text, u64le(size)), sizes)]
        cases.append({"secret": secret, "entropy": fresh, "statement": text + u64le(size),
                      "outputs": outputs})  # fmt: skip
    seed = draw("hedging identity", 32)
    secret, about = hedging_secret(seed), b"secagg/2 hedged kem seed"
    about += draw("hedging params", 32) + u64le(300)
    fresh = draw("hedging kem seed", 32)
    cases.append({"secret": secret, "entropy": fresh, "statement": about,
                  "outputs": [hedged(secret, fresh, about)(64)]})  # fmt: skip
    for secret in (b"", hedging_secret(seed)):  # the key of the noise, in either variant
        about = b"secagg/2 hedged noise" + draw("hedging session", 32) + u64le(300)
        fresh = draw("hedging noise", 32)
        cases.append({"secret": secret, "entropy": fresh, "statement": about,
                      "outputs": [hedged(secret, fresh, about)(16)]})  # fmt: skip
    return {"sources": cases, "identity_seed": seed, "identity_secret": hedging_secret(seed)}


def signatures() -> dict[str, object]:
    params, session = draw("signatures params", 32), draw("signatures session", 32)
    out = []
    for u, survivors, suite in ((1, [1, 2, 3], "x25519"), (0, IDS, "x25519"),
                                (2**64 - 1, IDS, "hybrid")):  # fmt: skip
        seed = draw(f"signatures {u}", 32)
        c, s = draw(f"signatures c {u}", 32), draw(f"signatures s {u}", 32)
        e = draw(f"signatures e {u}", 1184 if suite == "hybrid" else 0)
        signed = keys.signed_keys(params, u, c, s, e)
        about = keys.signed_survivors(session, u, ids(survivors))
        assert len(signed) == 125 + (32 if e else 0)
        assert len(about) == 66 + 8 * len(survivors)
        out.append({
            "id": u, "suite": suite, "identity_seed": seed, "identity_key": identity_key(seed),
            "seal_key": c, "mask_key": s, "kem_key": e, "survivors": survivors,
            "signed_keys": signed, "keys_signature": sign(seed, signed),
            "signed_survivors": about, "survivors_signature": sign(seed, about),
        })  # fmt: skip
    return {"parameters_digest": params, "session": session, "signatures": out}


def graph() -> dict[str, object]:
    out = []
    for count, k in ((6, 4), (5, 4), (3, 4), (7, 2), (12, 4), (31, 10)):
        seed = draw(f"graph {count} {k}", 32)
        among = sorted([0, 2**64 - 1, *range(300, 300 + count - 2)])
        params = Parameters(40, k // 2 + 1, 1, Integers(1), 64, neighbours=k)
        holders = neighbourhoods(params, among, seed)
        out.append({"seed": seed, "neighbours": k, "clients": among,
                    "holders": [{"id": u, "holders": holders[u]} for u in among]})  # fmt: skip
    return {"graphs": out}
