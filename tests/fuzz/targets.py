"""Fuzz targets. Each takes any bytes and raises only on a defect.

``parameters`` reads the bytes as those of RoundParams. ``decoders`` reads them as one message
and passes what comes out through the checks a client makes of it. ``transcripts`` reads them as
a script of a network that alters, repeats, exchanges and loses the messages of a whole round.
``paillier``, ``threshold``, ``oneshot``, ``states`` and ``verdicts`` are in files of their own,
such as paillier_targets.py.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from fuzz.oneshot_targets import oneshot_seeds, oneshot_targets
from fuzz.paillier_targets import paillier, paillier_seeds
from fuzz.state_targets import state_seeds, states
from fuzz.threshold_targets import threshold_parts, threshold_seeds
from fuzz.verdict_targets import verdict_seeds, verdicts
from harness import Cohort, make_params, read
from secagg import (
    ClientPolicy,
    Integers,
    Phase,
    RemoteProtocolError,
    RoundParams,
    TooFewSurvivors,
    _fast,
)
from secagg.client.checks import (
    check_agreement,
    check_columns,
    check_roster,
    check_senders,
    check_survivors,
    check_unmask_request,
)
from secagg.protocol.keys import PublicKeys
from secagg.protocol.messages import (
    AdvertiseKeys,
    ConsistencyRequest,
    MaskedInput,
    Message,
    Roster,
    ShareKeys,
    Shares,
    UnmaskRequest,
    decode,
    encode,
    max_bytes,
)
from secagg.protocol.params_bytes import MAX_PARAMS_BYTES, compare

KINDS = tuple(Message.__subclasses__())
WORLDS = (
    make_params(4),
    make_params(5, security="active"),
    make_params(7, neighbours=4, max_weight=3, modulus=(1 << 31) - 1),
    make_params(4, modulus_bits=64, length=3, count_clipped=True),
    make_params(4, suite="hybrid"),
    make_params(5, suite="hybrid", security="active"),
)
POLICY = ClientPolicy()
ME = 2


class World:
    """State of client 2 in a round under some parameters, and that round's messages."""

    def __init__(self, params: RoundParams) -> None:
        self.params = params
        cohort = Cohort(params)
        self.messages: list[bytes] = []
        while cohort.server.phase is not Phase.FINISHED:
            answers = cohort.deliver(cohort.step())
            self.messages += [cohort.sent[-1][ME], *([answers[ME]] if answers else [])]
        self.registry = cohort.registry
        own = read(cohort.sent[0][ME], AdvertiseKeys)
        self.me = (ME, PublicKeys(own.seal_key, own.mask_key, own.kem_key))
        self.holders = set(cohort.server.result().survivors)
        self.session = read(cohort.sent[1][ME], ShareKeys).session
        request = read(self.messages[-2], UnmaskRequest)
        self.agreed = request.survivors if params.active else None

    def examine(self, message: msgspec.Struct) -> None:
        """Make the checks that a client makes of such a message."""
        params = self.params
        if isinstance(message, Roster):
            check_roster(message, params, POLICY, self.me, self.registry)
        elif isinstance(message, Shares):
            senders = check_senders(message.senders, self.holders, params, POLICY, ME)
            check_columns(message, len(senders), len(self.holders), params)
        elif isinstance(message, ConsistencyRequest):
            check_survivors(message.survivors, self.holders, params, POLICY, ME)
        elif isinstance(message, UnmaskRequest):
            pair = (message.survivors, message.dropped)
            check_unmask_request(pair, self.holders, params, POLICY, ME)
            check_agreement(message, self.agreed, self.session, params, POLICY, self.registry)
        elif isinstance(message, MaskedInput):
            values = params.ring.zeros(params.elements)
            try:
                _fast.unpack_bits(message.values, params.ring.bits, values)
            except ValueError:  # the server's check "length"
                return
            assert int(values.max()) >> params.ring.bits == 0


_KNOWN = [World(params) for params in WORLDS]


def decoders(data: bytes) -> None:
    """The first byte selects kind and world; the rest is the message."""
    if not data:
        return
    kind = KINDS[data[0] % len(KINDS)]
    world = _KNOWN[data[0] // len(KINDS) % len(_KNOWN)]
    message = data[1:]
    try:
        value = decode(message, kind, world.params, sender=3, phase="fuzzing")
        assert type(value) is kind
        assert len(message) <= max_bytes(kind, world.params)
        assert decode(encode(value), kind, world.params, sender=3, phase="fuzzing") == value
        world.examine(value)
    except RemoteProtocolError as error:
        assert error.check
        assert len(str(error)) < 300


def parameters(data: bytes) -> None:
    """The bytes are exactly those of the parameters that they are read as, or are rejected."""
    try:
        read = RoundParams.from_bytes(data)
    except RemoteProtocolError as error:
        assert error.check in ("version", "length", "parameters")
        assert len(str(error)) < 500
        return
    assert len(data) <= MAX_PARAMS_BYTES
    assert read.to_bytes() == data
    for world in _KNOWN:
        own = world.params.to_bytes()
        assert (compare(own, data, "there")[1] == "") == (own == data)


class Script:
    """Bytes as a sequence of decisions; once they are used up, every decision is 0."""

    def __init__(self, data: bytes) -> None:
        self._left = iter(data)

    def below(self, limit: int) -> int:
        return next(self._left, 0) % limit


def transcripts(data: bytes) -> None:
    """Run a round over a network that a script controls.

    Every machine answers or raises RemoteProtocolError, and the server ends with a sum or
    TooFewSurvivors. The sum is exact unless a client or the server accepted an altered message:
    a client that is shown fewer peers masks with fewer, and a masked input can be replaced.
    """
    script = Script(data)
    cohort = Cohort(WORLDS[script.below(len(WORLDS))])
    server, seen, spoilt = cohort.server, [b""], False
    for phase in cohort.phases():
        sent: dict[int, bytes] = {}
        for u, asked in cohort.inbox.items():
            arrived = altered_by(asked, script, seen)
            try:
                sent[u] = cohort.answer(u, arrived)
            except RemoteProtocolError as error:
                assert error.sender is None
                assert cohort.clients[u].phase is Phase.FAILED
            else:
                spoilt |= arrived != asked
        seen += sent.values()
        for u in _order(sent, script):
            data = altered_by(sent[u], script, seen)
            sender = u if script.below(16) != 1 else script.below(len(cohort.ids))
            try:
                server.receive(sender, data)
            except RemoteProtocolError as error:
                assert error.sender == sender
            else:
                spoilt |= phase == "masked_input" and (sender, data) != (u, sent[u])
        cohort.sent.append(sent)
        try:
            cohort.inbox = server.close_round()
        except (TooFewSurvivors, RemoteProtocolError):
            assert server.phase is Phase.FAILED
            return
        seen += cohort.inbox.values()
    result = server.result()
    if not spoilt:
        assert result.integers.tolist() == cohort.expected(result.survivors)


def _order(sent: dict[int, bytes], script: Script) -> list[int]:
    order = [u for u in sent if script.below(8) != 1]  # lost
    order += [u for u in order if script.below(8) == 1]  # repeated
    for i in range(len(order)):
        j = i + script.below(2) * script.below(len(order) - i)
        order[i], order[j] = order[j], order[i]
    return order


def altered_by(message: bytes, script: Script, seen: list[bytes]) -> bytes:
    """Return a message as the script lets it arrive; `seen` are others to put in its place."""
    how = script.below(8)
    if how not in _ALTERATIONS or not message:
        return message
    return _ALTERATIONS[how](message, script, seen)


def _flip(message: bytes, script: Script, _: list[bytes]) -> bytes:
    at = (script.below(256) | script.below(256) << 8) % len(message)
    return message[:at] + bytes([message[at] ^ (1 << script.below(8))]) + message[at + 1 :]


def _cut(message: bytes, script: Script, _: list[bytes]) -> bytes:
    return message[: script.below(256) * len(message) // 256]


def _insert(message: bytes, script: Script, _: list[bytes]) -> bytes:
    at = script.below(256) * len(message) // 256
    return (
        message[:at] + bytes(script.below(256) for _ in range(script.below(9))) + message[at:]
    )


def _exchange(_: bytes, script: Script, seen: list[bytes]) -> bytes:
    return seen[script.below(256) % len(seen)]


_ALTERATIONS: dict[int, Callable[[bytes, Script, list[bytes]], bytes]] = {
    1: _flip,
    2: _cut,
    3: _insert,
    4: _exchange,
}
TARGETS: dict[str, Callable[[bytes], None]] = {
    "parameters": parameters,
    "decoders": decoders,
    "transcripts": transcripts,
    "paillier": paillier,
    "threshold": threshold_parts,
    "oneshot": oneshot_targets,
    "states": states,
    "verdicts": verdicts,
}


def _own_seeds(target: str) -> list[bytes]:
    if target == "parameters":
        own = make_params(5, encoding=Integers(9), modulus=101, max_weight=2)
        return [params.to_bytes() for params in (*WORLDS, own)]
    if target == "decoders":
        tags = {kind.__struct_config__.tag: i for i, kind in enumerate(KINDS)}
        return [
            bytes([tags[message[2]] + len(KINDS) * w]) + message
            for w, world in enumerate(_KNOWN)
            for message in world.messages
        ]
    rng = np.random.default_rng(0)
    return [
        bytes([w]) + bytes(np.where(rng.random(200) < p, rng.integers(0, 256, 200), 0).tolist())
        for w in range(len(WORLDS))
        for p in (0.0, 0.02, 0.1)
    ]


_SEEDS = {
    "paillier": paillier_seeds,
    "threshold": threshold_seeds,
    "oneshot": oneshot_seeds,
    "states": state_seeds,
    "verdicts": verdict_seeds,
}


def seeds(target: str) -> list[bytes]:
    """Starting points of fuzzing: every real message, or rounds with a few decisions each."""
    return _SEEDS[target]() if target in _SEEDS else _own_seeds(target)
