"""Remedies name options of the command that prints them, or the command that has them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from typer.main import get_command

from http_party import PARAMS, REGISTRY
from oneshot_parties import Parties
from secagg import ClientPolicy, Noise, SecAggError
from secagg.cli import app, console, words
from secagg.client.spending import check_noise
from secagg.errors import ParameterError
from secagg.http import faults
from secagg.http.address import check_url
from secagg.oneshot import OneShotPolicy
from secagg.privacy import plan
from secagg.protocol.identities import check_identity, check_registry
from secagg.session.batch import Batch
from secagg.session.clock import Clock
from secagg.session.events import Hooks, Place
from secagg.session.presence import Presence
from secagg.testing import make_identity

OPTION = re.compile(r"(?:\bsecagg ((?:helper |identity |stats |collect )?[a-z]+) )?(--[a-z-]+)")
PYTHON = re.compile(r"\w=[\w'…]|\w\(|[a-z]_[a-z]|\bpatience\b(?<!-patience)")


def commands() -> dict[str, Any]:
    """Return each command by its words."""
    found, left = {}, [("", get_command(app))]
    while left:
        name, one = left.pop()
        below: Mapping[str, Any] = getattr(one, "commands", {})
        left += [(f"{name} {word}".strip(), each) for word, each in below.items()]
        if not below:
            found[name] = one
    return found


COMMANDS = commands()


def unknown(text: str, command: str) -> list[str]:
    """Return the options in a text that neither `command` nor the named command has."""
    return [
        option
        for other, option in OPTION.findall(text)
        if not any(option in one.opts for one in COMMANDS[other or command].params)
    ]


def shown(text: str, command: str) -> str:
    """Return a text as a command shows it."""
    token = console._running.set(COMMANDS[command].params)
    try:
        return console.with_options(text)
    finally:
        console._running.reset(token)


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Parties:
    return Parties(tmp_path_factory.mktemp("helpers"), helpers=3)


ACTIVE = replace(PARAMS, security="active", threshold=3)
NOISED = replace(PARAMS, n_clients=20, threshold=15, noise=Noise(64), min_survivors=18)
SPARSE = replace(PARAMS, n_clients=200, threshold=10, neighbours=20)


Call = Callable[[Parties], object]


def fault(check: str) -> Call:
    def call(_: Parties) -> None:
        request = httpx.Request("GET", "http://127.0.0.1:1/v1/session")
        document = {"check": check, "detail": "a reason"}
        found = faults.of_response(httpx.Response(503, json=document, request=request))
        raise ParameterError(f"{found.cause}; {found.remedy}")

    return call


def too_few(parties: Parties) -> None:
    batch = SimpleNamespace(params=parties.params, accumulator=())
    raise Batch._too_few(batch, "2 clients reported")


def gathered(_: Parties) -> None:
    presence = Presence(Hooks(()), Clock())
    asyncio.run(presence.choose(Place("session", 0, 0), {1, 2, 3}, 3, 3, 0.0))


def at_helper(policy: OneShotPolicy, **fields: Any) -> Call:
    return lambda parties: policy.check_at_helper(replace(parties.params, **fields), None)


DOORS: dict[str, tuple[str, Call]] = {
    "no registry, active": ("join", lambda _: check_registry(ACTIVE, None)),
    "no noise, budget": ("join", lambda _: check_noise(PARAMS)),
    "no noise, report": ("report", lambda p: check_noise(p.params)),
    "noise, no colluders": ("join", lambda _: ClientPolicy().check(NOISED)),
    "noise, no colluders, study": ("stats join", lambda _: ClientPolicy().check(NOISED)),
    "another key": ("join", lambda _: check_identity(1, ACTIVE, make_identity(2), REGISTRY)),
    "plain URL": ("join", lambda _: check_url("http://192.0.2.1", allow_plain_http=False)),
    "long": ("join", lambda _: ClientPolicy(max_length=2).check(PARAMS)),
    "suite": ("join", lambda _: ClientPolicy(require_hybrid=True).check(PARAMS)),
    "suite, site": ("stats join", lambda _: ClientPolicy(require_hybrid=True).check(PARAMS)),
    "one-shot suite": ("join", lambda p: OneShotPolicy(require_hybrid=True).check(p.params)),
    "colluders": ("join", lambda _: ClientPolicy(colluders=3).check(PARAMS)),
    "graph": ("join", lambda _: ClientPolicy().check(SPARSE)),
    "one-shot threshold": ("join", lambda p: OneShotPolicy(min_threshold=3).check(p.params)),
    "busy": ("join", fault("busy")),
    "later reason": ("join", fault("new")),
    "busy helper": ("serve", fault("busy")),
    "too few reports": ("serve", too_few),
    "nobody": ("serve", gathered),
    "many at a helper": ("serve", at_helper(OneShotPolicy(max_clients=2))),
    "long, helper": ("helper serve", at_helper(OneShotPolicy(max_length=2))),
    "colluders, helper": ("helper open", at_helper(OneShotPolicy(corrupt=0.7))),
}


@pytest.mark.parametrize(("command", "call"), DOORS.values(), ids=list(DOORS))
def test_errors_of_the_library_end_with_what_the_command_has(command, call, parties):
    with pytest.raises(SecAggError) as caught:
        call(parties)
    text = shown(str(caught.value), command)
    remedy = text.rpartition(";")[2]
    assert not unknown(text, command), text
    assert not PYTHON.search(remedy.replace("secagg.http.Limits", "")), text
    assert len(remedy) > 8, text


@pytest.mark.parametrize(
    ("command", "given", "told"),
    [
        ("params", {"colluders": 9}, "take a smaller --corrupt or --dropout"),
        ("serve", {"colluders": 9}, "take fewer --colluders, or a larger --min-survivors"),
        ("params", {"colluders": 9}, "the number of clients of --corrupt is 9"),
        ("params", {"min_survivors": 1}, "the number of clients that --dropout leaves is 1"),
        ("serve", {"min_survivors": 1}, "--min-survivors is 1"),
        ("params", {"neighbours": 10}, "take a smaller --corrupt"),
        ("serve", {"neighbours": 10}, "take a larger --threshold, or fewer --colluders"),
        ("simulate", {"neighbours": 10}, "take more --neighbours, or a larger --threshold"),
    ],
)
def test_plan_that_fails_names_what_the_command_has(command, given, told):
    graph = {name: given[name] for name in given if name == "neighbours"}
    settings = {} if graph else given
    with pytest.raises(ParameterError) as caught:
        plan(200 if graph else 10, 5, norm=1, epsilon=2, delta=1e-6, **settings).params(**graph)
    assert told in shown(str(caught.value), command)


@pytest.mark.parametrize("command", ["join", "stats join"])
@pytest.mark.parametrize("given", [{}, {"colluders": 9}])
def test_client_that_declines_noise_can_expect_fewer_colluders(command, given):
    with pytest.raises(ParameterError) as caught:
        ClientPolicy(**given).check(NOISED)
    text = shown(str(caught.value), command)
    assert text.endswith("or take fewer --colluders")
    assert ("secagg serve --colluders" in text) == (command == "join")


def test_client_that_wants_an_active_sum_is_told_both_servers() -> None:
    text = "a mistake; take security='active' at the server"
    assert "collect" not in shown(text, "stats join")
    text = shown(text, "report")
    assert "secagg serve --security active" in text
    assert "secagg collect begin --security active" in text
    assert "collect" not in shown(
        "a mistake; take security='active' at the server", "stats join"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_translation_has_options_of_its_command(command):
    for python in words._WORDS:
        text = shown(f"a mistake; {python}", command)
        assert not unknown(text, command)
        assert command != "stats join" or "secagg serve --s" not in text
        assert command != "join" or "stats serve --s" not in text
