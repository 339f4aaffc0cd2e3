"""Sessions of tests/vectors/oneshot.json: parameters and parties as the package has them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from oneshot_parties import LENIENT
from secagg import Identity, Registry
from secagg.oneshot import Accumulator, Helper, HelperJournal, Noise, OneShotParams
from vectors_reader import Fed, Vector, b, encoding_of, load

SESSIONS: dict[str, Vector] = {s["name"]: s for s in load("oneshot")["sessions"]}


def params_of(described: Vector) -> OneShotParams:
    helpers = tuple((b(box), b(identity)) for box, identity in described["helpers"])
    noise = described["noise"]
    changed = {
        "encoding": encoding_of(described["encoding"]),
        "modulus": int(described["modulus"]),
        "helpers": helpers,
        "session": b(described["session"]),
        "noise": None if noise is None else Noise(Fraction(noise, 256)),
    }
    return OneShotParams(**(described | changed))


class Session:
    """Parties of a session of the vectors; helpers have new journals."""

    def __init__(self, name: str, folder: Path | None = None) -> None:
        self.vector = SESSIONS[name]
        self.params = params_of(self.vector["parameters"])
        self.list = self.vector["list"]
        self.clients = self.vector["clients"]
        self.registry = None
        if self.params.active:
            keys = {int(c["id"]): Identity(b(c["identity_seed"])).public for c in self.clients}
            # of a case with more clients than the session's
            keys.setdefault(5, Identity(bytes(32)).public)
            self.registry = Registry(keys)
        self.journals = [
            HelperJournal.create(folder / f"helper {j}", self.params.suite, entropy=Fed(drawn))
            for j, drawn in enumerate(self.vector["secrets"] if folder else (), 1)
        ]
        more = {"registry": self.registry, "policy": LENIENT}
        self.helpers = [Helper(self.params, journal, **more) for journal in self.journals]

    def accumulator(self, clients: int | None = None) -> Accumulator:
        made = Accumulator(self.params, registry=self.registry, batch=int(self.list["batch"]))
        for client in self.clients[:clients]:
            assert made.add(b(client["report"]))
        return made

    def check_boxes(self) -> None:
        for helper, chunk in zip(self.helpers, self.list["boxes"], strict=True):
            assert helper.check(b(chunk)) == ()
