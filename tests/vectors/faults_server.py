"""Faults that a server rejects (docs/protocol.md §8): one in each message, thin closings."""

from collections.abc import Callable

from derivations import LOW_ORDER, NOT_CANONICAL
from draws import draw
from faults_params import other_parameters
from kinds import but, fields, get, tag_of
from parties import Round

from independent_keys import SHAMIR_PRIME, signed_keys, signed_survivors
from independent_messages import KINDS, encode
from independent_primitives import curve_key, number, u64le


def server_faults(rounds: dict[str, Round]) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []

    def add(
        r: Round,
        name: str,
        check: str,
        u: int,
        message: bytes,
        accepted: list[int] | None = None,
    ) -> None:
        kind, phase, _ = KINDS[tag_of(message)]
        out.append({
            "side": "server", "round": r.name, "phase": phase, "accepted": accepted or [],
            "from": u, "kind": kind, "name": f"{kind}: {name}", "bytes": message,
            "error": "RemoteProtocolError", "check": check,
        })  # fmt: skip

    _advertise(add, rounds)
    _later(add, rounds)
    return out


def _new_keys(r: Round, u: int, seal_key: bytes, mask_key: bytes) -> bytes:
    """AdvertiseKeys, signed by u's own identity where there is one."""
    digest = r.params.digest()
    signature = b""
    if u in r.parties:
        signature = r.signature(u, signed_keys(digest, u, seal_key, mask_key))
    return encode(1, u, r.params.encode(), seal_key, mask_key, signature)


def _advertise(add: Callable[..., None], rounds: dict[str, Round]) -> None:
    r = rounds["complete-nobody-drops"]
    a, b, c = sorted(r.parties)
    good = r.sent["advertise_keys"]
    seal_key, mask_key = r.clients[a].own
    fresh = curve_key(draw("a fresh key", 32))
    other_round = rounds["complete-33-bits"].params.digest()
    for name, check, other in other_parameters(r.params):
        add(r, name, check, a, but(good[a], parameters=other))
    add(r, "n clients are in", "cohort", 99, _new_keys(r, 99, fresh, mask_key), [a, b, c])
    for key in LOW_ORDER:
        add(r, "sealing key of low order", "public key", a, but(good[a], seal_key=key))
        add(r, "masking key of low order", "public key", a, but(good[a], mask_key=key))
    for key in NOT_CANONICAL:
        add(r, "sealing key not canonical", "public key", a, but(good[a], seal_key=key))
        add(r, "masking key not canonical", "public key", a, but(good[a], mask_key=key))
    add(r, "the two keys are one", "duplicate key", a, but(good[a], mask_key=seal_key))
    b_seal, b_mask = r.clients[b].own
    add(r, "another's sealing key", "duplicate key", a, but(good[a], seal_key=b_seal), [b])
    add(r, "another's masking key", "duplicate key", a, but(good[a], mask_key=b_mask), [b])
    add(
        r,
        "another's masking key to seal",
        "duplicate key",
        a,
        but(good[a], seal_key=b_mask),
        [b],
    )
    add(
        r,
        "another's sealing key to mask",
        "duplicate key",
        a,
        but(good[a], mask_key=b_seal),
        [b],
    )
    add(r, "a signature where nobody signs", "length", a, but(good[a], signature=bytes(64)))
    add(r, "another sender", "sender", a, good[b])
    add(r, "sender -1", "sender", a, but(good[a], sender=-1))
    add(r, "sender -2^63", "sender", a, but(good[a], sender=-(2**63)))
    add(r, "sender 2^64 - 1", "sender", a, but(good[a], sender=2**64 - 1))
    add(r, "other keys later", "repeated", a, but(good[a], seal_key=fresh), [a])

    r = rounds["active-prime"]
    a, b, _ = sorted(r.parties)
    good = r.sent["advertise_keys"]
    digest, (seal_key, mask_key) = r.params.digest(), r.clients[a].own
    add(r, "not in the registry", "unknown client", 99, _new_keys(r, 99, seal_key, mask_key))

    def signed(name: str, signature: bytes) -> None:
        add(r, name, "signature", a, but(good[a], signature=signature))

    signed("no signature", b"")
    signed("63 bytes of signature", get(good[a], "signature")[:63])
    signed("one bit of the signature", flip(good[a], "signature"))
    signed("S plus the group order", malleable(get(good[a], "signature")))
    signed("another's signature", get(good[b], "signature"))
    own = r.signature
    signed("signed by another", own(b, signed_keys(digest, a, seal_key, mask_key)))
    signed("signed for another id", own(a, signed_keys(digest, b, seal_key, mask_key)))
    signed("signed for another round", own(a, signed_keys(other_round, a, seal_key, mask_key)))
    signed(
        "keys signed the other way round", own(a, signed_keys(digest, a, mask_key, seal_key))
    )
    keys = digest + u64le(a) + b"\0" + seal_key + mask_key
    signed("label of the survivors", own(a, b"secagg/2 signed survivors" + keys))


def _later(add: Callable[..., None], rounds: dict[str, Round]) -> None:
    small, active = rounds["complete-nobody-drops"], rounds["active-prime"]
    for r, phases in ((small, small.phases()[1:]), (active, ["consistency_check"])):
        a, b, _ = sorted(r.parties)
        for phase in phases:
            good = r.sent[phase]
            add(r, "another sender", "sender", a, good[b])
            add(r, "sender -1", "sender", a, but(good[a], sender=-1))
            add(
                r,
                "another session",
                "session",
                a,
                but(good[a], session=rounds["active"].session),
            )
            add(
                r,
                "one bit of the session",
                "session",
                a,
                but(good[a], session=flip(good[a], "session")),
            )
            add(r, "a stranger", "unknown client", 99, but(good[a], sender=99))
            last = list(fields(good[a]))[-1]
            again = but(good[a], **{last: flip(good[a], last)})
            add(r, "another of the same", "repeated", a, again, [a])

    r, a = small, sorted(small.parties)[0]
    sealed = r.sent["share_keys"][a]
    whole = get(sealed, "sealed")
    for name, data in (("none", b""), ("a byte short", whole[:-1]), ("one missing", whole[:96]),
                       ("one too many", whole + whole[:96]),
                       ("a byte more", whole + b"\0")):  # fmt: skip
        add(r, f"sealed shares, {name}", "length", a, but(sealed, sealed=data))
    values = get(r.sent["masked_input"][a], "values")
    for name, data in (
        ("none", b""),
        ("a byte short", values[:-1]),
        ("a byte more", values + b"\0"),
    ):
        add(r, f"values, {name}", "length", a, but(r.sent["masked_input"][a], values=data))
    shares = get(r.sent["unmasking"][a], "shares")
    for name, data in (("none", b""), ("a byte short", shares[:-1]),
                       ("one missing", shares[:-40]),
                       ("one too many", shares + shares[:40])):  # fmt: skip
        add(r, f"shares, {name}", "length", a, but(r.sent["unmasking"][a], shares=data))
    for name, value in (("p", SHAMIR_PRIME), ("2^64 - 1", 2**64 - 1)):
        for at in (0, len(shares) - 8):
            data = shares[:at] + u64le(value) + shares[at + 8 :]
            add(r, f"{name} as a share", "share", a, but(r.sent["unmasking"][a], shares=data))

    r = rounds["annex-a-semi-honest"]  # 60 bits: the last byte has four of padding
    values = get(r.sent["masked_input"][1], "values")
    for bit in (4, 7):
        data = values[:-1] + bytes([values[-1] | 1 << bit])
        add(r, f"padding bit {bit}", "length", 1, but(r.sent["masked_input"][1], values=data))
    r = rounds["complete-weighted-prime"]
    u = r.u3[0]
    elements = r.masked(u)
    for at in (0, len(elements) - 1):
        for value in (r.params.R, 2**r.params.b - 1):
            some = [*elements[:at], value, *elements[at + 1 :]]
            data = r.params.pack(some)
            add(
                r,
                f"element {value} modulo 65521",
                "range",
                u,
                but(r.sent["masked_input"][u], values=data),
            )
    r = rounds["complete"]
    masked, missing = r.sent["masked_input"], 0  # 0 was in U1 and sent no ShareKeys
    add(r, "not in U2", "unknown client", missing, but(masked[r.u3[0]], sender=missing))
    add(r, "not in U3", "unknown client", 300, but(r.sent["unmasking"][1], sender=300))

    r, (a, b, _) = active, sorted(active.parties)
    one = r.sent["consistency_check"][a]
    survivors = get(r.answers["masked_input"][a], "survivors")

    def signed(name: str, signature: bytes) -> None:
        add(r, name, "signature", a, but(one, signature=signature))

    signed("no signature", b"")
    signed("63 bytes of signature", get(one, "signature")[:63])
    signed("one bit of the signature", flip(one, "signature"))
    signed("another's signature", get(r.sent["consistency_check"][b], "signature"))
    for name, about in (
        ("fewer survivors", signed_survivors(r.session, a, survivors[:-8])),
        ("another session", signed_survivors(rounds["active"].session, a, survivors)),
        ("another id", signed_survivors(r.session, b, survivors)),
        ("round 0", signed_survivors(r.session, a, b"")[:-1] + b"\0" + survivors),
    ):
        signed(f"signed for {name}", r.signature(a, about))


def flip(message: bytes, name: str) -> bytes:
    """The field with one bit changed, in its first byte."""
    value = get(message, name)
    return bytes([value[0] ^ 1]) + value[1:] if value else b"\1"


def malleable(signature: bytes) -> bytes:
    """The same signature with S + L, which RFC 8032 rejects."""
    order = 2**252 + 27742317777372353535851937790883648493
    s = number(signature[32:]) + order
    return signature[:32] + s.to_bytes(32, "little")


def closings(rounds: dict[str, Round]) -> list[dict[str, object]]:
    """Closings with too few: who answers in the phase, and the error."""
    out: list[dict[str, object]] = []
    for name in ("complete-nobody-drops", "annex-a-active"):
        r = rounds[name]
        for phase in r.phases():
            there = sorted(r.sent[phase])
            least = r.params.t if phase == "unmasking" else r.params.least
            out += [
                {"round": name, "phase": phase, "accepted": there[:count], "replace": [],
                 "error": "TooFewSurvivors", "needed": least}
                for count in (0, least - 1)
            ]  # fmt: skip
    # Only t shares of each secret, one of them wrong; then too many wrong to tell.
    for name, wrong, count in (
        ("annex-a-semi-honest", 2, 3),
        ("one-wrong-of-t-plus-1", 1, 4),
    ):
        r = rounds[name]
        there = sorted(r.sent["unmasking"])[:count]
        message = r.sent["unmasking"][wrong]
        shares = get(message, "shares")
        # Another change than the round's liar makes: equal errors at the points 1 and 2 cancel.
        lie = but(message, shares=bytes([shares[0] ^ 6]) + shares[1:])
        out.append({"round": name, "phase": "unmasking", "accepted": there,
                    "replace": [{"id": wrong, "bytes": lie}],
                    "error": "RemoteProtocolError", "check": "shares"})  # fmt: skip
    # A masked input moved so far that the survivors cannot have such a sum, weights or count.
    for name, check, element, by in (
        ("annex-a-semi-honest", "sum", 0, 2**14),
        ("annex-a-semi-honest", "weight", 3, 1000),
        ("complete-counted", "clipped", 6, 1000),
    ):
        r = rounds[name]
        u, modulus = r.u3[0], r.params.modulus
        moved = r.masked(u)
        moved[element] = (moved[element] + by) % modulus
        message = but(r.sent["masked_input"][u], values=r.params.pack(moved))
        there = sorted(r.sent["unmasking"])
        out.append({"round": r.name, "phase": "unmasking", "accepted": there,
                    "earlier": [{"phase": "masked_input", "id": u, "bytes": message}],
                    "replace": [], "error": "RemoteProtocolError", "check": check})  # fmt: skip
    return out
