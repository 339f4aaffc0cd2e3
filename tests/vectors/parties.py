"""The clients of the rounds: their inputs, their entropy, and what is recorded of them."""

from collections.abc import Callable
from dataclasses import dataclass

from draws import draw, given

from independent_client import Client
from independent_dealer import Dealt
from independent_machine import Sealing
from independent_params import Parameters
from independent_policy import Policy
from independent_primitives import Source

PHASES = ["advertise_keys", "share_keys", "masked_input", "consistency_check", "unmasking"]


@dataclass
class Party:
    """A client's input, its entropy, draw by draw (Annex B), its dropout, and how it lies.

    A party that is not `hedged` draws seeds and coefficients as they are. `sealing` is that of
    an earlier round of the session (§5.1). `kind` makes the client; `lies_at` is the first
    phase in which it sends what an honest one would not.
    """

    u: int
    vector: list[float] | list[int]
    entropy: list[bytes]
    weight: int | None = None
    identity: bytes | None = None
    drop: str | None = None
    rounding: str = "nearest"
    hedged: bool = True
    sealing: Sealing | None = None
    kind: "Callable[[Party, Parameters, dict[int, bytes] | None], Remembering] | None" = None
    lies_at: str | None = None

    @property
    def kept(self) -> bytes | None:
        return self.sealing and self.sealing.seed

    def client(self, params: Parameters, registry: dict[int, bytes] | None) -> "Remembering":
        return (self.kind or Remembering)(self, params, registry)


class Remembering(Client):
    """The client of a party. It forgets nothing, and records the values that it draws."""

    def __init__(
        self, party: Party, params: Parameters, registry: dict[int, bytes] | None
    ) -> None:
        policy = Policy(corrupt=0.05, dropout=0.05)
        if params.allow_two_clients:
            policy = Policy(min_clients=2, allow_two_clients=True)
        super().__init__(
            party.u,
            params,
            identity_seed=party.identity,
            registry=registry,
            entropy=given(party.entropy),
            sealing=party.sealing,
            policy=policy,
            rounding=party.rounding,
        )
        self.hedged, self.values = party.hedged, [party.kept] if party.kept else []
        self.own_share = b""
        self.coins: dict[int, bytes] = {}
        self.rounding_key: bytes | None = None
        self.noise: list[int] = []

    def _forget(self, *names: str) -> None:
        pass

    def _deal(self, v: int, x: int, share: bytes) -> Dealt:
        if v == self.id:
            self.own_share = share
        return super()._deal(v, x, share)

    def _coins(self, v: int) -> bytes:
        session = self.p.session.decode("latin-1")
        self.coins[v] = draw(f"coins {session} {self.id} {v}", 32)
        return self.coins[v]

    def _rounding_key(self) -> bytes | None:
        self.rounding_key = super()._rounding_key()
        self.values += [self.rounding_key] if self.rounding_key else []
        return self.rounding_key

    def _noise(self) -> list[int]:
        self.noise = super()._noise()
        return self.noise

    def _hedged(self, *about: bytes) -> Source:
        source = super()._hedged(*about) if self.hedged else self._entropy

        def recorded(size: int) -> bytes:
            self.values.append(source(size))
            return self.values[-1]

        return recorded
