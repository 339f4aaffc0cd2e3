"""Secure aggregation: a server learns the sum of many private vectors and nothing else."""

from __future__ import annotations

from secagg import graph, paillier, shamir, threshold
from secagg.client import Client
from secagg.encoding import FixedPoint, Integers
from secagg.errors import (
    JournalError,
    LocalProtocolError,
    MissingExtra,
    ParameterError,
    RemoteProtocolError,
    SecAggError,
    TooFewSurvivors,
)
from secagg.journal import Journal
from secagg.paillier import Packing, set_threads
from secagg.protocol import ClientPolicy, Identity, Phase, Registry, RoundParams
from secagg.server import RoundResult, Server
from secagg.shamir import Field
from secagg.simulate import SimulatedRound, simulate_round

__all__ = [
    "Client",
    "ClientPolicy",
    "Field",
    "FixedPoint",
    "Identity",
    "Integers",
    "Journal",
    "JournalError",
    "LocalProtocolError",
    "MissingExtra",
    "Packing",
    "ParameterError",
    "Phase",
    "Registry",
    "RemoteProtocolError",
    "RoundParams",
    "RoundResult",
    "SecAggError",
    "Server",
    "SimulatedRound",
    "TooFewSurvivors",
    "graph",
    "paillier",
    "set_threads",
    "shamir",
    "simulate_round",
    "threshold",
]
__version__ = "0.4.0"
