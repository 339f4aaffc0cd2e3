"""Faults that a server rejects (docs/protocol.md §8): one in each message, thin closings."""

from derivations import LOW_ORDER, NOT_CANONICAL
from draws import draw
from faults import Cases, Faults, at_word, flip
from faults_params import other_parameters
from kinds import but, fields, get
from whole_round import Round

from independent_keys import SHAMIR_PRIME, signed_keys, signed_survivors
from independent_primitives import curve_key, number


def server_faults(rounds: dict[str, Round]) -> Cases:
    out: Cases = []
    _advertise(out, rounds["complete-nobody-drops"])
    _advertise_signed(out, rounds["active-prime"], rounds["complete-33-bits"])
    _later(out, rounds)
    _lengths(out, rounds)
    _consistency(out, rounds["active-prime"], rounds["active"])
    return out


def _advertise(out: Cases, r: Round) -> None:
    a, b, _ = r.u1
    to, second = Faults(out, "server", r, "advertise_keys", a), {"accepted": [b]}
    (seal, _, _), (b_seal, b_mask, _) = r.clients[a].own, r.clients[b].own
    fresh = curve_key(draw("a fresh key", 32))
    for name, check, other in other_parameters(r.params):
        to(name, check, parameters=other)
    full = {"from": 99, "accepted": r.u1}
    to("n clients are in", "cohort", where=full, sender=99, seal_key=fresh)
    for what, keys in (("of low order", LOW_ORDER), ("not canonical", NOT_CANONICAL)):
        for key in keys:
            to(f"sealing key {what}", "public key", seal_key=key)
            to(f"masking key {what}", "public key", mask_key=key)
    to("the two keys are one", "duplicate key", mask_key=seal)
    to("another's sealing key", "duplicate key", seal_key=b_seal, where=second)
    to("another's masking key", "duplicate key", mask_key=b_mask, where=second)
    to("another's masking key to seal", "duplicate key", seal_key=b_mask, where=second)
    to("another's sealing key to mask", "duplicate key", mask_key=b_seal, where=second)
    to("a signature where nobody signs", "length", signature=bytes(64))
    to("a KEM key in suite x25519", "length", kem_key=bytes(32))
    to("another sender", "sender", message=r.sent["advertise_keys"][b])
    to("sender -1", "sender", sender=-1)
    to("sender -2^63", "sender", sender=-(2**63))
    to("sender 2^64 - 1", "sender", sender=2**64 - 1)
    to("other keys later", "repeated", seal_key=fresh, where={"accepted": [a]})


def _advertise_signed(out: Cases, r: Round, other: Round) -> None:
    a, b, _ = r.u1
    to, own, sign = Faults(out, "server", r, "advertise_keys", a), r.clients[a].own, r.signature
    to("not in the registry", "unknown client", where={"from": 99}, sender=99, signature=b"")
    good, params = get(to.good, "signature"), r.params.digest()
    signed = signed_keys(params, a, *own)
    survivors = signed.replace(b"secagg/4 signed keys", b"secagg/2 signed survivors")
    assert survivors != signed
    to.each("signature", "signature", {
        "no signature": b"",
        "63 bytes of signature": good[:63],
        "one bit of the signature": flip(good),
        "S plus the group order": malleable(good),
        "another's signature": get(r.sent["advertise_keys"][b], "signature"),
        "signed by another": sign(b, signed),
        "signed for another id": sign(a, signed_keys(params, b, *own)),
        "signed for another round": sign(a, signed_keys(other.params.digest(), a, *own)),
        "keys signed the other way round": sign(a, signed_keys(params, a, own[1], own[0], b"")),
        "label of the survivors": sign(a, survivors),
    })  # fmt: skip


def _later(out: Cases, rounds: dict[str, Round]) -> None:
    """Every message after the first."""
    small, active = rounds["complete-nobody-drops"], rounds["active-prime"]
    for r, phases in ((small, small.phases()[1:]), (active, ["consistency_check"])):
        a, b, _ = r.u1
        for phase in phases:
            to = Faults(out, "server", r, phase, a)
            to("another sender", "sender", message=r.sent[phase][b])
            to("sender -1", "sender", sender=-1)
            to("another session", "session", session=rounds["active"].session)
            to("one bit of the session", "session", session=flip(r.session))
            to("a stranger", "unknown client", where={"from": 99}, sender=99)
            last = [name for name, value in fields(to.good).items() if value][-1]
            again = {last: flip(get(to.good, last))}
            to("another of the same", "repeated", where={"accepted": [a]}, **again)


def _lengths(out: Cases, rounds: dict[str, Round]) -> None:
    r = rounds["complete-nobody-drops"]
    a = r.u1[0]
    for phase, field, what, size in (
        ("share_keys", "sealed", "sealed shares", 96),
        ("masked_input", "values", "values", 0),
        ("unmasking", "shares", "shares", 40),
    ):
        to = Faults(out, "server", r, phase, a)
        whole = get(to.good, field)
        cases = {"none": b"", "a byte short": whole[:-1]}
        if size:
            cases |= {"one missing": whole[:-size], "one too many": whole + whole[:size]}
        if phase != "unmasking":
            cases["a byte more"] = whole + b"\0"
        to.each("length", field, {f"{what}, {name}": data for name, data in cases.items()})
    for name, value in (("p", SHAMIR_PRIME), ("2^64 - 1", 2**64 - 1)):
        for place in (0, len(whole) // 8 - 1):
            to(f"{name} as a share", "share", shares=at_word(whole, place, value))

    # 60 bits: the last byte has four of padding
    to = Faults(out, "server", rounds["annex-a-semi-honest"], "masked_input", 1)
    for bit in (4, 7):
        to(f"padding bit {bit}", "range", values=flip(get(to.good, "values"), -1, bit))
    r = rounds["complete-weighted-prime"]
    to, elements = Faults(out, "server", r, "masked_input", r.u3[0]), r.masked(r.u3[0])
    for at in (0, len(elements) - 1):
        for value in (r.params.R, 2**r.params.b - 1):
            some = r.params.pack([*elements[:at], value, *elements[at + 1 :]])
            to(f"element {value} modulo 65521", "range", values=some)
    r = rounds["complete"]
    to = Faults(out, "server", r, "masked_input", r.u3[0])
    to(
        "not in U2", "unknown client", where={"from": 0}, sender=0
    )  # it was in U1 and sent no ShareKeys
    to = Faults(out, "server", r, "unmasking", 1)
    to("not in U3", "unknown client", where={"from": 300}, sender=300)


def _consistency(out: Cases, r: Round, other: Round) -> None:
    a, b, _ = r.u1
    to = Faults(out, "server", r, "consistency_check", a)
    good, survivors = get(to.good, "signature"), get(r.answers["masked_input"][a], "survivors")
    about = {
        "fewer survivors": signed_survivors(r.session, a, survivors[:-8]),
        "another session": signed_survivors(other.session, a, survivors),
        "another id": signed_survivors(r.session, b, survivors),
        "round 0": signed_survivors(r.session, a, b"")[:-1] + b"\0" + survivors,
    }
    to.each("signature", "signature", {
        "no signature": b"",
        "63 bytes of signature": good[:63],
        "one bit of the signature": flip(good),
        "another's signature": get(r.sent["consistency_check"][b], "signature"),
    })  # fmt: skip
    for name, what in about.items():
        to(f"signed for {name}", "signature", signature=r.signature(a, what))


def malleable(signature: bytes) -> bytes:
    """The same signature with S + L, which RFC 8032 rejects."""
    order = 2**252 + 27742317777372353535851937790883648493
    s = number(signature[32:]) + order
    return signature[:32] + s.to_bytes(32, "little")


def closings(rounds: dict[str, Round]) -> Cases:
    """Closings with too few: who answers in the phase, and the error."""
    out: Cases = []
    fewest = {"consistency_check": "least", "unmasking": "t"}
    for name in (
        "complete-nobody-drops",
        "annex-a-active",
        "min-survivors",
        "noise-bounded-active",
        "noise-graph",
    ):
        r = rounds[name]
        for phase in r.phases():
            there = sorted(r.sent[phase])
            least = getattr(r.params, fewest.get(phase, "m"))
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
        # Another change than the round's liar makes: equal errors at the points 1 and 2 cancel.
        shares = flip(flip(get(message, "shares"), bit=1), bit=2)
        lie = but(message, shares=shares)
        out.append({"round": name, "phase": "unmasking", "accepted": there,
                    "replace": [{"id": wrong, "bytes": lie}],
                    "error": "RemoteProtocolError", "check": "shares"})  # fmt: skip
    # A masked input moved so far that the survivors cannot have such a sum, weights or count.
    for name, check, element, by in (
        ("annex-a-semi-honest", "sum", 0, 2**14),
        ("annex-a-semi-honest", "weight", 3, 1000),
        ("complete-counted", "clipped", 6, 1000),
        ("noise-integers", "sum", 8, 1000),
        ("noise-integers", "weight", 9, 1000),
        ("noise-weighted", "clipped", 7, 2**23),
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
