"""Faults of suite hybrid (docs/protocol.md §8.1 to §8.3): one in each message."""

from draws import draw
from faults import Cases, Faults, at_word, flip
from key_vectors import not_reduced
from kinds import get
from params import with_field
from whole_round import Entry, Round, roster

import independent_mlkem as mlkem
import independent_pairs as pairs
from independent_keys import SHAMIR_PRIME, roster_digest, signed_keys
from independent_primitives import cut, u8

KEM = 1184


def hybrid_faults(rounds: dict[str, Round]) -> Cases:
    out: Cases = []
    plain, active = rounds["hybrid-nobody-drops"], rounds["hybrid-active-three"]
    _advertise(out, plain, active)
    _share_keys(out, plain)
    _masked(out, plain)
    _roster(out, plain, active)
    _shares(out, plain)
    return out


def _suites(to: Faults, r: Round) -> None:
    to("the other suite", "parameters", parameters=with_field(r.params, "suite", u8(1)))
    to("suite 2", "parameters", parameters=with_field(r.params, "suite", u8(2)))


def _advertise(out: Cases, r: Round, active: Round) -> None:
    a, b, _ = r.u1
    to, own = Faults(out, "server", r, "advertise_keys", a), r.clients[a].own[2]
    _suites(to, r)
    to.each("length", "kem_key", {
        "no KEM key": b"",
        "a KEM key a byte short": own[:-1],
        "32 bytes of a KEM key": own[:32],
    })  # fmt: skip
    to("a KEM key a byte long", "encoding", kem_key=own + b"\0")
    for key in not_reduced(own):
        to("a KEM key that is not reduced", "public key", kem_key=key)
    second = {"accepted": [b]}
    to("another's KEM key", "duplicate key", kem_key=r.clients[b].own[2], where=second)
    r = active
    a, b, _ = r.u1
    to, (c, s, e) = Faults(out, "server", r, "advertise_keys", a), r.clients[a].own
    params, other = r.params.digest(), mlkem.public_key(draw("a stranger's KEM", 64))
    without = r.signature(a, signed_keys(params, a, c, s, b""))
    raw = r.signature(a, signed_keys(params, a, c, s, b"") + e)
    to("the KEM key is not signed", "signature", signature=without)
    to("the KEM key itself is signed", "signature", signature=raw)
    to("another KEM key than it signed", "signature", kem_key=other)


def _share_keys(out: Cases, r: Round) -> None:
    a = r.u1[0]
    to = Faults(out, "server", r, "share_keys", a)
    sealed, checks = get(to.good, "sealed"), get(to.good, "checks")
    to("boxes of the other suite", "length", sealed=sealed[: 2 * 96])
    to("a box a byte short", "length", sealed=sealed[:-1])
    to.each("length", "checks", {
        "no checks": b"",
        "a check missing": checks[:-32],
        "a check for itself, too": checks + checks[:32],
        "checks a byte short": checks[:-1],
    })  # fmt: skip


def _masked(out: Cases, r: Round) -> None:
    to = Faults(out, "server", r, "masked_input", r.u3[0])
    deposits = get(to.good, "deposits")
    to.each("length", "deposits", {
        "no deposits": b"",
        "a deposit missing": deposits[:-32],
        "a deposit for itself, too": deposits + deposits[:32],
        "deposits a byte short": deposits[:-1],
    })  # fmt: skip


def _roster(out: Cases, r: Round, active: Round) -> None:
    a, b, last = r.u1
    to = Faults(out, "client", r, "share_keys", a)
    _suites(to, r)
    p, kem = {v: r.entry(v) for v in r.u1}, get(to.good, "kem_keys")
    to.each("length", "kem_keys", {
        "no KEM keys": b"",
        "a KEM key missing": kem[:-KEM],
        "KEM keys a byte short": kem[:-1],
        "KEM keys a byte long": kem + b"\0",
    })  # fmt: skip
    to("its KEM key altered", "own keys", kem_keys=flip(kem))
    without = roster_digest({v: (*entry[:2], b"") for v, entry in p.items()})
    to("a digest without KEM keys", "digest", digest=without)

    def with_last(name: str, check: str, e: bytes) -> None:
        c, s, _, signature = p[last]
        to(name, check, message=roster(r.params, p | {last: (c, s, e, signature)}))

    with_last("two with one KEM key", "duplicate key", p[b][2])
    with_last("another with its KEM key", "duplicate key", p[a][2])
    for key in not_reduced(p[last][2]):
        with_last("a KEM key that is not reduced", "public key", key)

    r = active
    a, _, last = r.u1
    to, p = Faults(out, "client", r, "share_keys", a), {v: r.entry(v) for v in r.u1}
    c, s, e, signature = p[last]
    other, params = mlkem.public_key(draw("a stranger's KEM", 64)), r.params.digest()

    def signed(name: str, check: str, entry: Entry) -> None:
        to(name, check, message=roster(r.params, p | {last: entry}))

    signed("another KEM key than it signed", "signature", (c, s, other, signature))
    without = r.signature(last, signed_keys(params, last, c, s, b""))
    signed("the KEM key is not signed", "signature", (c, s, e, without))
    bad = not_reduced(e)[0]
    over = r.signature(last, signed_keys(params, last, c, s, bad))
    signed("a KEM key that is not reduced, signed", "public key", (c, s, bad, over))


def _shares(out: Cases, r: Round) -> None:
    w, u, _ = r.u1
    to = Faults(out, "client", r, "masked_input", w)
    sealed, checks = get(to.good, "sealed"), get(to.good, "checks")
    (one, two), size = cut(sealed, r.params.box), r.params.box
    to.each("length", "sealed", {
        "boxes of the other suite": sealed[: 2 * 96],
        "boxes a byte short": sealed[:-1],
        "a box missing": one,
    })  # fmt: skip
    to.each("length", "checks", {
        "no checks": b"",
        "a check missing": checks[:32],
        "checks a byte short": checks[:-1],
        "a check too many": checks + checks[:32],
    })  # fmt: skip
    for at in (0, 959, 960, 1087, 1088, 1167, 1168, 1231, 1232, size - 1):
        to(f"bit of byte {at} of the box", "sealed share", sealed=flip(sealed, at, 7))
    to.each("sealed share", "checks", {
        "one bit of a check": flip(checks, -1),
        "checks swapped": checks[32:] + checks[:32],
        "a check of zeros": bytes(32) + checks[32:],
    })  # fmt: skip
    ct, rest = one[:1088], one[1088:]
    key, content, base = r.box_key(u, w), r.content(u, w), r.clients[w]._bases[u]
    secret, other_ct = mlkem.encapsulate(r.clients[w].own[2], draw("other coins", 32))

    def sealed_by(key: bytes, inside: bytes = content, ct: bytes = ct) -> bytes:
        return ct + pairs.seal(key, inside, r.session, u, w) + two

    own = mlkem.decapsulate(r.clients[w]._kem, ct)
    to.each("sealed share", "sealed", {
        "another's ciphertext": two[:1088] + rest + two,
        "another ciphertext": other_ct + rest + two,
        "boxes swapped": two + one,
        "sealed without the KEM": sealed_by(pairs.box_key(r.session, base, b"", u, w, ct)),
        "sealed under the secret of the pair": sealed_by(base),
        "sealed without the ciphertext's hash":
            sealed_by(pairs.box_key(r.session, base, own, u, w, b"")),
        "sealed under another secret of the KEM":
            sealed_by(pairs.box_key(r.session, base, secret, u, w, ct)),
        "one bit of p": sealed_by(key, flip(content, 80)),
        "one bit of q": sealed_by(key, flip(content, 143)),
        "p and q swapped": sealed_by(key, content[:80] + content[112:] + content[80:112]),
    })  # fmt: skip
    for place in (0, 9):
        bent = sealed_by(key, at_word(content, place, SHAMIR_PRIME))
        to(f"p as number {place} of a share", "share", sealed=bent)
