"""A lying aggregator with t − 1 helpers and some clients: what each check stops.

The aggregator builds its messages itself, without the checks of `Accumulator`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
import pytest

from oneshot_parties import LENIENT, Parties, parties, registry_for, rejects
from secagg import ParameterError
from secagg.oneshot import Helper, HelperJournal, OneShotPolicy, messages, report
from secagg.oneshot.messages import Kind, Request
from secagg.testing import make_identity


def request(
    made: Parties, ids: Iterable[int], batch: int = 0, reservations: Iterable[bytes] = ()
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


def test_fewer_than_the_helpers_own_minimum_are_not_opened() -> None:
    with parties(min_clients=2) as made:
        registry = registry_for(made.params)
        helper = Helper(
            made.params, made.journals[0], registry=registry, min_clients=4, policy=LENIENT
        )
        made.helpers[0] = helper
        made.checked(range(4))
        rejects("count", lambda: helper.reserve(request(made, [0, 1, 2])))
        helper.reserve(request(made, [0, 1, 2, 3]))


@pytest.mark.parametrize(("helpers", "threshold"), [(2, 2), (3, 2)])
def test_two_lists_with_a_common_client_are_not_reserved(helpers: int, threshold: int) -> None:
    """Not even if both are signed before either is opened."""
    with parties(helpers, threshold) as made:
        made.checked(range(5))
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


def test_two_lists_to_two_helpers_get_no_quorum() -> None:
    """One liar of three signs both lists; each list has two signatures, and needs three."""
    with parties(3, 2) as made:
        made.checked(range(5))
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


def test_list_changed_after_signing_is_not_opened() -> None:
    with parties(3, 2) as made:
        made.checked(range(5))
        signed = [h.reserve(request(made, [0, 1, 2, 3])) for h in made.helpers]
        fresh = made.restarted(0)
        for ids in ([0, 1, 2], [0, 1, 2, 4]):
            asked = request(made, ids, reservations=signed)
            rejects("signature", lambda asked=asked: fresh.open(asked))
        fresh.reserve(request(made, [2, 3, 4], 1))  # nothing was spent


def test_another_report_under_an_id_is_another_list() -> None:
    """A client reported twice: helpers that checked different reports sign other lists."""
    with parties(3, 2) as made:
        made.checked(range(3))
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
        made.checked(range(3))
        helper, before = made.helpers[0], HelperJournal.reserve
        expected = helper.open(request(made, [0, 1, 2]))
        again = chunk(made, 1, record(made, made.report(1, seed="again"), 1))

        def reserve(*arguments: object) -> None:
            before(*arguments)  # type: ignore[arg-type]
            assert helper.check(again) == ()

        monkeypatch.setattr(HelperJournal, "reserve", reserve)
        assert helper.open(request(made, [0, 1, 2])) == expected


@pytest.mark.parametrize("changes", [{"threshold": 1}, {"security": "semi-honest"}], ids=str)
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


def test_helper_without_a_place_in_the_parameters_raises() -> None:
    with parties() as made, parties() as other:
        with pytest.raises(ParameterError):
            Helper(made.params, other.journals[0], registry=registry_for(made.params))
        for changes in (
            {"registry": None},
            *({"min_clients": least} for least in (1, 2.5)),
            *(
                {"policy": wrong}
                for wrong in (3, OneShotPolicy(helpers=frozenset([bytes(32)])))
            ),
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
        with_it = made.restored(accumulator.to_bytes())
        assert rejects("unchecked", lambda: made.open(with_it)).sender == 4
        accumulator.drop([4])
        assert made.open(accumulator).integers.tolist() == made.expected(range(4))
