"""Faults of complaints and answers (docs/protocol.md §8.3 and §8.5): one in each message."""

from faults import Cases, Faults, at_word, flip
from kinds import get
from signing import accepted_of, answer_of, answers_of, list_of, told
from whole_round import Round

import independent_dealing as dealing
from independent_dealing import FORGOTTEN
from independent_keys import SHAMIR_PRIME
from independent_primitives import cut, u64le


def blame_faults(rounds: dict[str, Round]) -> Cases:
    out: Cases = []
    for name in ("active-prime", "hybrid-active-three"):
        _accepted(out, rounds[name], rounds["active"])
        _answer(out, rounds[name], rounds["active"])
    _complaints(out, rounds["blame-noise"])
    _disclosed(out, rounds["blame-hybrid"])
    _too_many(out, rounds["active-unmasking"])
    _forgotten(out, rounds["blame-noise"])
    return out


def _accepted(out: Cases, r: Round, other: Round) -> None:
    w, v, _ = r.u3
    to, listed = Faults(out, "server", r, "masked_input", w), list_of(r, w, {})
    good = get(to.good, "accepted")

    def over(listed: bytes, session: bytes = r.session, u: int = w, by: int = w) -> bytes:
        return r.signature(by, dealing.accepted(session, u, listed))

    assert over(listed) == good
    answer = dealing.answer(r.session, w, listed)
    to.each("accepted", "accepted", {
        "not signed": b"",
        "63 bytes of the signature": good[:63],
        "one bit of the signature": flip(good),
        "another's signature": get(r.sent["masked_input"][v], "accepted"),
        "signed by another": over(listed, by=v),
        "signed for another holder": over(listed, u=v),
        "signed for another session": over(listed, other.session),
        "another leaf": over(flip(listed, 8)),
        "another's leaf": over(list_of(r, v, {})),
        "a leaf less": over(listed[:-41]),
        "a complaint that is only signed": over(list_of(r, w, {v: 1})),
        "signed as an answer": r.signature(w, answer),
    })  # fmt: skip
    to("a complaint that is not signed", "accepted", complaints=told({v: 1}))
    if not r.params.hybrid:
        to("a disclosure in suite x25519", "disclosed", disclosed=bytes(96))


def _complaints(out: Cases, r: Round) -> None:
    """Client 4, which complains of 2; its signature is over what it says."""
    w = 4
    to = Faults(out, "server", r, "masked_input", w)

    def says(name: str, complaints: dict[int, int], data: bytes | None = None) -> None:
        to(name, "accepted", complaints=told(complaints) if data is None else data,
           accepted=accepted_of(r, w, complaints))  # fmt: skip

    says("complaints descend", {3: 1, 2: 1})
    says("a complaint twice", {2: 1}, told({2: 1}) * 2)
    says("a complaint of itself", {2: 1, 4: 1})
    says("a complaint of a stranger", {2: 1, 9: 1})
    says("complaint 0", {2: 0})
    says("complaint 2 in suite x25519", {2: 2})
    says("complaint 3", {2: 3})
    says("complaint 255", {2: 255})
    says("half a complaint", {2: 1}, told({2: 1})[:-1])
    to("its complaint left out", "accepted", complaints=b"")
    to("a complaint of another", "accepted", complaints=told({3: 1}))


def _disclosed(out: Cases, r: Round) -> None:
    """Client 2 of suite hybrid, which complains of 1 and 7 by 2."""
    w = 2
    to = Faults(out, "server", r, "masked_input", w)
    good = get(to.good, "disclosed")
    one, two = cut(good, 96)
    to.each("disclosed", "disclosed", {
        "nothing disclosed": b"",
        "one disclosed": one,
        "disclosed a byte short": good[:-1],
        "disclosed of one too many": good + one,
        "disclosed of two, swapped": two + one,
        "one bit of p": flip(good, 32),
        "one bit of q": flip(good, 64),
        "one bit of the last q": flip(good, -1),
        "p and q swapped": one[:32] + one[64:] + one[32:64] + two,
        "zeros": bytes(192),
    })  # fmt: skip
    for kind in (0, 3):
        complaints = {1: 2, 7: kind}
        to(f"complaint {kind}", "accepted", complaints=told(complaints),
           accepted=accepted_of(r, w, complaints))  # fmt: skip
    mild = {1: 1, 7: 2}
    to("disclosed of one too many for its complaints", "disclosed", complaints=told(mild),
       accepted=accepted_of(r, w, mild))  # fmt: skip


def _too_many(out: Cases, r: Round) -> None:
    """Client 1 of four complains of two, more than 2t - n - 1."""
    w = r.u3[0]
    to, complaints = Faults(out, "server", r, "masked_input", w), dict.fromkeys(r.u3[1:3], 1)
    signature = accepted_of(r, w, complaints)
    to("too many complaints", "dealer", complaints=told(complaints), accepted=signature)


def _answer(out: Cases, r: Round, other: Round) -> None:
    w, v, _ = r.u3
    to = Faults(out, "server", r, "unmasking", w)
    good, shares = get(to.good, "answer"), get(to.good, "shares")
    assert good == answer_of(r, w, shares)
    changed = flip(shares)
    rows = answers_of(r, w, shares)
    to.each("answer", "answer", {
        "not signed": b"",
        "63 bytes of the signature": good[:63],
        "one bit of the signature": flip(good),
        "another's signature": get(r.sent["unmasking"][v], "answer"),
        "signed for another session": r.signature(w, dealing.answer(other.session, w, rows)),
        "signed for another holder": r.signature(w, dealing.answer(r.session, v, rows)),
        "signed by another": r.signature(v, dealing.answer(r.session, w, rows)),
        "signed over other shares": answer_of(r, w, changed),
        "signed over shares of the other kind":
            r.signature(w, dealing.answer(r.session, w, rows[:8] + b"\1" + rows[9:])),
        "signed as an acceptance": r.signature(w, dealing.accepted(r.session, w, rows)),
    })  # fmt: skip
    to("other shares than it signed", "answer", shares=changed)
    swapped = shares[40:80] + shares[:40] + shares[80:]
    to("shares in another order than it signed", "answer", shares=swapped)
    large = at_word(shares, 0, SHAMIR_PRIME)
    to("p as a share, signed", "share", shares=large, answer=answer_of(r, w, large))
    ff = shares[:40] + FORGOTTEN + shares[80:]
    to("no share of a dealer that it accepted", "share", shares=ff, answer=answer_of(r, w, ff))


def _forgotten(out: Cases, r: Round) -> None:
    """Client 4, which complained of 2."""
    w = 4
    to = Faults(out, "server", r, "unmasking", w)
    shares = get(to.good, "shares")
    assert shares[40:80] == FORGOTTEN
    for name, share in {
        "a share of the dealer that it complained of": r.content(3, w)[:40],
        "zeros for the dealer that it complained of": bytes(40),
        "ff for the dealer but for the last byte": FORGOTTEN[:-1] + b"\xfe",
        "p in one integer for the dealer": FORGOTTEN[:32] + u64le(SHAMIR_PRIME),
    }.items():
        other = shares[:40] + share + shares[80:]
        to(name, "share", shares=other, answer=answer_of(r, w, other))
