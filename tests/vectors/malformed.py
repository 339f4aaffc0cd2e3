"""malformed.json: messages to reject, spellings to accept, closings with too few clients."""

from faults import Cases, Faults
from faults_blame import blame_faults
from faults_client import client_faults
from faults_dealing import dealing_faults
from faults_hybrid import hybrid_faults
from faults_server import closings, server_faults
from kinds import FROM_CLIENTS, broken, odd_spellings
from whole_round import Round

from independent_messages import KINDS, limit

# The smallest rounds, so that the file stays small.
HOME = dict.fromkeys(range(1, 8), "complete-nobody-drops") | {
    8: "active-prime",
    9: "active-prime",
}


def malformed(rounds: dict[str, Round]) -> dict[str, object]:
    refused: Cases = []
    accepted: Cases = []
    for tag, (kind, phase, _) in KINDS.items():
        r = rounds[HOME[tag]]
        side = "server" if tag in FROM_CLIENTS else "client"
        to = Faults(refused, side, r, phase, min(r.parties))
        for name, check, data in broken(to.good, limit(r.params, tag)):
            to(name, check, message=data)
        accepted += [
            to.where | {"name": f"{kind}: {name}", "bytes": data, "as": to.good}
            for name, data in odd_spellings(to.good)
        ]
    for faults in (server_faults, client_faults, hybrid_faults, dealing_faults, blame_faults):
        refused += faults(rounds)
    return {
        "refused": refused,
        "accepted": accepted,
        "closings": closings(rounds),
    }
