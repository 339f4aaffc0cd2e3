"""Traffic of a client in each phase, in exact bytes.

Sizes depend on the parameters and on the number of remaining clients, never on an input. The
formulas are in docs/parameters.md, in the order of this module.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import msgpack

from secagg._check import check_integer
from secagg.errors import ParameterError
from secagg.protocol.dealing import HASH_BYTES, depth
from secagg.protocol.identities import SIGNATURE_BYTES
from secagg.protocol.kem import KEY_BYTES as KEM_KEY_BYTES
from secagg.protocol.keys import KEY_BYTES
from secagg.protocol.messages import (
    CHECK_BYTES,
    POINT_BYTES,
    SEALED_BYTES,
    SHARE_BYTES,
)
from secagg.protocol.params import RoundParams
from secagg.protocol.phases import NEXT, Phase

_ID_BYTES = 8
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class Traffic:
    """Bytes of a client in a phase: `down` is the received message, `up` the answer."""

    up: int
    down: int


def client_traffic(
    params: RoundParams,
    *,
    client_id: int = 0,
    cohort: int | None = None,
    u2: int | None = None,
    u3: int | None = None,
    u4: int | None = None,
) -> dict[Phase, Traffic]:
    """Return the exact traffic of a client that stays to the end, phase by phase.

    Parameters
    ----------
    params : RoundParams
    client_id : int
        Id of the client. An id up to 127 takes 1 byte in each message, larger ids 2, 3, 5 or 9.
    cohort : int, optional
        Number of clients in U1, which advertised keys; `n_clients` by default.
    u2, u3 : int, optional
        Number of holders of this client's shares, the client included, that are in U2 (shared
        their keys) and in U3 (sent an input). By default no holder drops out.
    u4 : int, optional
        Number of clients that signed U3, in the active variant; by default `u3`.

    Returns
    -------
    dict of phase to Traffic
        The sums over the phases are the client's ``SimulatedRound.bytes_up`` and
        ``bytes_down``.

    Raises
    ------
    ParameterError
        A value is out of range, or not 1 ≤ u4 ≤ u3 ≤ u2 ≤ min(cohort, ``params.holders``).
    """
    size = params.n_clients if cohort is None else cohort
    check_integer("client_id", client_id, 0, (1 << 64) - 1)
    check_integer("cohort", size, 1, params.n_clients)
    g1 = min(size, params.holders)
    g2 = g1 if u2 is None else u2
    g3 = g2 if u3 is None else u3
    g4 = g3 if u4 is None else u4
    if not 1 <= g4 <= g3 <= g2 <= g1:
        raise ParameterError(
            f"u2 is {g2}, u3 is {g3} and u4 is {g4}; of {g1} holders they must be "
            f"1 ≤ u4 ≤ u3 ≤ u2 ≤ {g1}"
        )
    signed = SIGNATURE_BYTES if params.active else 0
    # suite hybrid and the active variant add fields, which are empty elsewhere
    kem = KEM_KEY_BYTES if params.suite == "hybrid" else 0
    check = CHECK_BYTES if kem else 0
    hashes = 2 * HASH_BYTES if params.active else 0
    dealt = [32, signed, POINT_BYTES, hashes, HASH_BYTES * depth(g1)]
    box = SEALED_BYTES[params.suite]
    sender = _integer(client_id)
    session = digest = _bytes(_DIGEST_BYTES)
    parameters = _bytes(len(params.to_bytes()))
    key, keys = _bytes(KEY_BYTES), _bytes(KEY_BYTES * g1)
    signers = _bytes(_ID_BYTES * g4 if params.active else 0)
    ids = [_bytes(_ID_BYTES * count) for count in (g1, g2 - 1, g3, g2 - g3)]
    masked = _bytes(params.ring.packed_bytes(params.elements))
    traffic = {
        Phase.ADVERTISE_KEYS: Traffic(
            up=_message(sender, parameters, key, key, _bytes(kem), _bytes(signed)), down=0
        ),
        Phase.SHARE_KEYS: Traffic(
            up=_message(
                sender,
                session,
                digest,
                _bytes(box * (g1 - 1)),
                _bytes(check * (g1 - 1)),
                _bytes(hashes * g1),
                _bytes(signed),
            ),
            down=_message(
                parameters,
                _integer(size),
                digest,
                ids[0],
                keys,
                keys,
                _bytes(kem * g1),
                _bytes(signed * g1),
            ),
        ),
        Phase.MASKED_INPUT: Traffic(
            up=_message(
                sender,
                session,
                _bytes(check * (g2 - 1)),  # deposits
                _bytes(0),  # complaints, of which honest clients send none to each other
                _bytes(0),
                _bytes(signed),
                masked,
            ),
            down=_message(
                session,
                ids[1],
                _bytes(box * (g2 - 1)),
                _bytes(check * (g2 - 1)),
                *(_bytes(part * (g2 - 1) if params.active else 0) for part in dealt),
            ),
        ),
        Phase.CONSISTENCY_CHECK: Traffic(
            up=_message(sender, session, _bytes(signed)), down=_message(session, ids[2])
        ),
        Phase.UNMASKING: Traffic(
            up=_message(sender, session, _bytes(SHARE_BYTES * g2), _bytes(signed)),
            down=_message(session, ids[2], ids[3], signers, _bytes(signed * g4)),
        ),
    }
    # the semi-honest variant has no consistency check
    return {phase: traffic[phase] for phase in NEXT[params.security]}


def blame_traffic(params: RoundParams) -> Traffic:
    """Return the bytes that signed hashes of shares take of `client_traffic`, in all phases.

    They are 0 in the semi-honest variant. In the active variant they prove which client dealt
    or revealed a wrong share.
    """
    if not params.active:
        return Traffic(0, 0)
    h = params.holders
    up = 2 * HASH_BYTES * h, SIGNATURE_BYTES, SIGNATURE_BYTES, SIGNATURE_BYTES
    parts = 32, SIGNATURE_BYTES, POINT_BYTES, 2 * HASH_BYTES, HASH_BYTES * depth(h)
    down = (part * (h - 1) for part in parts)
    # the headers of empty fields are there in the semi-honest variant, too
    return Traffic(*(sum(_bytes(size) - _bytes(0) for size in sizes) for sizes in (up, down)))


def _message(*fields: int) -> int:
    """Return the bytes of a message: version, array header and tag before the fields."""
    return 3 + sum(fields)


def _bytes(size: int) -> int:
    """Return the bytes of a MessagePack byte string: bin 8, bin 16 or bin 32."""
    return size + (2 if size < 1 << 8 else 3 if size < 1 << 16 else 5)


def _integer(value: int) -> int:
    """Return the bytes of a MessagePack unsigned integer."""
    return len(msgpack.encode(int(value)))
