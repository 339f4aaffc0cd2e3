"""keys.json: docs/protocol.md §5.1, §5.3, §5.5 and §5.6, of pairs of clients and of one."""

from itertools import pairwise

from derivations import IDS, LOW_ORDER, NOT_CANONICAL
from draws import draw

import independent_keys as keys
import independent_mlkem as mlkem
import independent_pairs as pairs
from independent_params import SUITES
from independent_primitives import curve, curve_key, cut, ids

SESSION = draw("keys session", 32)


class End:
    """A client of a pair: its seeds and its keys."""

    def __init__(self, u: int, suite: str) -> None:
        self.u = u
        self.seal_seed, self.mask_seed = draw(f"keys seal {u}", 32), draw(f"keys mask {u}", 32)
        self.kem_seed = draw(f"keys kem {u}", 64) if suite == "hybrid" else b""
        e = mlkem.public_key(self.kem_seed) if self.kem_seed else b""
        self.keys = curve_key(self.seal_seed), keys.masking_key(self.mask_seed), e

    def described(self) -> dict[str, object]:
        c, s, e = self.keys
        return {"id": self.u, "seal_seed": self.seal_seed, "seal_key": c,
                "mask_seed": self.mask_seed, "mask_key": s,
                "mask_private": keys.masking_private(self.mask_seed),
                "kem_seed": self.kem_seed, "kem_key": e}  # fmt: skip


class Pair:
    """Two clients, and what they have between them."""

    def __init__(self, lo: int, hi: int, suite: str) -> None:
        self.suite, self.ends = suite, {u: End(u, suite) for u in (lo, hi)}
        self.keys = {u: end.keys for u, end in self.ends.items()}
        a, b = self.ends.values()
        self.seal_shared = curve(a.seal_seed, b.keys[0]) or b""
        private = keys.masking_private(a.mask_seed)
        self.mask_shared = curve(private, b.keys[1]) or b""
        assert self.seal_shared == curve(b.seal_seed, a.keys[0])
        self.given = dict.fromkeys(self.ends, (b"", b""))
        if suite == "hybrid":
            for (u, end), v in zip(self.ends.items(), (hi, lo), strict=True):
                self.given[u] = pairs.contribution(SESSION, end.mask_seed, u, v)
        self.agreed = pairs.agreement(SESSION, self.mask_shared, self.keys)

    def described(self) -> dict[str, object]:
        (lo, lower), (hi, upper) = self.ends.items()
        p = {u: of for u, (of, _) in self.given.items()}
        return {"suite": self.suite, "lo": lower.described(), "hi": upper.described(),
                "seal_shared": self.seal_shared, "mask_shared": self.mask_shared,
                "agreement_info": pairs.agreement_info(self.keys), "agreement": self.agreed,
                "pairwise_mask": pairs.mask_key(SESSION, self.agreed, p),
                "lo_to_hi": self.direction(lo, hi),
                "hi_to_lo": self.direction(hi, lo)}  # fmt: skip

    def direction(self, u: int, v: int) -> dict[str, object]:
        """Return all that u makes for v."""
        shared = self.seal_shared, self.mask_shared
        base = pairs.seal_base(SESSION, *shared, self.keys, u, v)
        secret = ct = coins = b""
        if self.suite == "hybrid":
            coins = draw(f"keys coins {u} {v}", 32)
            secret, ct = mlkem.encapsulate(self.keys[v][2], coins)
            assert mlkem.decapsulate(self.ends[v].kem_seed, ct) == secret
        key = pairs.box_key(SESSION, base, secret, u, v, ct)
        words = cut(draw(f"keys share {u} {v}", 80), 8)
        share = ids(int.from_bytes(word[:7], "big") for word in words)
        p, q = self.given[u]
        out = {
            "seal_info": pairs.seal_info(self.keys, u, v), "seal_base": base,
            "coins": coins, "secret": secret, "ciphertext": ct,
            "box_info": pairs.box_info(u, v, ct), "box_key": key,
            "content": share + p + q, "ad": pairs.sealing_data(SESSION, u, v),
            "sealed": ct + pairs.seal(key, share + p + q, SESSION, u, v),
            "p": p, "q": q, "check": b"", "deposit": b"",
        }  # fmt: skip
        if self.suite == "hybrid":
            out["check"] = pairs.check(SESSION, u, v, p, q)
            out["deposit"] = pairs.deposit(SESSION, u, v, p, self.given[v][1])
        return out


def key_pairs() -> dict[str, object]:
    both = [(lo, hi, suite) for suite in SUITES[::-1] for lo, hi in pairwise(IDS)]
    own = []
    for u in IDS:
        b = draw(f"keys b {u}", 32)
        own.append({"id": u, "b": b, "self_mask": keys.self_mask_key(SESSION, u, b),
                    "commitment": keys.commitment(SESSION, u, b)})  # fmt: skip
    valid = draw("keys kem of nobody", 64)
    key = mlkem.public_key(valid)
    unusable = {"seed": draw("keys unusable", 32), "low_order": LOW_ORDER,
                "not_canonical": NOT_CANONICAL,
                "kem_keys": [*not_reduced(key)]}  # fmt: skip
    described = [Pair(*each).described() for each in both]
    return {"session": SESSION, "pairs": described, "own": own, "unusable": unusable}


def not_reduced(key: bytes) -> list[bytes]:
    """The encapsulation key with a coefficient of 3,329 or more: FIPS 203, 7.2, rejects it."""
    out = []
    for place, value in ((0, 3329), (767, 3329), (300, 4095)):
        at = place // 2 * 3
        both = int.from_bytes(key[at : at + 3], "little")
        shift = 12 * (place % 2)
        both += (value - (both >> shift & 0xFFF)) << shift
        out.append(key[:at] + both.to_bytes(3, "little") + key[at + 3 :])
        assert not mlkem.is_valid(out[-1])
    return out
