"""Faults that a client rejects (docs/protocol.md §8.3-§8.5): one in each message."""

from faults import Cases, Faults, at_word, flip
from faults_roster import roster_faults, signed_roster_faults
from kinds import get
from whole_round import Round

from independent_keys import SHAMIR_PRIME, signed_survivors
from independent_messages import encode
from independent_pairs import seal
from independent_primitives import ids


def client_faults(rounds: dict[str, Round]) -> Cases:
    out: Cases = []
    other = rounds["active"].session
    roster_faults(out, rounds)
    signed_roster_faults(out, rounds)
    _shares(out, rounds["complete-nobody-drops"], other)
    _consistency(out, rounds["annex-a-active"], other)
    _unmask(out, rounds["annex-a-semi-honest"], other)
    _unmask_active(out, rounds["annex-a-active"], rounds["active-prime"].session)
    _few(out, rounds["min-survivors"], rounds["noise-bounded-active"])
    return out


def _shares(out: Cases, r: Round, other: bytes) -> None:
    to = Faults(out, "client", r, "masked_input", 7)
    sealed = get(to.good, "sealed")
    one, two = sealed[:96], sealed[96:]
    to("another session", "session", session=other)
    to("one bit of the session", "session", session=flip(r.session))
    to("ids descend", "ids", senders=ids([9, 8]))
    to("an id twice", "ids", senders=ids([8, 8]))
    to("ids not whole", "ids", senders=ids([8, 9])[:-4])
    to("its own among them", "reflection", senders=ids([7, 8, 9]), sealed=one + sealed)
    to("its own in place of another", "reflection", senders=ids([7, 9]))
    to("a stranger", "unknown id", senders=ids([8, 10]))
    to("only one", "size", senders=ids([8]), sealed=one)
    to("nobody", "size", senders=b"", sealed=b"")
    to("sealed shares a byte short", "length", sealed=sealed[:-1])
    to("sealed shares of one missing", "length", sealed=one)
    to("sealed shares of one too many", "length", sealed=sealed + two)
    for at in (0, 79, 80, 95):
        to(f"bit of byte {at} of the sealed share", "sealed share", sealed=flip(sealed, at, 7))
    share, key = r.content(8, 7), r.box_key(8, 7)
    boxes = {
        "two sealed shares swapped": two + one,
        "what it sealed itself handed back": r.sealed(7, 8) + two,
        "sealed for another": r.sealed(8, 9) + two,
        "another session in the AD": seal(key, share, other, 8, 7) + two,
        "another sender in the AD": seal(key, share, r.session, 9, 7) + two,
        "another receiver in the AD": seal(key, share, r.session, 8, 9) + two,
        "the key of the other direction": seal(r.box_key(7, 8), share, r.session, 8, 7) + two,
    }
    to.each("sealed share", "sealed", boxes)
    for number in (SHAMIR_PRIME, 2**64 - 1):
        for c in (0, 4, 5, 9):
            bent = seal(key, at_word(share, c, number), r.session, 8, 7)
            to(f"{number} as number {c} of a share", "share", sealed=bent + two)


def _consistency(out: Cases, r: Round, other: bytes) -> None:
    to = Faults(out, "client", r, "consistency_check", 1)
    to("another session", "session", session=other)
    to("one bit of the session", "session", session=flip(r.session))
    to("ids descend", "ids", survivors=ids([1, 3, 2]))
    to("an id twice", "ids", survivors=ids([1, 2, 2]))
    to("ids not whole", "ids", survivors=ids([1, 2, 3])[:-1])
    to("a stranger", "unknown id", survivors=ids([1, 2, 4]))
    to("not itself", "self", survivors=ids([2, 3, 300]))
    to("too few", "size", survivors=ids([1, 2]))
    to("it alone", "size", survivors=ids([1]))


def _unmask(out: Cases, r: Round, other: bytes) -> None:
    """Client 1 of Annex A: survivors 1, 2, 3; dropped 300."""
    to, all_ = Faults(out, "client", r, "unmasking", 1), ids([1, 2, 3, 300])
    to("another session", "session", session=other)
    to("survivors descend", "ids", survivors=ids([1, 3, 2]))
    to("a survivor twice", "ids", survivors=ids([1, 2, 3, 3]))
    to("survivors not whole", "ids", survivors=ids([1, 2, 3])[:-1])
    to("dropped not whole", "ids", dropped=ids([300])[:-1])
    to("a dropped one twice", "ids", dropped=ids([300, 300]))
    to("an id in both", "both shares", dropped=ids([3, 300]))
    to("itself in both", "both shares", dropped=ids([1, 300]))
    to("all in both", "both shares", survivors=all_, dropped=all_)
    to("a stranger survives", "unknown id", survivors=ids([1, 2, 3, 4]))
    to("a stranger dropped", "unknown id", dropped=ids([4, 300]))
    to("not itself", "self", survivors=ids([2, 3]), dropped=ids([1, 300]))
    to("it is named nowhere", "self", survivors=ids([2, 3]))
    to("a client of U2 is named nowhere", "missing id", dropped=b"")
    to("a survivor is named nowhere", "missing id", survivors=ids([1, 2]))
    to("too few survivors", "size", survivors=ids([1, 2]), dropped=ids([3, 300]))
    to("signers where nobody signs", "length", signers=ids([1]))
    to("signatures where nobody signs", "length", signatures=b"\0")


def _unmask_active(out: Cases, r: Round, other: bytes) -> None:
    to, all_ = Faults(out, "client", r, "unmasking", 1), ids([1, 2, 3, 300])
    before = [r.answers[phase][1] for phase in ("advertise_keys", "share_keys")]
    before.append(encode(8, r.session, all_))
    survivors, signatures = get(to.good, "survivors"), get(to.good, "signatures")
    one, two, three = signatures[:64], signatures[64:128], signatures[128:]
    to("other survivors than it signed", "consistency", survivors=all_, dropped=b"")
    to("fewer survivors than it signed", "consistency", where={"before": before})
    to("signers descend", "ids", signers=ids([1, 3, 2]))
    to("signers not whole", "ids", signers=ids([1, 2, 3])[:-1])
    to("one signs twice", "ids", signers=ids([1, 1, 2]))
    to("a dropped client signs", "unknown id", signers=ids([1, 2, 300]))
    to("a stranger signs", "unknown id", signers=ids([1, 2, 4]))
    to("signatures a byte short", "length", signatures=signatures[:-1])
    to("a signature missing", "length", signatures=signatures[:128])
    to("no signatures", "length", signatures=b"")
    to("fewer signers than t", "size", signers=ids([1, 2]), signatures=one + two)
    to("nobody signs", "size", signers=b"", signatures=b"")

    def signed(u: int, about: int = 3, session: bytes = r.session, *, over: bytes) -> bytes:
        return one + two + r.signature(u, signed_survivors(session, about, over))

    to.each("signature", "signatures", {
        "one bit of a signature": flip(signatures, -1),
        "its own signature bent": flip(signatures),
        "two signatures swapped": one + three + two,
        "signed by another client": signed(2, over=survivors),
        "signed for another client": signed(3, 2, over=survivors),
        "signed in another session": signed(3, 3, other, over=survivors),
        "signed other survivors": signed(3, over=all_),
        "signed survivors big-endian": signed(3, over=survivors[::-1]),
    })  # fmt: skip


def _few(out: Cases, r: Round, active: Round) -> None:
    """Lists of t clients, where the parameters ask for more."""
    to = Faults(out, "client", r, "masked_input", 1)
    senders = r.seen(1, r.u2)[1:3]
    to("fewer senders than min_survivors", "size", senders=ids(senders),
       sealed=get(to.good, "sealed")[:192])  # fmt: skip
    to = Faults(out, "client", r, "unmasking", 1)
    to("fewer survivors than min_survivors", "size", survivors=ids([1, 3, 4]),
       dropped=ids([2, 5]))  # fmt: skip
    to = Faults(out, "client", active, "consistency_check", 0)
    few = active.u3[: active.params.t]
    to("fewer survivors than min_survivors", "size", survivors=ids(few))
