"""A lying aggregator with t − 1 helpers and some clients: what each check stops.

The aggregator builds its messages itself, without the checks of `Accumulator`.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from oneshot_parties import LENIENT, Parties, parties, registry_for, rejects
from secagg import Identity, ParameterError
from secagg.encoding import Ring
from secagg.oneshot import (
    Accumulator,
    Helper,
    HelperJournal,
    OneShotPolicy,
    messages,
    report,
    seeds,
    suites,
)
from secagg.oneshot.messages import Kind, Request
from secagg.testing import make_identity

R = Ring(1 << 32)


def request(
    made: Parties,
    ids: Iterable[int],
    batch: int = 0,
    reservations: Iterable[bytes] = (),
) -> bytes:
    """Return a request for any list, with the signatures of some reservations."""
    signatures = {int.from_bytes(r[34:36], "little"): r[68:] for r in reservations}
    asked = Request(batch, np.array(list(ids), np.uint64), signatures)
    return messages.write_request(asked, made.params)


def chunk(made: Parties, helper: int, *records: bytes) -> bytes:
    return (
        messages.start(Kind.BOXES, made.params) + struct.pack("<H", helper) + b"".join(records)
    )


def record(made: Parties, sent: bytes, helper: int) -> bytes:
    """Return what a helper gets of a report."""
    layout = made.params.layout
    signature = sent[layout.boxes[-1] : layout.values]
    return sent[34 : 34 + layout.head] + sent[layout.box(helper)] + signature


def masks(answer: bytes) -> list[np.ndarray]:
    """Return the masks of an answer, of four elements each."""
    return list(np.frombuffer(answer[68:], np.uint32).reshape(-1, 4))


def test_single_client_is_not_opened() -> None:
    with parties() as made:
        made.check(made.accumulator(range(3)))
        for helper in made.helpers:
            rejects("count", lambda helper=helper: helper.open(request(made, [0])))
            rejects("count", lambda helper=helper: helper.open(request(made, [])))


@pytest.mark.parametrize("whose", ["params", "helper"])
def test_fewer_than_the_minimum_are_not_opened(whose: str) -> None:
    with parties(min_clients=4 if whose == "params" else 2) as made:
        least = 2 if whose == "params" else 4
        registry = registry_for(made.params)
        helper = Helper(
            made.params, made.journals[0], registry=registry, min_clients=least, policy=LENIENT
        )
        made.helpers[0] = helper
        made.check(made.accumulator(range(4)))
        rejects("count", lambda: helper.reserve(request(made, [0, 1, 2])))
        helper.reserve(request(made, [0, 1, 2, 3]))


def test_more_than_n_are_not_opened() -> None:
    with parties(n_clients=3) as made:
        for u in range(4):
            made.helpers[0].check(chunk(made, 1, record(made, made.report(u), 1)))
        rejects("count", lambda: made.helpers[0].reserve(request(made, range(4))))


def test_sybils_outside_the_registry_are_rejected() -> None:
    with parties() as made:
        sent = report(
            np.arange(4), made.params, 77, identity=Identity(bytes(32)), policy=LENIENT
        )
        assert made.helpers[0].check(chunk(made, 1, record(made, sent, 1))) == (77,)
        mine = report(
            np.arange(4), made.params, 5, identity=Identity(bytes(32)), policy=LENIENT
        )
        assert made.helpers[0].check(chunk(made, 1, record(made, mine, 1))) == (5,)
        made.check(made.accumulator([0, 1]))
        rejects("unchecked", lambda: made.helpers[0].reserve(request(made, [0, 1, 77])))


def test_id_twice_in_a_list_is_rejected() -> None:
    with parties() as made:
        made.check(made.accumulator(range(3)))
        for ids in ([0, 1, 1, 2], [0, 1, 2, 2], [2, 1, 0]):
            rejects("ids", lambda ids=ids: made.helpers[0].reserve(request(made, ids)))


@pytest.mark.parametrize("security", ["active", "semi-honest"])
def test_box_copied_to_another_id_is_rejected(security: str) -> None:
    """Under its own and a corrupt client's id, a client would be opened in two batches."""
    with parties(security=security) as made:
        victim = record(made, made.report(0), 1)
        copy = (9).to_bytes(8, "little") + victim[8:]
        if made.params.active:
            head = messages.read_head(copy[: made.params.layout.head], made.params)
            copy = copy[:-64] + make_identity(9).sign(head.content)
        assert made.helpers[0].check(chunk(made, 1, copy)) == (9,)


def test_id_in_the_box_counts_even_if_the_commitments_are_recomputed() -> None:
    """A corrupt client that knows the seeds of one box still cannot move the other one."""
    with parties(security="semi-honest") as made:
        params, sent = made.params, made.report(0)
        box = sent[params.layout.box(2)]
        own = bytes(16)
        stated = [seeds.commitment(own, params.digest, 9, i) for i in (1, 2)]
        content = (9).to_bytes(8, "little") + b"".join(stated)
        assert made.helpers[1].check(chunk(made, 2, content + box)) == (9,)


@pytest.mark.parametrize(("helpers", "threshold"), [(2, 2), (3, 2), (5, 3)])
def test_two_lists_with_a_common_client_are_not_reserved(helpers: int, threshold: int) -> None:
    """Not even if both are signed before either is opened."""
    with parties(helpers, threshold) as made:
        made.check(made.accumulator(range(5)))
        for helper in made.helpers:
            helper.reserve(request(made, [0, 1, 2, 3]))
            error = rejects(
                "spent", lambda helper=helper: helper.reserve(request(made, [1, 2, 3, 4], 1))
            )
            assert error.sender == 1
        # not even if all keys have signed the other list, on restored journals
        signed = [
            made.restarted(j).reserve(request(made, [0, 1, 2], 2)) for j in range(helpers)
        ]
        third = request(made, [0, 1, 2], 2, signed)
        rejects("spent", lambda: made.helpers[0].open(third))


def test_batch_number_is_of_one_list() -> None:
    with parties() as made:
        made.check(made.accumulator(range(6)))
        made.helpers[0].reserve(request(made, [0, 1, 2]))
        rejects("batch", lambda: made.helpers[0].reserve(request(made, [3, 4, 5])))
        made.helpers[0].reserve(request(made, [3, 4, 5], 1))


def test_retry_with_a_shorter_list_is_rejected() -> None:
    with parties(security="semi-honest") as made:
        made.check(made.accumulator(range(5)))
        made.helpers[0].open(request(made, [0, 1, 2, 3]))
        for batch, check in enumerate(["batch", "spent"]):
            rejects(check, lambda b=batch: made.helpers[0].open(request(made, [0, 1, 2], b)))


def test_two_lists_to_two_helpers_get_no_quorum() -> None:
    """One liar of three signs both lists; each list has two signatures, and needs three."""
    with parties(3, 2) as made:
        made.check(made.accumulator(range(5)))
        first, second = request(made, [0, 1, 2, 3]), request(made, [1, 2, 3, 4])
        liar = made.restarted(0)
        signed = {
            1: [made.helpers[0].reserve(first), made.helpers[1].reserve(first)],
            2: [liar.reserve(second), made.helpers[2].reserve(second)],
        }
        both = request(made, [0, 1, 2, 3], reservations=signed[1])
        rejects("quorum", lambda: made.helpers[1].open(both))
        both = request(made, [1, 2, 3, 4], reservations=signed[2])
        rejects("quorum", lambda: made.helpers[2].open(both))
        rejects("quorum", lambda: made.helpers[1].open(first))
        mixed = [*signed[1], signed[2][1]]
        rejects(
            "signature",
            lambda: made.helpers[1].open(request(made, [0, 1, 2, 3], reservations=mixed)),
        )


def test_one_signature_in_three_places_is_no_quorum() -> None:
    with parties(3, 2) as made:
        made.check(made.accumulator(range(5)))
        own = made.helpers[0].reserve(request(made, [0, 1, 2]))
        copies = [own[:34] + struct.pack("<H", j) + own[36:] for j in (1, 2, 3)]
        asked = request(made, [0, 1, 2], reservations=copies)
        rejects("signature", lambda: made.helpers[0].open(asked))
        body = request(made, [0, 1, 2]) + 3 * (struct.pack("<H", 1) + own[68:])
        rejects("signatures", lambda: made.helpers[0].open(body))


def test_list_changed_after_signing_is_not_opened() -> None:
    with parties(3, 2) as made:
        made.check(made.accumulator(range(5)))
        signed = [h.reserve(request(made, [0, 1, 2, 3])) for h in made.helpers]
        fresh = made.restarted(0)
        for ids in ([0, 1, 2], [0, 1, 2, 4]):
            asked = request(made, ids, reservations=signed)
            rejects("signature", lambda asked=asked: fresh.open(asked))
        fresh.reserve(request(made, [2, 3, 4], 1))  # nothing was spent


def test_endorsement_or_reservation_of_another_list_is_no_signature() -> None:
    with parties(3, 2) as made:
        made.check(made.accumulator(range(6)))
        other = [h.reserve(request(made, [3, 4, 5], 7)) for h in made.helpers]
        asked = request(made, [0, 1, 2], reservations=other)
        rejects("signature", lambda: made.helpers[0].open(asked))
        endorsed = [r[:68] + h.endorse() for r, h in zip(other, made.helpers, strict=True)]
        asked = request(made, [0, 1, 2], 1, reservations=endorsed)
        rejects("batch", lambda: made.helpers[0].reserve(request(made, [0, 1, 2], 7)))
        fresh = made.restarted(1)
        rejects("signature", lambda: fresh.open(asked))


def test_another_report_under_an_id_is_another_list() -> None:
    """A client reported twice: helpers that checked different reports sign other lists."""
    with parties(3, 2) as made:
        accumulator = made.accumulator(range(3))
        made.check(accumulator)
        again = made.report(1, seed="again")
        made.helpers[2].check(chunk(made, 3, record(made, again, 3)))
        signed = [h.reserve(request(made, [0, 1, 2])) for h in made.helpers]
        assert signed[0][36:68] == signed[1][36:68] != signed[2][36:68]
        asked = request(made, [0, 1, 2], reservations=signed)
        for helper in made.helpers:
            rejects("signature", lambda helper=helper: helper.open(asked))
        # and none of them opens the other report of this client later
        made.helpers[0].check(chunk(made, 1, record(made, again, 1)))
        rejects("batch", lambda: made.helpers[0].reserve(request(made, [0, 1, 2])))
        rejects("spent", lambda: made.helpers[0].reserve(request(made, [0, 1, 2], 1)))


def test_report_replaced_while_its_list_is_reserved_is_not_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Masks are of the reports in D, even if another thread checks a box in between."""
    with parties() as made:
        made.check(made.accumulator(range(3)))
        helper, before = made.helpers[0], HelperJournal.reserve
        expected = helper.open(request(made, [0, 1, 2]))
        again = chunk(made, 1, record(made, made.report(1, seed="again"), 1))

        def reserve(*arguments: object) -> None:
            before(*arguments)  # type: ignore[arg-type]
            assert helper.check(again) == ()

        monkeypatch.setattr(HelperJournal, "reserve", reserve)
        assert helper.open(request(made, [0, 1, 2])) == expected


def test_boxes_of_another_session_are_rejected() -> None:
    with parties() as made:
        params = made.params
        other = made.make_params(session=b"session 2")
        sent = made.report(0, params=other)
        rejects(
            "parameters",
            lambda: made.helpers[0].check(
                messages.start(Kind.BOXES, other) + b"\1\0" + record(made, sent, 1)
            ),
        )
        moved = chunk(made, 1, record(made, sent, 1))
        assert made.helpers[0].check(moved) == (0,)
        rejects("parameters", lambda: made.accumulator([]).add(sent))
        assert params.digest != other.digest


@pytest.mark.parametrize(
    "changes",
    [
        {"threshold": 1},
        {"min_clients": 2},
        {"security": "semi-honest"},
        {"n_clients": 9},
        {"length": 3},
    ],
    ids=str,
)
def test_parameters_swapped_between_parties_open_nothing(changes: dict[str, object]) -> None:
    """The client's boxes are bound to its own parameters, whatever the helpers are told."""
    with parties(3, 2) as made:
        sent = made.report(0)
        box = sent[made.params.layout.box(1)]
        made.restart(made.make_params(**changes))
        helper = made.helpers[0]
        head = sent[34 : 34 + 8 + 32 * helper.params.seeds]
        size = helper.params.layout.record(1)
        content = (head + box + bytes(200))[:size]
        if helper.params.active:
            whole = messages.read_head(head, helper.params)
            content = content[:-64] + make_identity(0).sign(whole.content)
        start = messages.start(Kind.BOXES, helper.params)
        assert helper.check(start + b"\1\0" + content) == (0,)


def test_another_helpers_box_is_rejected() -> None:
    with parties(3, 2) as made:
        sent = made.report(0)
        layout = made.params.layout
        crossed = bytearray(sent)
        crossed[layout.box(1)], crossed[layout.box(2)] = (
            sent[layout.box(2)],
            sent[layout.box(1)],
        )
        for j in (1, 2):
            assert made.helpers[j - 1].check(
                chunk(made, j, record(made, bytes(crossed), j))
            ) == (0,)
        rejects("helper", lambda: made.helpers[0].check(chunk(made, 2, record(made, sent, 2))))


def test_box_resealed_for_another_place_is_rejected() -> None:
    """The info has the helper's number: a seed list for place 2 is none for place 1."""
    with parties(2, 2, security="semi-honest") as made:
        params = made.params
        seed = bytes(16)
        stated = [seeds.commitment(seed, params.digest, 4, i) for i in (1, 2)]
        content = (4).to_bytes(8, "little") + b"".join(stated)
        head = messages.read_head(content, params)
        for j, expected in ((1, ()), (2, (4,))):
            box = suites.seal("x25519", params.helpers[0][0], seed, messages.box_info(head, j))
            assert made.helpers[0].check(chunk(made, 1, content + box)) == expected


@pytest.mark.parametrize("which", [1, 2])
def test_altered_commitment_is_rejected(which: int) -> None:
    """Signed or not: a client that commits to other seeds than it sealed is named."""
    with parties(2, 2) as made:
        sent = bytearray(made.report(0))
        sent[42 + 32 * (which - 1)] ^= 1
        head = messages.read_head(bytes(sent[34 : 34 + made.params.layout.head]), made.params)
        at = made.params.layout.boxes[-1]
        for signature in (sent[at : at + 64], make_identity(0).sign(head.content)):
            sent[at : at + 64] = signature
            rejected = [
                made.helpers[j].check(chunk(made, j + 1, record(made, bytes(sent), j + 1)))
                for j in (0, 1)
            ]
            assert rejected == [(0,), (0,)]


def test_commitment_to_other_seeds_than_the_sealed_is_rejected() -> None:
    """Such a client would make two helpers open masks that do not belong together."""
    with parties(2, 2, security="semi-honest") as made:
        params = made.params
        stated = [seeds.commitment(bytes(16), params.digest, 4, i) for i in (1, 2)]
        content = (4).to_bytes(8, "little") + b"".join(stated)
        info = messages.box_info(messages.read_head(content, params), 1)
        key = params.helpers[0][0]
        wrong = suites.seal("x25519", key, b"other seed......", info)
        right = suites.seal("x25519", key, bytes(16), info)
        assert made.helpers[0].check(chunk(made, 1, content + wrong)) == (4,)
        assert made.helpers[0].check(chunk(made, 1, content + right)) == ()


def test_unchecked_and_rejected_clients_are_not_reserved() -> None:
    with parties() as made:
        accumulator = made.accumulator(range(4))
        made.check(accumulator)
        error = rejects(
            "unchecked", lambda: made.helpers[0].reserve(request(made, [0, 1, 2, 5]))
        )
        assert error.sender == 5
        # nothing was spent
        made.helpers[0].reserve(request(made, [0, 1, 2, 3]))


def test_checking_reveals_and_reserves_nothing_and_can_be_repeated() -> None:
    with parties() as made:
        accumulator = made.accumulator(range(4))
        for _ in range(3):
            assert made.check(accumulator) == set()
        assert made.open(accumulator).integers.tolist() == made.expected(range(4))


def test_restored_journal_opens_twice(tmp_path: Path) -> None:
    """Outside the threat model, and stated there: a copy of a journal counts as corrupt."""
    with parties(security="semi-honest", min_clients=2) as made:
        made.check(made.accumulator(range(4)))
        old = Path(made.journals[0].path).read_bytes()
        whole = made.helpers[0].open(request(made, [0, 1, 2, 3]))
        (tmp_path / "copy").write_bytes(old)
        with HelperJournal.open(tmp_path / "copy") as copy:
            clone = Helper(made.params, copy, policy=LENIENT)
            clone._checked = made.helpers[0]._checked
            assert (
                masks(clone.open(request(made, [0, 1, 2])))[0].tolist()
                != masks(whole)[0].tolist()
            )
        rejects("batch", lambda: made.helpers[0].open(request(made, [0, 1, 2])))


def test_helpers_with_t_minus_1_of_them_corrupt_lack_a_mask_of_every_client() -> None:
    """The aggregator and a corrupt helper cannot unmask a report that was not opened."""
    with parties(3, 2, security="semi-honest") as made:
        params, sent = made.params, made.report(0)
        assert made.helpers[0].check(chunk(made, 1, record(made, sent, 1))) == ()
        known = set(params.held_by(1))
        assert len(known) == params.seeds - 1


def test_digest_of_a_list_binds_everything() -> None:
    """D = SHA-256(label ‖ params ‖ batch ‖ count ‖ id ‖ SHA-256(head) …), to the byte."""
    with parties() as made:
        digest = made.params.digest
        sent = {u: made.report(u) for u in (1, 2, 3)}
        heads = b""
        for u, data in sent.items():
            assert made.helpers[0].check(chunk(made, 1, record(made, data, 1))) == ()
            content = u.to_bytes(8, "little") + data[42 : 42 + 64]
            head = b"secagg/1 one-shot report" + digest + content
            heads += u.to_bytes(8, "little") + hashlib.sha256(head).digest()
        whole = b"secagg/1 one-shot batch" + digest + struct.pack("<QQ", 5, 3) + heads
        reserved = made.helpers[0].reserve(request(made, [1, 2, 3], 5))
        assert reserved[36:68] == hashlib.sha256(whole).digest()


def test_info_of_a_box_binds_the_whole_head_and_the_place() -> None:
    """A box opens under SHA-256(label ‖ params ‖ id ‖ commitments ‖ place), to the byte."""
    with parties(3, 2) as made:
        params, sent = made.params, made.report(5)
        stated = sent[42 : 42 + 32 * params.seeds]
        start = b"secagg/1 one-shot report" + params.digest
        key, box = made.journals[1].box_key, sent[params.layout.box(2)]

        def opens(head: bytes, place: int = 2) -> bool:
            info = hashlib.sha256(head + struct.pack("<H", place)).digest()
            return key.open(box, b"secagg/1 one-shot box" + info) is not None

        assert opens(start + struct.pack("<Q", 5) + stated)
        assert not opens(start + struct.pack("<Q", 6) + stated)
        assert not opens(start + struct.pack("<Q", 5) + stated, place=1)
        assert not opens(start + struct.pack("<Q", 5) + bytes(32) + stated[32:])


def test_helpers_sign_two_statements_with_a_label_each() -> None:
    with parties(3, 2) as made:
        made.check(made.accumulator(range(3)))
        reserved = made.helpers[1].reserve(request(made, [0, 1, 2]))
        params, digest = made.params, reserved[36:68]
        for label, signed, signature in (
            (b"secagg/1 one-shot reserved", digest, reserved[68:]),
            (b"secagg/1 one-shot endorsed", params.digest, made.helpers[1].endorse()),
        ):
            assert params.identities.verifies(2, label + signed, signature)
            assert not params.identities.verifies(2, signed, signature)


def test_policy_stops_helpers_that_the_aggregator_chose() -> None:
    """With its own keys in the place of the helpers', the aggregator would read everything."""
    with parties(3, 2) as honest, parties(3, 2) as aggregator:
        known = OneShotPolicy(helpers=frozenset(j.public[1] for j in honest.journals))
        keys = [
            (fake.public[0], true.public[1])
            for fake, true in zip(aggregator.journals, honest.journals, strict=True)
        ]
        for helpers, signers in (
            ([j.public for j in aggregator.journals], aggregator),
            (keys, aggregator),
        ):
            params = honest.make_params(helpers=helpers)
            endorsed = [
                j.identity.sign(b"secagg/1 one-shot endorsed" + params.digest)
                for j in signers.journals
            ]
            with pytest.raises(ParameterError):
                report(
                    np.arange(4),
                    params,
                    1,
                    identity=make_identity(1),
                    policy=known,
                    endorsements=endorsed,
                )


@pytest.mark.parametrize("cut", [0, 10, 34, 40, 60])
def test_malformed_chunks_and_requests_store_nothing(cut: int) -> None:
    with parties() as made:
        right = chunk(made, 1, record(made, made.report(0), 1))
        asked = request(made, [0, 1, 2])
        for call, data in ((made.helpers[0].check, right), (made.helpers[0].open, asked)):
            rejects("length", lambda call=call, data=data: call(data[:cut]))
            with pytest.raises(ParameterError):
                call("text")  # type: ignore[arg-type]
        rejects("length", lambda: made.helpers[0].check(right + b"\0"))
        rejects("encoding", lambda: made.helpers[0].check(asked))
        huge = asked[:42] + struct.pack("<Q", 1 << 61) + asked[50:]
        rejects("length", lambda: made.helpers[0].open(huge))
        assert made.helpers[0]._checked == {}


def test_helper_without_a_place_in_the_parameters_raises() -> None:
    with parties() as made, parties() as other:
        with pytest.raises(ParameterError):
            Helper(made.params, other.journals[0], registry=registry_for(made.params))
        for changes in (
            {"registry": None},
            {"min_clients": 1},
            {"journal": made.journals[0].path},
            {"params": made.params.to_bytes()},
        ):
            arguments: dict[str, object] = {
                "params": made.params,
                "journal": made.journals[0],
                "registry": registry_for(made.params),
            } | changes
            with pytest.raises(ParameterError):
                Helper(**arguments)  # type: ignore[arg-type]


def test_accumulator_adds_nothing_after_dropping_what_a_helper_rejects() -> None:
    """A client whose box is bad does not cost the batch."""
    with parties(2, 2) as made:
        accumulator = made.accumulator(range(4))
        bad = bytearray(made.report(4))
        bad[made.params.layout.boxes[0] + 40] ^= 1  # in box 1, which no signature covers
        assert accumulator.add(bytes(bad))
        assert made.check(accumulator) == {4}
        with_it = Accumulator.from_bytes(
            accumulator.to_bytes(), made.params, registry=registry_for(made.params)
        )
        rejects("unchecked", lambda: made.open(with_it))
        accumulator.drop([4])
        assert made.open(accumulator).integers.tolist() == made.expected(range(4))
