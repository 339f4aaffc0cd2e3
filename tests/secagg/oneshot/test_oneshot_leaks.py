"""Nothing of an input in any repr, error, journal, log or message length."""

from __future__ import annotations

import dataclasses
import logging
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from effort import examples
from oneshot_parties import ram_folder
from secagg import SecAggError, testing
from secagg.oneshot import messages, stored
from secagg.testing.rounds import plain_encoding


@dataclass
class Seen:
    """Everything of a round that somebody other than a client can see, in order.

    Attributes
    ----------
    reports : dict of id to bytes
    sizes : list of int
        Lengths of all messages and of the accumulator's bytes.
    equal : list
        Messages, journals' rows, texts and errors, without boxes, which HPKE draws.
    files : list of bytes
        Journals as they are on the disk.
    """

    reports: dict[int, bytes] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    equal: list[object] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)


def watch(round: testing.OneShotRound) -> Seen:
    """Run a round and some of its failures; return what there is to see."""
    seen = Seen()
    for u in round.vectors:
        seen.reports[u] = round.report(u)
        again = text_of(lambda u=u: round.accumulator(u).add(seen.reports[u][:-1]))
        seen.equal.append(again)
    accumulator = round.accumulator()
    with ram_folder() as folder, round.helpers(folder) as helpers:
        for helper in helpers:
            for chunk in accumulator.boxes(helper.number):
                seen.sizes.append(len(chunk))
                seen.equal.append(helper.check(chunk))
                seen.equal.append(text_of(lambda h=helper, c=chunk: h.check(c[1:])))
        request = accumulator.request()
        reserved = [helper.reserve(request) for helper in helpers]
        if round.params.quorum:
            request = accumulator.request(reserved)
        answers = [helper.open(request) for helper in helpers]
        shorter = messages.read_request(request, round.params)
        other = messages.write_request(shorter._replace(batch=7), round.params)
        # two helpers that contradict each other, and another list
        flipped = [a[:-1] + bytes([a[-1] ^ 1]) for a in answers]
        seen.equal += [request, *reserved, *answers]
        seen.equal += [text_of(lambda h=h: h.open(other)) for h in helpers]
        seen.equal.append(text_of(lambda: accumulator.result([*answers, *flipped])))
        result = accumulator.result(answers)
        data = accumulator.to_bytes()
        seen.sizes += [len(m) for m in (*seen.reports.values(), request, *answers, data)]
        seen.equal += [repr(accumulator), stored.unpack(data, round.params).digests.keys()]
        seen.equal += [repr(helper) for helper in helpers]
        seen.equal.append(repr(result).partition(", weight")[0])  # the sum's owner sees weights
        kept = [(h._journal.path, h._checked.values()) for h in helpers]
        shown = repr([*helpers, accumulator, result, *(h._journal for h in helpers)])
        drawn = [
            seeds[at : at + 16]
            for _, checked in kept
            for seeds in checked
            for at in range(32, len(seeds), 16)
        ]
        assert not any(seed.hex() in shown or repr(seed)[2:-1] in shown for seed in drawn)
        for helper in helpers:
            helper._journal.close()
        for path, checked in kept:
            connection = sqlite3.connect(path)
            seen.equal += connection.execute("SELECT params, batch, digest, ids FROM lists")
            connection.close()
            seen.files.append(path.read_bytes())
            assert not any(seeds[32:] in seen.files[-1] for seeds in checked)
    return seen


def text_of(call: Callable[[], object]) -> tuple[object, ...]:
    """Return class, text and attributes of the error that a call raises."""
    with pytest.raises(SecAggError) as caught:
        call()
    error = caught.value
    return type(error), str(error), repr(error), error.args, sorted(vars(error).items())


def telling(round: testing.OneShotRound) -> Iterable[bytes]:
    """Yield the bytes of every vector, raw and encoded, that cannot be there by chance."""
    params = round.params
    for u, vector in round.vectors.items():
        lanes = params.ring.zeros(params.elements)
        encoded = plain_encoding(params, vector, round.plain.weight(u))
        lanes[:] = [x % params.ring.modulus for x in encoded]
        for form in (vector.tobytes(), bytes(messages.pack(lanes, params.ring))):
            # small integers could be the ids of a list
            ids = len(form) % 8 == 0 and all(np.frombuffer(form, "<u8") < params.n_clients)
            if len(form) >= 8 and len(set(form)) > 3 and not ids:
                yield form


@pytest.mark.filterwarnings("ignore::secagg.ClippingWarning")
def test_two_rounds_differ_in_their_masked_vectors_only(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the same entropy, inputs change y alone, by their difference modulo R."""
    with caplog.at_level(logging.DEBUG):
        compare_two_rounds()
    assert not [r for r in caplog.records if r.name.startswith("secagg")]
    assert capfd.readouterr() == ("", "")


@settings(examples(60), phases=[Phase.reuse, Phase.generate])  # shrinking takes minutes
@given(st.data())
def compare_two_rounds(data: st.DataObject) -> None:
    first = data.draw(
        testing.one_shot_rounds().filter(lambda r: len(r.vectors) >= r.params.min_clients)
    )
    params = first.params
    second = dataclasses.replace(
        first,
        vectors={u: data.draw(testing.vectors(params)) for u in first.vectors},
        weights=first.weights
        and {u: data.draw(testing.weights(params)) for u in first.weights},
    )
    one, two = watch(first), watch(second)
    assert one.sizes == two.sizes
    assert one.equal == two.equal
    boxes = params.layout.boxes
    for u in first.vectors:
        sent = one.reports[u], two.reports[u]
        assert sent[0][: boxes[0]] == sent[1][: boxes[0]]
        assert (
            sent[0][boxes[-1] : params.layout.values]
            == sent[1][boxes[-1] : params.layout.values]
        )
        masked = [messages.report_values(u, data, params).tolist() for data in sent]
        inputs = [
            plain_encoding(params, r.vectors[u], r.plain.weight(u)) for r in (first, second)
        ]
        modulus = params.ring.modulus
        assert [(a - b) % modulus for a, b in zip(*masked, strict=True)] == [
            (a - b) % modulus for a, b in zip(*inputs, strict=True)
        ]
    for round, seen in ((first, one), (second, two)):
        for form in telling(round):
            assert not any(form in m for m in (*seen.reports.values(), *seen.files))
