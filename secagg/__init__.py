"""Secure aggregation: a server learns the sum of many private vectors and nothing else.

There are three ways. In all of them a vector is first encoded as integers (`encoding`). With
secret sharing, a `Client` masks its vector and a `Server` adds the masked vectors.
`simulate_round` runs both in one process, and `journal` lets a killed server resume. A `vault`
lets a client continue in another process. In `oneshot` sums a client sends one message, and
helpers open the sum of the masks; `simulate_one_shot` runs all of them. With homomorphic
encryption, `paillier` encrypts vectors that an aggregator adds, and `threshold` shares the key
among trustees. `testing` has property tests for applications, `bench` compares the ways.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, cast

from secagg._lazily import lazily
from secagg.errors import (
    BudgetSpent,
    ClippingWarning,
    DatabaseError,
    Dispute,
    JournalError,
    LinkError,
    LocalProtocolError,
    MissingExtra,
    ParameterError,
    PrecisionWarning,
    RemoteProtocolError,
    SecAggError,
    TooFewSurvivors,
    VaultError,
    Verdict,
)

if TYPE_CHECKING:
    from importlib.abc import Loader

    from secagg import graph, oneshot, paillier, shamir, threshold
    from secagg._threads import set_threads
    from secagg.client import Client, SealingKey
    from secagg.encoding import Bounded, FixedPoint, Integers, Schema, flatten
    from secagg.journal import Journal
    from secagg.paillier import Packing
    from secagg.protocol import (
        Bounds,
        ClientPolicy,
        CohortLedger,
        Identity,
        Noise,
        Phase,
        Registry,
        RoundParams,
        client_id,
    )
    from secagg.server import RoundResult, Server
    from secagg.shamir import Field
    from secagg.simulate import (
        SimulatedOneShot,
        SimulatedRound,
        SimulatedSession,
        simulate_one_shot,
        simulate_round,
    )
    from secagg.vault import Vault

__all__ = [
    "Bounded",
    "Bounds",
    "BudgetSpent",
    "Client",
    "ClientPolicy",
    "ClippingWarning",
    "CohortLedger",
    "DatabaseError",
    "Dispute",
    "Field",
    "FixedPoint",
    "Identity",
    "Integers",
    "Journal",
    "JournalError",
    "LinkError",
    "LocalProtocolError",
    "MissingExtra",
    "Noise",
    "Packing",
    "ParameterError",
    "Phase",
    "PrecisionWarning",
    "Registry",
    "RemoteProtocolError",
    "RoundParams",
    "RoundResult",
    "Schema",
    "SealingKey",
    "SecAggError",
    "Server",
    "SimulatedOneShot",
    "SimulatedRound",
    "SimulatedSession",
    "TooFewSurvivors",
    "Vault",
    "VaultError",
    "Verdict",
    "client_id",
    "flatten",
    "graph",
    "oneshot",
    "paillier",
    "set_threads",
    "shamir",
    "simulate_one_shot",
    "simulate_round",
    "threshold",
]
__version__ = "1.0.0"

if not TYPE_CHECKING:  # type checkers then report unknown names
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "_threads": ("set_threads",),
            "client": ("Client", "SealingKey"),
            "encoding": ("Bounded", "FixedPoint", "Integers", "Schema", "flatten"),
            "journal": ("Journal",),
            "paillier": ("Packing",),
            "protocol": (
                "Bounds",
                "ClientPolicy",
                "CohortLedger",
                "Identity",
                "Noise",
                "Phase",
                "Registry",
                "RoundParams",
                "client_id",
            ),
            "server": ("RoundResult", "Server"),
            "shamir": ("Field",),
            "simulate": (
                "SimulatedOneShot",
                "SimulatedRound",
                "SimulatedSession",
                "simulate_one_shot",
                "simulate_round",
            ),
            "vault": ("Vault",),
        },
    )


class Moved:
    """Import hook that lets the old names of modules renamed since 0.4 still be imported.

    Parameters
    ----------
    modules : mapping of str to str
        New full name of each module, by the old name; submodules are found with their module.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for an old name, or None for any other name."""
        # with dots: an old name is no prefix of a longer name, as of "secagg.fields"
        old = next((m for m in self._modules if f"{name}.".startswith(f"{m}.")), None)
        if old is None:
            return None
        loader = cast("Loader", self)  # by its methods: importlib.abc takes long to import
        return ModuleSpec(name, loader, origin=self._modules[old] + name.removeprefix(old))

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: the import system makes an empty module."""

    def get_code(self, name: str) -> CodeType | None:
        """Return the code of the renamed module, for ``python -m``."""
        from importlib.abc import InspectLoader

        moved = self.find_spec(name)
        new = find_spec(moved.origin) if moved and moved.origin else None
        loader = new.loader if new else None
        return loader.get_code(new.name) if new and isinstance(loader, InspectLoader) else None

    def exec_module(self, module: ModuleType) -> None:
        """Replace the old name in `sys.modules` by the renamed module."""
        spec = module.__spec__
        if spec is not None and spec.origin is not None:
            sys.modules[module.__name__] = import_module(spec.origin)


_MOVED = {
    "secagg.costs": "secagg.protocol.traffic",
    "secagg.field": "secagg.shamir.field",
    "secagg.keys": "secagg.protocol.keys",
    "secagg.messages": "secagg.protocol.messages",
    "secagg.modular": "secagg.paillier.modular",
    "secagg.primes": "secagg.paillier.primes",
    "secagg.proofs": "secagg.threshold.proofs",
    "secagg.public_key": "secagg.paillier.public_key",
    "secagg.rounds": "secagg.protocol.phases",
    "secagg.tails": "secagg.graph.tails",
    "secagg.threshold_key": "secagg.threshold.key",
}
sys.meta_path.insert(0, Moved(_MOVED))  # first, or the new folders would be searched
