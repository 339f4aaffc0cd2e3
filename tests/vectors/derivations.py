"""Vectors of docs/protocol.md §3.3, §5.1-§5.6, §5.10, §5.11: digests, keys and shares."""

from itertools import chain, pairwise

import primitives as pr
from faults_params import not_parameters
from params import FixedPoint, Integers, Params
from parties import coefficients, neighbourhoods
from primitives import P, draw, ids, u64le

IDS = [0, 1, 300, 2**32, 2**64 - 1]


def parameters() -> dict[str, object]:
    base = Params(10, 7, 1000, FixedPoint(8.0, 16), 2**32, session=b"round 7")
    graph = base.but(k=6, t=4)
    changed = {
        "base": base,
        "n_clients": base.but(n=11),
        "threshold": base.but(t=8),
        "length": base.but(d=1001),
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
        "neighbours 8": graph.but(k=8, t=5),
        "max_weight": base.but(max_weight=100),
        "max_weight 1": base.but(max_weight=1),
        "session": base.but(session=b"round 8"),
        "session empty": base.but(session=b""),
        "session shorter": base.but(session=b"round "),
        "session of zero": base.but(session=b"\0"),
        "session of 64 bytes": base.but(session=bytes(range(64))),
        "allow_two_clients": base.but(two=True),
        "count_clipped": base.but(count=True),
        "count_clipped and allow_two_clients": base.but(two=True, count=True),
        "two clients": Params(2, 2, 1, Integers(1), 3, two=True),
        "active": base.but(security="active"),
        "largest numbers": Params(2**20, 2**20, 2**28, Integers(2**42), 2**64),
    }
    return {
        "digests": [
            {
                "changed": name,
                "parameters": p.describe(),
                "holders": p.h,
                "bits": p.bits,
                "elements": p.elements,
                "least": p.least,
                "layout": [{"field": field, "bytes": x} for field, x in p.layout()],
                "bytes": p.to_bytes(),
                "digest": p.digest(),
            }
            for name, p in changed.items()
        ],
        "refused": [
            {"name": name, "check": check, "bytes": data}
            for name, check, data in not_parameters()
        ],
    }


def client_ids() -> dict[str, object]:
    """§5.12. Each case has a name, its NFC spelling if that is another, and its id."""
    long = "long " * 60
    names = ["alice", "Alice", "alice ", " ", "7", "\0", "user@example.org", "zo\u00eb",
             "\ufb01", "\u6570\u636e", "\U0001f511", "\uac00", "\u0323\u0307",
             long]  # fmt: skip
    spelt = {"zoe\u0308": "zo\u00eb", "\u1100\u1161": "\uac00", "\u212b": "\u00c5",
             "\u0307\u0323": "\u0323\u0307"}  # fmt: skip
    cases = {name: name for name in names} | spelt
    label = b"secagg/2 client id"
    return {
        "names": [
            {
                "name": name,
                "normal": normal.encode(),
                "id": int.from_bytes(pr.sha256(label, normal.encode())[:8], "little"),
            }
            for name, normal in cases.items()
        ],
        "refused": ["", "\ud800", "a\udfffb", "\udbff"],
    }


def roster() -> dict[str, object]:
    digest = Params(10, 7, 1000, FixedPoint(8.0, 16)).digest()
    out = []
    for among in ([1, 2, 3], IDS, [7]):
        keys = {u: (draw(f"roster c {u}", 32), draw(f"roster s {u}", 32)) for u in among}
        roster = pr.roster_digest(keys)
        out.append(
            {
                "parameters_digest": digest,
                "clients": [
                    {"id": u, "seal_key": c, "mask_key": s} for u, (c, s) in keys.items()
                ],
                "digest": roster,
                "session": pr.session_id(digest, roster),
            }
        )
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


def keys() -> dict[str, object]:
    session = draw("keys session", 32)
    pairs = []
    seeds = {u: (draw(f"keys seal {u}", 32), draw(f"keys mask {u}", 32)) for u in IDS}
    for lo, hi in pairwise(IDS):
        (seal_lo, mask_lo), (seal_hi, mask_hi) = seeds[lo], seeds[hi]
        c_lo, c_hi = pr.x25519_public(seal_lo), pr.x25519_public(seal_hi)
        s_lo, s_hi = pr.x25519_public(mask_lo), pr.x25519_public(mask_hi)
        seal_shared, mask_shared = pr.x25519(seal_lo, c_hi), pr.x25519(mask_lo, s_hi)
        assert seal_shared == pr.x25519(seal_hi, c_lo)
        up, down = pr.seal_keys(
            session, seal_shared + mask_shared, (lo, c_lo + s_lo), (hi, c_hi + s_hi)
        )
        share = draw(f"keys share {lo}", 80)
        share = b"".join(
            u64le(int.from_bytes(share[i : i + 7], "big")) for i in range(0, 80, 8)
        )
        pairs.append(
            {
                "lo": {"id": lo, "seal_seed": seal_lo, "seal_key": c_lo,
                       "mask_seed": mask_lo, "mask_key": s_lo},
                "hi": {"id": hi, "seal_seed": seal_hi, "seal_key": c_hi,
                       "mask_seed": mask_hi, "mask_key": s_hi},
                "seal_shared": seal_shared,
                "mask_shared": mask_shared,
                "seal_info": pr.pair_info(
                    b"secagg/3 seal", (lo, c_lo + s_lo), (hi, c_hi + s_hi)
                ),
                "mask_info": pr.pair_info(b"secagg/2 pairwise mask", (lo, s_lo), (hi, s_hi)),
                "seal_lo_to_hi": up,
                "seal_hi_to_lo": down,
                "pairwise_mask": pr.pairwise_key(session, mask_shared, (lo, s_lo), (hi, s_hi)),
                "share": share,
                "ad_lo_to_hi": pr.shares_ad(session, lo, hi),
                "ad_hi_to_lo": pr.shares_ad(session, hi, lo),
                "sealed_lo_to_hi": pr.seal(up, session, lo, hi, share),
                "sealed_hi_to_lo": pr.seal(down, session, hi, lo, share),
            }
        )  # fmt: skip
    own = []
    for u in IDS:
        b = draw(f"keys b {u}", 32)
        own.append({"id": u, "b": b, "self_mask": pr.self_mask_key(session, u, b),
                    "commitment": pr.commitment(session, u, b)})  # fmt: skip
    return {
        "session": session,
        "pairs": pairs,
        "own": own,
        "unusable": {
            "seed": draw("keys unusable", 32),
            "low_order": LOW_ORDER,
            "not_canonical": NOT_CANONICAL,
        },
    }


def shamir() -> dict[str, object]:
    edge = [0, 1, 2**56 - 1, P - 1]
    secrets = [bytes(32), b"\xff" * 32, bytes(range(32)), draw("shamir secret", 32)]
    splits = []
    for n, t in ((1, 1), (4, 1), (2, 2), (5, 3), (7, 7), (12, 9), (40, 21)):
        b, s = draw(f"shamir b {n} {t}", 32), draw(f"shamir s {n} {t}", 32)
        if (n, t) == (5, 3):
            b, s = b"\xff" * 32, bytes(32)
        a = [
            [
                edge[c % 4] if j == t - 1 and t > 3 else
                int.from_bytes(draw(f"shamir {n} {t} {j} {c}", 8), "little") % P
                for c in range(10)
            ]
            for j in range(1, t)
        ]  # fmt: skip
        constants = pr.limbs(b) + pr.limbs(s)
        shares = [pr.ids(pr.evaluate(constants, a, x)) for x in range(1, n + 1)]
        points = list(range(n - t + 1, n + 1)) if n % 2 else list(range(1, t + 1))
        values = [
            [int.from_bytes(shares[x - 1][8 * c : 8 * c + 8], "little") for c in range(10)]
            for x in points
        ]
        assert pr.combine(points, values) == constants
        splits.append({"holders": n, "threshold": t, "b": b, "mask_seed": s,
                       "coefficients": ids([x for row in a for x in row]),
                       "shares": shares, "combine_points": points})  # fmt: skip
    full = draw("shamir coefficients", 240)
    ones = u64le(2**64 - 1)
    first = full[:8] + ones + full[16:160] + u64le(P) + full[168:]
    second = ones + draw("shamir again", 8)
    third = draw("shamir third", 8)
    draws = [
        [full],
        [first, draw("shamir both", 16)],
        [first, second, third],
    ]
    wrong = [2**56, 0, 0, 0, 0], [0, 0, 0, 2**56, 0], [0, 0, 0, 0, 2**32], [P - 1] * 5
    return {
        "limbs": [{"secret": x, "limbs": pr.limbs(x)} for x in secrets],
        "splits": splits,
        "draws": [
            {"threshold": 4, "entropy": x, "coefficients": ids(list(chain(*coefficients(x))))}
            for x in draws
        ],
        "no_secret": [list(x) for x in wrong],
    }


def hedging() -> dict[str, object]:
    cases, text = [], b"secagg/2 hedged shares"
    for size, sizes in ((0, [32]), (32, [8, 8]), (64, [8160, 1]), (65, [8161, 8])):
        secret, fresh = draw(f"hedging secret {size}", size), draw(f"hedging {size}", 32)
        outputs = pr.hedged(secret, fresh, sizes, text, u64le(size))
        cases.append({"secret": secret, "entropy": fresh, "statement": text + u64le(size),
                      "outputs": outputs})  # fmt: skip
    seed = draw("hedging identity", 32)
    return {"sources": cases, "identity_seed": seed, "identity_secret": pr.hedging_secret(seed)}


def signatures() -> dict[str, object]:
    params, session = draw("signatures params", 32), draw("signatures session", 32)
    out = []
    for u, survivors in ((1, [1, 2, 3]), (0, IDS), (2**64 - 1, IDS)):
        seed = draw(f"signatures {u}", 32)
        c, s = draw(f"signatures c {u}", 32), draw(f"signatures s {u}", 32)
        signed = pr.signed_keys(params, u, c, s)
        about = pr.signed_survivors(session, u, ids(survivors))
        assert len(signed) == 125
        assert len(about) == 66 + 8 * len(survivors)
        out.append({
            "id": u, "identity_seed": seed, "identity_key": pr.ed25519_public(seed),
            "seal_key": c, "mask_key": s, "survivors": survivors,
            "signed_keys": signed, "keys_signature": pr.ed25519_sign(seed, signed),
            "signed_survivors": about, "survivors_signature": pr.ed25519_sign(seed, about),
        })  # fmt: skip
    return {"parameters_digest": params, "session": session, "signatures": out}


def graph() -> dict[str, object]:
    out = []
    for count, k in ((6, 4), (5, 4), (3, 4), (7, 2), (12, 4), (31, 10)):
        seed = draw(f"graph {count} {k}", 32)
        among = sorted([0, 2**64 - 1, *range(300, 300 + count - 2)])
        params = Params(40, k // 2 + 1, 1, Integers(1), 64, k=k)
        holders = neighbourhoods(params, among, seed)
        out.append({"seed": seed, "neighbours": k, "clients": among,
                    "holders": [{"id": u, "holders": holders[u]} for u in among]})  # fmt: skip
    return {"graphs": out}
