"""Helpers of one-shot sums on Flower, nodes that trust them, and helpers that fail or lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from flwr.clientapp import ClientApp

from flower_nodes import (
    NODES,
    Meddler,
    Reply,
    configs,
    fedavg,
    make_app,
    registry,
    signed_configs,
    train,
    wrapped,
)
from secagg import ClientPolicy
from secagg.flower import OneShot, OneShotMod, SecAggMod
from secagg.flower.testing import LocalGrid, LocalHelper, LocalLink
from secagg.oneshot import HelperJournal, OneShotPolicy


class Party:
    """Helpers, and nodes that trust them. If the sums are active, nodes have identities."""

    def __init__(self, journals: Sequence[HelperJournal], *, active: bool = False) -> None:
        self.journals, self.active = journals, active
        self.registry = registry() if active else None

    @property
    def trusted(self) -> frozenset[bytes]:
        return frozenset(journal.public[1] for journal in self.journals)

    @property
    def helpers(self) -> list[LocalHelper]:
        return [LocalHelper(journal, registry=self.registry) for journal in self.journals]

    def app(self, train: Reply = train, **policy: Any) -> ClientApp:
        given = {"helpers": self.trusted, **policy}
        return make_app([OneShotMod(OneShotPolicy(**given))], train)

    def configs(self, nodes: Iterable[int] = NODES) -> dict[int, dict[str, Any]]:
        return signed_configs(nodes) if self.active else configs(nodes)

    def wrapped(self, strategy: Any = None, helpers: Any = None, **settings: Any) -> OneShot:
        """OneShot around a strategy, which does not wait for late nodes."""
        given = {"clip": 1.0, "max_weight": 100, "registry": self.registry, **settings}
        return OneShot(strategy or fedavg(), helpers=helpers or self.helpers, **given)


class Door:
    """One of the two mods, with the strategy of its sums."""

    def __init__(self, name: str, party: Party) -> None:
        self.name, self.party = name, party

    def mod(self, public: Iterable[str] = (), **policy: Any) -> SecAggMod | OneShotMod:
        if self.name == "four":
            return SecAggMod(ClientPolicy(**policy), public=public)
        given = {"helpers": self.party.trusted, **policy}
        return OneShotMod(OneShotPolicy(**given), public=public)

    def grid(
        self, train: Reply = train, nodes: Any = None, evaluate: Reply = train, **given: Any
    ) -> Meddler:
        """Grid of the mod and an application; `policy` and `public` are those of the mod."""
        mod = self.mod(given.pop("public", ()), **given.pop("policy", {}))
        grid = Meddler(make_app([mod], train, evaluate), nodes or configs(), **given)
        grid.meddle = lambda message, answer: answer(message)
        return grid

    def strategy(self, strategy: Any = None, **settings: Any) -> Any:
        make = wrapped if self.name == "four" else self.party.wrapped
        return make(strategy, **settings)


def grid_of(party: Party, meddle: Any = None, **policy: Any) -> LocalGrid:
    """Grid of the nodes of a party, whose messages pass through `meddle`, if it is given."""
    if meddle is None:
        return LocalGrid(party.app(**policy), party.configs())
    grid = Meddler(party.app(**policy), party.configs())
    grid.meddle = meddle
    return grid


class Faulty(LocalHelper):
    """Helper whose link passes the answers of a step to a function, or counts its calls."""

    def __init__(
        self,
        journal: HelperJournal,
        step: str = "",
        spoil: Callable[[Any], Any] = lambda answer: answer,
        **options: Any,
    ) -> None:
        super().__init__(journal, **options)
        self.step, self.spoil = step, spoil
        self.calls: list[str] = []

    @asynccontextmanager
    async def reach(self, params):
        async with super().reach(params) as link:
            self.calls.append("endorse")
            if self.step == "endorse":
                link.endorsement = self.spoil(link.endorsement)
            yield Spoilt(link, self)


class Spoilt:
    def __init__(self, link: LocalLink, helper: Faulty) -> None:
        self.link, self.helper = link, helper
        self.number, self.endorsement = link.number, link.endorsement

    def __getattr__(self, step: str) -> Callable[[bytes], Any]:
        return partial(self._call, step)

    async def _call(self, step: str, data: bytes) -> Any:
        self.helper.calls.append(step)
        answer = await getattr(self.link, step)(data)
        return self.helper.spoil(answer) if step == self.helper.step else answer


def dies(answer: object) -> object:
    raise ConnectionError


def lies(answer: bytes) -> bytes:
    return answer[:-1] + bytes([answer[-1] ^ 1])


def garbage(answer: object) -> bytes:
    return b"garbage"
