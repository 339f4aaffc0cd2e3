"""malformed.json: messages to reject, spellings to accept, closings with too few clients."""

from faults_client import client_faults
from faults_server import closings, server_faults
from kinds import FROM_CLIENTS, broken, odd_spellings
from parties import Round

from independent_messages import KINDS, limit

# The smallest rounds, so that the file stays small.
HOME = dict.fromkeys(range(1, 8), "complete-nobody-drops") | {
    8: "active-prime",
    9: "active-prime",
}


def malformed(rounds: dict[str, Round]) -> dict[str, object]:
    framing: list[dict[str, object]] = []
    accepted: list[dict[str, object]] = []
    for tag, (kind, phase, _) in KINDS.items():
        r = rounds[HOME[tag]]
        u = sorted(r.parties)[0]
        side = "server" if tag in FROM_CLIENTS else "client"
        good = r.message(side, phase, u)
        who = {"accepted": [], "from": u} if side == "server" else {"before": None, "client": u}
        where = {"side": side, "round": r.name, "phase": phase, "kind": kind, **who}
        for name, check, data in broken(good, limit(r.params, tag)):
            framing.append(where | {"name": f"{kind}: {name}", "bytes": data, "check": check,
                                    "error": "RemoteProtocolError"})  # fmt: skip
        for name, data in odd_spellings(good):
            accepted.append(where | {"name": f"{kind}: {name}", "bytes": data, "as": good})
    return {
        "refused": [*framing, *server_faults(rounds), *client_faults(rounds)],
        "accepted": accepted,
        "closings": closings(rounds),
    }
