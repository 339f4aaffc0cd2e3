"""The rounds of rounds.json of suite hybrid in which nobody lies."""

from draws import draw
from inputs import ACTIVE, WIDE, make, party
from whole_round import Round

from independent_noise import Noise
from independent_params import Parameters
from independent_sums import Bounded, FixedPoint, Integers

HYBRID = {"suite": "hybrid"}


def hybrid() -> list[Round]:
    """Clients drop out in each phase, in both variants and on both graphs."""
    fixed, both = FixedPoint(4.0, 6), HYBRID | ACTIVE
    small = Parameters(4, 3, 2, fixed, 2**16, **both)
    first = make("hybrid-session-first", Parameters(3, 3, 2, fixed, 2**16, **HYBRID),
                 [1, 2, 3], {})  # fmt: skip
    return [
        make("hybrid-nobody-drops", Parameters(3, 2, 4, fixed, 2**20, **HYBRID), [7, 8, 9], {}),
        make("hybrid", Parameters(5, 3, 3, fixed, 2**32, **HYBRID), [0, 1, 300, *WIDE[-2:]],
             {1: "share_keys", WIDE[-2]: "masked_input"}),
        make("hybrid-late", Parameters(5, 3, 3, fixed, 65521, max_weight=9, **HYBRID),
             [1, 2, 3, 4, 5], {5: "advertise_keys", 1: "unmasking"}),
        make("hybrid-two-clients",
             Parameters(2, 2, 3, Integers(1), 3, allow_two_clients=True, **HYBRID), [5, 2**40],
             {}),
        make("hybrid-graph", Parameters(6, 3, 2, fixed, 2**16, neighbours=4, **HYBRID),
             WIDE[1:7], {255: "masked_input"}, draw("hybrid graph", 32)),
        first,
        make("hybrid-session-later", Parameters(3, 3, 2, fixed, 2**16, **HYBRID), [1, 2, 3],
             {}, first=first),
        make("hybrid-noise-bounded",
             Parameters(4, 3, 5, Bounded(1.5, 40), 4099, count_clipped=True,
                        noise=Noise(2**14, 1), **HYBRID),
             [1, 2, 3, 4], {2: "masked_input"}),
        not_hedged(),
        *(make(f"hybrid-active-{phase.replace('_', '-')}", small, [1, 2, 3, 2**64 - 1],
               {2: phase})
          for phase in ("advertise_keys", "share_keys", "masked_input", "consistency_check",
                        "unmasking")),
        make("hybrid-active-three", Parameters(3, 3, 2, fixed, 2**16, **both), [1, 2, 3], {}),
    ]  # fmt: skip


def not_hedged() -> Round:
    """The KEM seed and all other values are drawn as they are."""
    params = Parameters(3, 2, 2, Integers(5), 16, session=b"hybrid drawn", suite="hybrid")
    parties = [party("hybrid-drawn", params, u, hedged=False) for u in (1, 2, 3)]
    return Round("hybrid-drawn", params, parties)
