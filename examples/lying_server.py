"""Server that lies about the survivors, and clients with identities that detect it.

The server reports to half of the clients that client 5 dropped out, to the others that client 0
did, and asks for the masks of both to be removed. In the active variant each client signs its
list of survivors, and reveals shares only for a list that at least `threshold` clients signed.
The same clients then give an honest server their sum.

    python examples/lying_server.py
"""

from __future__ import annotations

import msgspec
import numpy as np

import secagg
from secagg.protocol import messages

IDENTITIES = {client_id: secagg.Identity.generate() for client_id in range(6)}
REGISTRY = secagg.Registry({u: identity.public for u, identity in IDENTITIES.items()})


def parties(session: bytes) -> tuple[secagg.Server, dict[int, secagg.Client]]:
    """Make a server and six clients for the round of this name."""
    params = secagg.RoundParams(
        n_clients=6,
        threshold=5,
        length=3,
        encoding=secagg.FixedPoint(clip=8.0),
        security="active",
        session=session,
    )
    clients = {
        u: secagg.Client(u, params, identity=identity, registry=REGISTRY)
        for u, identity in IDENTITIES.items()
    }
    return secagg.Server(params, registry=REGISTRY), clients


def read(data: bytes) -> messages.ConsistencySignature:
    """Read a client's signature, as the server does."""
    return msgspec.msgpack.decode(data[1:], type=messages.ConsistencySignature)


def ask_to_sign(request: bytes, survivors: list[int]) -> bytes:
    """Replace the list of survivors in the server's request by another one."""
    message = msgspec.msgpack.decode(request[1:], type=messages.ConsistencyRequest)
    lie = msgspec.structs.replace(message, survivors=messages.pack_ids(survivors))
    return messages.encode(lie)


def ask_to_unmask(
    survivors: list[int], signed: dict[int, messages.ConsistencySignature]
) -> bytes:
    """Ask for shares, with the signatures of all clients on the list of survivors."""
    return messages.encode(
        messages.UnmaskRequest(
            session=signed[0].session,
            survivors=messages.pack_ids(survivors),
            dropped=messages.pack_ids(sorted(set(signed) - set(survivors))),
            signers=messages.pack_ids(survivors),
            signatures=b"".join(signed[u].signature for u in survivors),
        )
    )


def until_consistency(
    server: secagg.Server, clients: dict[int, secagg.Client]
) -> dict[int, bytes]:
    """Run a round up to the check; return the server's requests for signatures."""
    requests = dict.fromkeys(clients, b"")
    while server.phase is not secagg.Phase.CONSISTENCY_CHECK:
        for u, data in requests.items():
            server.receive(u, clients[u].answer(data, np.full(3, float(u))))
        requests = server.close_round()
    return requests


def main() -> None:
    """Run the round up to the lie and print each client's error; then run an honest round."""
    server, clients = parties(b"a lying server, round 1")
    requests = until_consistency(server, clients)
    lists = {u: [0, 1, 2, 3, 4] if u < 3 else [1, 2, 3, 4, 5] for u in clients}
    signed = {u: read(clients[u].answer(ask_to_sign(requests[u], lists[u]))) for u in clients}
    for u, client in clients.items():
        try:
            client.answer(ask_to_unmask(lists[u], signed))
        except secagg.RemoteProtocolError as error:
            print(f"client {u}: {error}")
    # new clients under a new name: an honest server shows all of them the same list
    server, clients = parties(b"an honest server, round 2")
    requests = until_consistency(server, clients)
    while requests:
        for u, data in requests.items():
            server.receive(u, clients[u].answer(data))
        requests = server.close_round()
    result = server.result()
    print(f"honest: survivors {result.survivors}, sum {result.sum}")


if __name__ == "__main__":
    main()
