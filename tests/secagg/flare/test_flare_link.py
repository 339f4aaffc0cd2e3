"""Requests of a site, answers of the desk, and arguments of components; also malformed."""

from __future__ import annotations

import asyncio
import os
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from flare_network import Adding, Network, Site
from secagg import Bounds, FixedPoint, Identity
from secagg.errors import LinkError, LocalProtocolError, ParameterError, RemoteProtocolError
from secagg.flare import OneShotFedAvg, SecAggFedAvg, SitePolicy
from secagg.flare.link import FlareLink, SiteDesk
from secagg.flare.policy import policy_of
from secagg.oneshot import OneShotPolicy
from secagg.oneshot.suites import SECRET_BYTES, BoxKey
from secagg.protocol import ClientPolicy
from secagg.session import Deadlines, Session
from wrong_values import AMOUNTS, COUNTS, FLAGS

TOKEN = bytes(16)


def ok(**fields: object) -> Shareable:
    reply = make_reply(ReturnCode.OK)
    reply.update(fields)
    return reply


class Replies:
    """Server that gives these replies, and then says that the session has ended."""

    def __init__(self, *replies: object) -> None:
        self.replies, self.requests = list(replies), list[dict[str, object]]()

    def send(self, request: Shareable, timeout: float) -> object:
        assert request["token"] == TOKEN
        self.requests.append({key: request.get(key) for key in ("after", "answer")})
        return self.replies.pop(0) if self.replies else ok(ended=True)

    def link(self, stop: Signal | None = None) -> FlareLink:
        return FlareLink(self.send, TOKEN, stop or Signal())


@pytest.mark.parametrize(
    "lost",
    [None, "text", make_reply(ReturnCode.TIMEOUT), make_reply(ReturnCode.TOPIC_UNKNOWN), ok()],
    ids=["none", "text", "timeout", "topic", "nothing yet"],
)
def test_link_asks_again_until_it_has_a_task(lost: object) -> None:
    server = Replies(lost, lost, ok(task="no bytes"), ok(task=b"task"))
    assert asyncio.run(server.link().next_task(b"last")) == b"task"
    assert server.requests == [{"after": b"last", "answer": None}] * 4


def test_link_ends_with_the_session_and_with_the_job() -> None:
    assert asyncio.run(Replies().link().next_task(b"")) is None
    aborted = Signal()
    aborted.trigger(True)
    server = Replies(ok(task=b"task"))
    assert asyncio.run(server.link(aborted).next_task(b"")) is None
    asyncio.run(server.link(aborted).send(b"answer"))
    assert not server.requests


def test_link_sends_an_answer_until_it_is_acknowledged() -> None:
    server = Replies(None, make_reply(ReturnCode.TIMEOUT), ok())
    asyncio.run(server.link().send(b"answer"))
    assert server.requests == [{"after": None, "answer": b"answer"}] * 3


def test_link_raises_what_the_server_rejects() -> None:
    with pytest.raises(RemoteProtocolError) as rejected:
        asyncio.run(Replies(ok(check="late", detail="why")).link().send(b"answer"))
    assert rejected.value.check == "late"
    with pytest.raises(LinkError) as refused:
        asyncio.run(Replies(make_reply(ReturnCode.BAD_REQUEST_DATA)).link().next_task(b""))
    assert refused.value.check == "token"


def new_desk(attempts: int = 1) -> SiteDesk:
    sites, more = ["a", "b", "c"], {"deadlines": Deadlines.of(9.0), "attempts": attempts}
    return SiteDesk(sites, lambda: Session(sites, name="x", **more))


@pytest.fixture
def desk():
    made = new_desk()
    yield made
    made.close()


def handled(desk: SiteDesk, **fields: object) -> Shareable:
    """Return the answer to a request of site a."""
    return desk.handle(desk.topic, Shareable({"token": desk.tokens["a"]} | fields), None)


@pytest.mark.parametrize(
    "fields",
    [
        {"token": None, "after": b""},
        {"token": [1], "after": b""},
        {"token": TOKEN, "after": b""},
        {},
        {"after": 3},
        {"answer": ["list"], "after": "text"},
    ],
    ids=repr,
)
def test_desk_rejects_malformed_requests(desk, fields):
    assert handled(desk, **fields).get_return_code() == ReturnCode.BAD_REQUEST_DATA
    assert desk.handle(desk.topic, "text", None).get_return_code() != ReturnCode.OK


def test_desk_names_the_check_that_an_answer_fails(desk):
    reply = handled(desk, answer=b"garbage")
    assert reply.get_return_code() == ReturnCode.OK
    assert reply["check"] in ("version", "size")
    desk.close()
    assert handled(desk, answer=b"garbage")["ended"]


@pytest.mark.parametrize("fields", [{"after": b""}, {"answer": b"garbage"}], ids=" ".join)
def test_request_during_the_end_of_a_session_learns_of_it(desk, monkeypatch, fields):
    """FLARE calls the desk from other threads than the one that closes it."""
    for name in ("next_task", "accept"):
        call = getattr(desk.session, name)

        def late(*args: Any, call: Any = call) -> Any:
            desk.close()
            return call(*args)

        monkeypatch.setattr(desk.session, name, late)
    assert handled(desk, **fields)["ended"]


def test_failed_round_does_not_end_the_session(desk, monkeypatch):
    async def accept(site: str, answer: bytes) -> None:
        raise LocalProtocolError("the server has ended")

    monkeypatch.setattr(desk.session, "accept", accept)
    with pytest.raises(LocalProtocolError):
        handled(desk, answer=b"")


def test_session_that_cannot_begin_leaves_no_thread():
    before = threading.active_count()
    with pytest.raises(ParameterError):
        new_desk(attempts=0)
    assert threading.active_count() == before


def test_tokens_of_a_desk_are_its_own(desk):
    assert len({*desk.tokens.values()}) == 3
    other = new_desk()
    other.close()
    assert not {*desk.tokens.values()} & {*other.tokens.values()}
    assert other.topic != desk.topic


def test_aborted_job_ends_in_the_middle_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secagg.flare.link._CHECK_ABORT", 0.01)
    monkeypatch.setattr("secagg.flare.controller._LEAVE", 0.01)
    network = Network([Site(f"site-{i}", Adding(0.0), SitePolicy()) for i in (1, 2, 3)])
    ended = threading.Event()
    trainer = network.sites["site-1"].trainer
    trainer.before = lambda number: (network.abort.trigger(True), ended.wait(20))
    controller = SecAggFedAvg(num_clients=3, num_rounds=1, model={"w": np.zeros(2)}, clip=1.0)
    run = controller.control_flow

    def control_flow(*args: Any) -> None:
        run(*args)
        assert not ended.is_set()
        ended.set()

    monkeypatch.setattr(controller, "control_flow", control_flow)
    with pytest.raises(AssertionError, match="LocalProtocolError"):
        network.run(controller)
    assert ended.is_set()
    assert controller._desk.session.closed


WRONG = [{"min_clients": 1}, {"min_threshold": 0}, {"corrupt": 2.0}, {"helpers": ["no hex"]}]
WRONG += [{"helpers": ["00"]}, {"clip": -1.0}, {"max_weight": 5}]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_policy_of_a_site_is_validated(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        SitePolicy(**wrong)


def test_policy_of_a_site_has_its_demands() -> None:
    demands = {"min_clients": 7, "min_threshold": 5}
    demands |= {"require_active": True, "require_hybrid": True}
    policy = SitePolicy(**demands, corrupt=0.2, helpers=["01" * 32])
    assert policy.rounds == ClientPolicy(**demands, corrupt=0.2)
    assert policy.one_shot == OneShotPolicy(**demands, helpers=frozenset([b"\1" * 32]))
    assert SitePolicy().one_shot is None
    assert SitePolicy().rounds == ClientPolicy()  # its defaults, too
    bounds = Bounds(encoding=FixedPoint(clip=2.0, fractional_bits=8), max_weight=5)
    stated = SitePolicy(clip=2.0, fractional_bits=8, max_weight=5, helpers=["01" * 32])
    assert stated.rounds.bounds == stated.one_shot.bounds == bounds
    keyed = SitePolicy(identity="site.pem", helpers=["01" * 32])
    assert (keyed.rounds.require_active, keyed.one_shot.require_active) == (True, True)
    listed = SitePolicy(sites=["site-1"], helpers=["01" * 32])
    # helpers of one-shot sums have the registry of the sites
    assert (listed.rounds.require_active, listed.one_shot.require_active) == (True, False)


def test_malformed_tasks_are_rejected(tmp_path):
    site = Site("site-1", Adding(0.0), SitePolicy(), kit=tmp_path)
    network = Network([site])
    for data, code in [
        ({"step": "sign", "keys": {"site-1": bytes(32)}}, ReturnCode.BAD_TASK_DATA),
        ({"step": "take_part", "topic": "t"}, ReturnCode.BAD_TASK_DATA),
        ({"step": "take_part", "token": TOKEN}, ReturnCode.BAD_TASK_DATA),
        ({"step": "take_part", "signatures": {}}, ReturnCode.EXECUTION_EXCEPTION),
        ({"step": "another"}, ReturnCode.TASK_UNSUPPORTED),
        ({}, ReturnCode.TASK_UNSUPPORTED),
    ]:
        assert network.perform(site, "secagg", Shareable(data)).get_return_code() == code


@pytest.mark.parametrize("fails", [False, True], ids=["no policy", "error"])
def test_wrong_policy_ends_the_task_without_a_text(fails, monkeypatch, caplog):
    def fail(context: object) -> None:
        raise ValueError("patient 4711")

    site = Site("site-1", Adding(0.0), Adding(0.0))
    engine = SimpleNamespace(get_component={"secagg_policy": site.policy}.get)
    with pytest.raises(ParameterError):
        policy_of(SimpleNamespace(get_engine=lambda: engine))
    if fails:
        monkeypatch.setattr("secagg.flare.executor.policy_of", fail)
    reply = Network([site]).perform(site, "secagg", Shareable({"step": "identify"}))
    assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
    assert ("ValueError" if fails else "ParameterError") in caplog.text
    assert "4711" not in caplog.text


SITE = {"require_active": FLAGS, "require_hybrid": FLAGS}
SITE |= {"min_clients": COUNTS, "min_threshold": COUNTS}
SITE |= {"fractional_bits": COUNTS, "corrupt": AMOUNTS}
JOB = {"fractional_bits": COUNTS, "max_weight": COUNTS, "threshold": COUNTS}
JOB |= {"clip": AMOUNTS, "train_timeout": AMOUNTS}


def entry() -> dict[str, str]:
    """Return a helper as a job's configuration lists it."""
    box = BoxKey("x25519", os.urandom(SECRET_BYTES["x25519"])).public.hex()
    key = Identity.generate().public.hex()
    return {"url": "https://host:8444", "suite": "x25519", "hpke": box, "ed25519": key}


GOOD = {"clip": 8.0, "num_clients": 5}
HELPERS = {"helpers": [entry() for _ in range(3)], "identity": "a"}
DOORS: dict[str, tuple[Any, dict[str, list[Any]]]] = {
    "site": (SitePolicy, SITE),
    "site with bounds": (partial(SitePolicy, clip=8.0), {"max_weight": COUNTS}),
    "rounds": (partial(SecAggFedAvg, **GOOD), JOB | {"exchange_timeout": AMOUNTS}),
    "one-shot sums": (
        partial(OneShotFedAvg, **GOOD, **HELPERS),
        JOB | {"helper_timeout": AMOUNTS, "min_clients": COUNTS},
    ),
}


@pytest.mark.parametrize(
    ("door", "name"), [(door, name) for door, (_, names) in DOORS.items() for name in names]
)
def test_arguments_are_strict(door, name):
    make, wrong = DOORS[door]
    for value in wrong[name]:
        with pytest.raises(ParameterError):
            make(**{name: value})
