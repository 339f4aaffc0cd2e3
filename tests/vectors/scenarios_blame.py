"""The rounds of rounds.json in which a client lies: disputes, verdicts, and early ends."""

from inputs import ACTIVE, make
from liars import (
    FalseComplaint,
    NoiseDealer,
    OffPolynomial,
    OtherCheck,
    OtherContribution,
    OtherHashes,
    OtherSecret,
    SeedOffPolynomial,
    TooLarge,
    WrongShare,
)
from whole_round import Round

from independent_params import Parameters
from independent_sums import FixedPoint

FIXED = FixedPoint(4.0, 6)


def of(n: int, t: int, suite: str = "x25519") -> Parameters:
    return Parameters(n, t, 2, FIXED, 2**16, suite=suite, **ACTIVE)


def at(phase: str, kind: type, *to: int) -> tuple[str, type]:
    return phase, kind.at(*to)


def blame() -> list[Round]:
    share, masked, last = "share_keys", "masked_input", "unmasking"
    five, seven, ten = [*range(1, 6)], [*range(1, 8)], [*range(1, 11)]
    return [
        # suite x25519: one complaint is a dispute, more than c convict
        make("blame-noise", of(5, 4), five, {}, liars={2: at(share, NoiseDealer, 4)}),
        make("blame-other-hashes", of(5, 4), five, {}, liars={2: at(share, OtherHashes, 4)}),
        make("blame-too-large", of(5, 4), five, {}, liars={5: at(share, TooLarge, 1)}),
        make("blame-false-complaint", of(5, 4), five, {},
             liars={3: at(masked, FalseComplaint, 1, 5)}),
        make("blame-noise-dropped", of(7, 5), seven, {3: masked},
             liars={3: at(share, NoiseDealer, 6)}),
        make("blame-complaints", of(10, 7), ten, {},
             liars={9: at(share, NoiseDealer, 1, 2, 5), 4: at(masked, FalseComplaint, 10)}),
        make("blame-complaints-end", of(5, 4), five, {},
             liars={2: at(share, NoiseDealer, 1, 5)}),
        make("blame-dealer", of(7, 5), seven, {1: masked},
             liars={2: at(share, NoiseDealer, 4, 7), 6: at(masked, FalseComplaint, 3)}),
        make("blame-off-polynomial", of(5, 4), five, {},
             liars={2: at(share, OffPolynomial, 4)}),
        make("blame-off-polynomial-end", of(4, 3), [1, 2, 3, 4], {4: masked},
             liars={4: at(share, SeedOffPolynomial, 2)}),
        make("blame-other-secret", of(4, 3), [1, 2, 3, 4], {},
             liars={3: at(share, OtherSecret)}),
        make("blame-wrong-share", of(5, 4), five, {}, liars={4: at(last, WrongShare, 2)}),
        make("blame-wrong-share-of-the-seed", of(7, 5), seven, {2: masked},
             liars={4: at(last, WrongShare, 2)}),
        make("blame-own-share", of(5, 4), five, {}, liars={4: at(last, WrongShare, 4)}),
        make("blame-wrong-share-end", of(3, 3), [1, 2, 3], {},
             liars={1: at(last, WrongShare, 3)}),
        # suite hybrid
        make("blame-hybrid", of(7, 5, "hybrid"), seven, {1: masked},
             liars={1: at(share, NoiseDealer, 2), 3: at(share, OtherHashes, 4),
                    5: at(share, NoiseDealer, 6), 6: at(share, NoiseDealer, 5),
                    7: at(share, OtherCheck, 2)}),
        make("blame-hybrid-complainer-drops", of(4, 3, "hybrid"), [1, 2, 3, 4], {3: masked},
             liars={1: at(share, NoiseDealer, 3)}),
        make("blame-contribution", of(4, 3, "hybrid"), [1, 2, 3, 4], {4: masked},
             liars={4: at(share, OtherContribution, 2)}),
        make("blame-contribution-semi-honest",
             Parameters(4, 3, 2, FIXED, 2**16, suite="hybrid"), [1, 2, 3, 4], {4: masked},
             liars={4: at(share, OtherContribution, 2)}),
    ]  # fmt: skip
