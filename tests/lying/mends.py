"""Mends of the library that can be taken out again, and the attack that must then succeed.

A mend is taken out by a context manager that patches the one function or line of it, wherever
a door uses it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

from lying.checker import Finding
from lying.search import Search, alone, compare, downgrade, honest, lie, lies, repeat, spend
from lying.worlds import PAIRS
from secagg import ClientPolicy, Identity
from secagg.client.inputs import Outcome, Sent
from secagg.errors import ParameterError
from secagg.oneshot import Helper
from secagg.oneshot.client import write_report

Attack = Callable[[Search], None]
Patched = AbstractContextManager[object]


@dataclass(frozen=True)
class Mend:
    """A mend, and what is found without it.

    Attributes
    ----------
    taken_out : callable
        Function that returns a context manager, in which the library lacks the mend.
    door : str
        Key of `DOORS`.
    attack : callable
        Schedules of the lying server.
    found : callable
        Return whether a finding is what the mend prevents.
    """

    taken_out: Callable[[], Patched]
    door: str
    attack: Attack
    found: Callable[[Finding], bool]


def lie_about(*roots: str) -> Attack:
    """Return the attack that lies to the victim about each place in parts of the messages."""

    def attack(search: Search) -> None:
        known = lies(search, honest(search))
        some = [one for one in known if ".".join(one.place).startswith(roots)]
        lie(search, alone(some, times=1), ["the victim"])

    return attack


def lie_to_all(search: Search) -> None:
    """Tell everybody one lie about each place of the parameters."""
    begin = [one for one in lies(search, honest(search)) if one.step == "begin"]
    lie(search, alone(begin, times=1), ["everybody"])


def then(attack: Attack) -> Attack:
    """Return an attack after an honest sum."""

    def attack_later(search: Search) -> None:
        honest(search)
        attack(search)

    return attack_later


def vary(*names: str) -> Attack:
    """Return the attack that compares these pairs of worlds."""
    return then(partial(compare, pairs=[pair for pair in PAIRS if pair.name in names]))


def is_of(kind: str, *places: str) -> Callable[[Finding], bool]:
    """Return a function that accepts findings of a kind, at places that begin so."""
    return lambda one: one.kind == kind and one.place.startswith(places or ("",))


FAILURES = ("raises", "nan", "infinite", "shape", "no weight", "float weight")
BOUNDS = ("weights", "weights 3+7, 5+5", "weight above the own", "elements 6+2, 4+4")
METRICS = ("metrics 3+1, 2+2", "no metric")
VARIED = frozenset((*FAILURES, *BOUNDS, *METRICS))
"""Pairs of worlds that a server tells apart if inputs are neither bounded nor replaced."""
ALIKE = {"fedmf": frozenset({"weights"})}
"""Pairs that nobody can tell apart at a door: clipped numbers of users have the same sum."""

_FLOWER, _FLARE = find_spec("flwr") is not None, find_spec("nvflare") is not None
KEYS = ("identity", "registry")
_SENDERS = (
    "secagg.session.member",
    "secagg.http.reporting",
    *(("secagg.flower.mod", "secagg.flower.one_shot_mod") if _FLOWER else ()),
    *(("secagg.flare.filter",) if _FLARE else ()),
)
"""Modules that call `send_input`."""
_FIXERS = (
    "secagg.session.member:_Member._fix_bounds",
    *(("secagg.flower.state:NodeState.fix",) if _FLOWER else ()),
    *(f"secagg.flare.{name}:fix_site_bounds" for name in ("filter", "files") if _FLARE),
)
"""Functions that fix the bounds of inputs."""


def nothing(*_: object, **__: object) -> None:
    """Do nothing, in place of a check."""


def send_or_raise(
    send: Callable[[Any, int | None, bool], Any], outcome: Outcome, _: object
) -> tuple[Any, Sent]:
    """Return what `send` makes of an input; raise if there is no valid one."""
    if outcome.error is not None:
        raise outcome.error
    return send(outcome.vector, outcome.weight, False), Sent(False, None)


def scaled_or_raise(layout: Any, value: Any, name: str, bound: float) -> float:
    """Return the element of a metric; raise unless it is a finite number."""
    if not isinstance(value, int | float) or not math.isfinite(value / bound * layout._clip):
        raise ParameterError(f"the metric {name!r} is no finite number")
    return float(value / bound * layout._clip)


@contextmanager
def patched(**changes: object) -> Iterator[None]:
    """Replace attributes by their names, "module:attribute" or "module:class.attribute"."""
    with ExitStack() as stack:
        for place, new in changes.items():
            module, _, path = place.partition(":")
            *outer, name = path.split(".")
            holder: Any = import_module(module)
            for one in outer:
                holder = getattr(holder, one)
            stack.enter_context(patch.object(holder, name, new))
        yield


def out(new: object, *places: str) -> Callable[[], Patched]:
    """Return a function that replaces the attributes at places by another value."""
    return lambda: patched(**dict.fromkeys(places, new))


def inputs_unguarded() -> Patched:
    """Take out the fixed bounds, and the zeros in place of invalid inputs, at all doors."""
    senders = [f"{module}:send_input" for module in _SENDERS]
    changes = {**dict.fromkeys(_FIXERS, nothing), **dict.fromkeys(senders, send_or_raise)}
    if _FLOWER:
        changes["secagg.flower.vectors:Layout._scaled"] = scaled_or_raise
    return patched(**changes)


def page_unguarded() -> Patched:
    """Take out the zeros in place of invalid inputs in report.js."""
    from lying import browser

    guarded, unguarded = "    error = new ReportError(", "    throw new ReportError("
    assert browser.SOURCE.count(guarded) == 1
    return patched(**{"lying.browser:SOURCE": browser.SOURCE.replace(guarded, unguarded)})


bounds_vary = out(nothing, *_FIXERS)
"""Take out the fixed bounds at all doors."""


def helpers_serve_all() -> Patched:
    """Let a helper with a registry serve sums that are not active."""
    made = Helper.__init__

    def lenient(
        self: Helper, params: Any, *more: Any, registry: Any = None, **named: Any
    ) -> None:
        made(self, params, *more, registry=registry if params.active else None, **named)

    return patch.object(Helper, "__init__", lenient)


def keys_sign_nothing() -> Patched:
    """Let clients with identities take part in sums that are not active, without signing."""

    def without_keys(made: Callable[..., Any], at: int) -> Callable[..., Any]:
        # the keys of Flower's mod are a tuple, and so can the endorsements of a report be
        kinds = Identity if made is write_report else tuple | Identity

        def call(*given: Any, **named: Any) -> Any:
            if not given[at].active:
                named = {name: one for name, one in named.items() if name not in KEYS}
                given = tuple(None if isinstance(one, kinds) else one for one in given)
            return made(*given, **named)

        return call

    changes: dict[str, object] = {
        "secagg.session.training:check_signer": nothing,
        "secagg.http.reporting:check_signer": nothing,
    }
    calls = {
        "secagg.session.member:Client": 1,
        "secagg.session.member:write_report": 1,
        "secagg.http.reporting:write_report": 1,
    }
    if _FLOWER:
        changes["secagg.flower.config:_active"] = lambda policy, _: policy.require_active
        changes["secagg.flower.one_shot_mod:check_signer"] = nothing
        calls["secagg.flower.mod:new_client"] = 1
        calls["secagg.flower.one_shot_mod:write_report"] = 1
    if _FLARE:
        own = property(lambda policy: policy.require_active)
        changes["secagg.flare.policy:SitePolicy._active"] = own
        calls["secagg.flare.filter:write_report"] = 1
    for place, at in calls.items():
        module, _, name = place.partition(":")
        changes[place] = without_keys(getattr(import_module(module), name), at)
    return patched(**changes)


def any_suite() -> Patched:
    """Let clients that require suite hybrid take part in other sums."""
    checked = ClientPolicy.check

    def lenient(self: ClientPolicy, params: Any, registered: int = 0) -> None:
        checked(replace(self, require_hybrid=False), params, registered)

    return patch.object(ClientPolicy, "check", lenient)


def configuration_is_free() -> Patched:
    """Leave the run's configuration out of the digest of a node of Flower."""
    from lying.flower import CONFIG
    from secagg.flower import node

    digest = node.content_digest

    def ignoring(message: Any, plan: bytes, _: object) -> bytes:
        return digest(message, plan, CONFIG)

    return patch.object(node, "content_digest", ignoring)


def headers_pass() -> Patched:
    """Let the headers of a request reach the trainer behind FLARE's filter."""
    from secagg.flare import filter as module

    opened = module._opened

    def passing(request: Any, fl_ctx: Any) -> Any:
        headers = dict(request.get("__headers__", {}))
        task = opened(request, fl_ctx)
        task.setdefault("__headers__", {}).update(headers)
        return task

    return patch.object(module, "_opened", passing)


def reads(place: str, at: str = "") -> tuple[Attack, Callable[[Finding], bool]]:
    """Return the attack on a place that trainings read, and what it finds."""
    return lie_about(place), is_of("input", at or place)


_CONFIGURATION, _ARGUMENTS = reads("run_config"), reads("arguments")
_NO_CHECK = {
    door: out(nothing, f"secagg.flare.{module}:check_configuration")
    for door, module in (("flare-filter", "filter"), ("flare-executor", "link"))
}
MENDS: dict[str, Mend] = {
    "B1, Flower": Mend(configuration_is_free, "flower", *_CONFIGURATION),
    "B1, Flower, one-shot": Mend(configuration_is_free, "flower-one-shot", *_CONFIGURATION),
    "B1, Flower, metadata": Mend(
        out(
            lambda message, context, call: call(message, context),
            "secagg.flower.mod:call_agreed",
        ),
        "flower-one-shot",
        *reads("message.metadata"),
    ),
    "B1, FLARE, filter": Mend(_NO_CHECK["flare-filter"], "flare-filter", *_ARGUMENTS),
    "B1, FLARE, executor": Mend(_NO_CHECK["flare-executor"], "flare-executor", *_ARGUMENTS),
    "B1, collector": Mend(
        out(lambda *_: True, "secagg.http.reporting:is_bound"),
        "collector",
        *reads("message"),
    ),
    "B1, one-shot sums": Mend(
        out(lambda *_: True, "secagg.session.training:is_bound"),
        "take_part-one-shot-semi-honest",
        *reads("message"),
    ),
    **{
        f"B2, {name}": Mend(taken_out, door, vary(*pairs), is_of("oracle"))
        for name, taken_out, door, pairs in (
            ("Flower, weights", bounds_vary, "flower", ["weights 3+7, 5+5"]),
            ("Flower, metrics", bounds_vary, "flower", ["metrics 3+1, 2+2"]),
            ("Flower, failures", inputs_unguarded, "flower", ["raises", "no metric"]),
            ("Flower, one-shot", inputs_unguarded, "flower-one-shot", ["weights", "nan"]),
            ("FLARE, executor", inputs_unguarded, "flare-executor", ["weights", "raises"]),
            ("FLARE, filter", inputs_unguarded, "flare-filter", ["weights", "no weight"]),
            ("collector", inputs_unguarded, "collector", ["weights", "nan"]),
            ("browser", page_unguarded, "browser", ["nan", "no weight"]),
            ("take_part", inputs_unguarded, "take_part", ["weight above the own", "shape"]),
            (
                "take_part, one-shot",
                inputs_unguarded,
                "take_part-one-shot",
                ["weights", "infinite"],
            ),
            ("fedmf", bounds_vary, "fedmf", ["weights 3+7, 5+5"]),
        )
    },
    "B3, helpers": Mend(helpers_serve_all, "helpers", lie_to_all, is_of("few")),
    **{
        f"B3, {name}": Mend(keys_sign_nothing, door, then(downgrade), is_of("downgrade"))
        for name, door in (
            ("collector", "collector"),
            ("take_part", "take_part"),
            ("take_part, one-shot", "take_part-one-shot"),
            ("Flower", "flower"),
            ("Flower, one-shot", "flower-one-shot"),
            ("FLARE", "flare-filter"),
        )
    },
    **{
        f"suite, {name}": Mend(taken_out, door, then(downgrade), is_of("downgrade", "suite"))
        for name, taken_out, door in (
            ("take_part", any_suite, "take_part"),
            (
                "Flower",
                out(lambda policy, _: policy.require_hybrid, "secagg.flower.config:_hybrid"),
                "flower",
            ),
            ("FLARE", any_suite, "flare-executor"),
        )
    },
    "C1": Mend(
        headers_pass, "flare-filter", *reads("data.__headers__", "task.data.__headers__.lying")
    ),
    "C1, context": Mend(
        out(lambda fl_ctx, *_: fl_ctx, "secagg.flare.guard:agreed_context"),
        "flare-filter",
        *reads("peer"),
    ),
    "budget, collector": Mend(
        out(nothing, "secagg.http.reporting:spend"),
        "collector",
        then(partial(spend, count=0)),
        is_of("budget"),
    ),
    "C10": Mend(
        out(nothing, "secagg.flower.state:NodeState.check"),
        "flower",
        then(repeat),
        is_of("dropout"),
    ),
}
