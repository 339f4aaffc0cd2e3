"""Round 3 on the server: the signatures that count, their number and their order."""

from __future__ import annotations

import pytest

from harness import Cohort, finish, make_params
from secagg.protocol.messages import ConsistencyRequest, Roster, Shares, UnmaskRequest
from secagg.server import masking, sharing, stages, unmasking


@pytest.mark.parametrize("security", ["active", "semi-honest"])
def test_shared_answer_is_made_and_stored_once(security, monkeypatch):
    """On the complete graph, from round 3 on; n of them would be n² signatures."""
    made: list[object] = []
    question, encode = masking.Question, masking.encode
    monkeypatch.setattr(masking, "Question", lambda *a: made.append("question") or question(*a))
    for place in (sharing, masking, stages, unmasking):
        monkeypatch.setattr(place, "encode", lambda m: made.append(type(m)) or encode(m))
    cohort = Cohort(make_params(7, security=security))
    cohort.advance(2)
    cohort.advance(1, without=[1])
    while cohort.inbox:
        assert len(cohort.inbox) == 6
        assert len({id(data) for data in cohort.inbox.values()}) == 1
        assert len({id(data) for data in cohort.server.outbox.values()}) == 1
        cohort.deliver(cohort.step())
    signing = [ConsistencyRequest] if security == "active" else []
    assert made == [Roster, *[Shares] * 7, "question", *signing, UnmaskRequest]
    assert cohort.server.result().integers.tolist() == cohort.expected([0, *range(2, 7)])


def test_graph_client_is_asked_about_its_own_neighbours() -> None:
    cohort = Cohort(make_params(10, neighbours=4))
    cohort.advance(3)
    assert len(set(cohort.inbox.values())) == 10
    finish(cohort)
