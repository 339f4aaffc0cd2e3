"""Write the golden vectors: ``python tests/vectors/generate.py [FOLDER]``.

The independent parties, tests/support/independent_*.py, compute everything from
docs/protocol.md, docs/oneshot.md and docs/http-binding.md alone. This folder has their inputs,
a server, Paillier from docs/paillier.md, and the faults. Nothing of the package is imported.

Every run writes the same bytes. In the files, bytes are hexadecimal and keys are sorted.
Elements and coefficients are u64le, one after the other. An integer of 2^53 or more is a
decimal string, since many readers of JSON would round it.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import dealing_vectors
import derivations
import http_vectors
import key_vectors
import noise_vectors
import numbers_vectors
import oneshot
import oneshot_malformed
import paillier_vectors
import states
import verdicts
from described import describe
from kinds import messages
from malformed import malformed
from scenarios import rounds
from scenarios_blame import blame
from scenarios_hybrid import hybrid

HOW = "tests/vectors/generate.py, from {} alone, sharing no code with the package"

DOCUMENTS = {
    "paillier": "docs/paillier.md",
    "oneshot": "docs/oneshot.md",
    "http": "docs/http-binding.md",
}


def plain(value: object) -> object:
    """The value as JSON may hold it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**53:
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def write(
    folder: Path, name: str, section: str, library: str, content: dict[str, object]
) -> None:
    document = DOCUMENTS.get(name.split("_")[0], "docs/protocol.md")
    provenance = {"section": section, "primitives": library, "made_by": HOW.format(document)}
    text = json.dumps(
        plain(content | {"provenance": provenance}), indent=0, sort_keys=True, allow_nan=False
    )
    (folder / f"{name}.json").write_text(text + "\n", encoding="ascii", newline="\n")


def main(folder: Path) -> None:
    all_rounds = [*rounds(), *hybrid(), *blame()]
    by_name = {r.name: r for r in all_rounds}
    curves = "cryptography (X25519, Ed25519, AES-GCM, AES), hashlib, hmac"
    files: list[tuple[str, str, str, Callable[[], dict[str, object]]]] = [
        ("parameters", "§3.1-§3.3", "hashlib", derivations.parameters),
        ("client_ids", "§5.12", "hashlib", derivations.client_ids),
        ("roster", "§5.2", "hashlib", derivations.roster),
        ("keys", "§5.1, §5.3, §5.5, §5.6", curves, key_vectors.key_pairs),
        ("shamir", "§5.4, Annex B", "Python integers", derivations.shamir),
        ("hedging", "§5.13", "hashlib, hmac", derivations.hedging),
        ("signatures", "§5.10", "cryptography (Ed25519)", derivations.signatures),
        ("graph", "§5.11", "hashlib", derivations.graph),
        ("encodings", "§4, Annex B", "Python floats and integers", numbers_vectors.encodings),
        ("masks", "§5.7", "cryptography (AES-ECB), Python integers", numbers_vectors.masks),
        ("bounded", "§4.5", "Python floats and integers", noise_vectors.bounded),
        ("noise", "§5.14", "cryptography (AES-CTR), Python integers", noise_vectors.noise),
        ("packing", "§5.9", "Python integers", numbers_vectors.packing),
        ("messages", "§6", "Python integers", lambda: messages([r.params for r in all_rounds])),
        ("dealing", "§5.10, §5.15", curves, dealing_vectors.dealt),
        ("verdicts", "§14", curves, lambda: verdicts.verdicts(by_name)),
        ("malformed", "§6.1, §8, §12", curves, lambda: malformed(by_name)),
        ("states", "§13", curves, lambda: states.states(by_name)),
        ("rounds", "§8", curves, lambda: {"rounds": [describe(r) for r in all_rounds]}),
        ("paillier", "§2-§4", "hashlib, Python integers", paillier_vectors.paillier),
        ("oneshot", "§3-§6, §8", f"{curves}; HPKE, ML-KEM: Python integers", oneshot.oneshot),
        ("oneshot_malformed", "§3-§6, §12", curves, oneshot_malformed.malformed),
        ("http", "§2, §5", curves, http_vectors.http),
    ]
    for name, section, library, make in files:
        write(folder, name, section, library, make())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
