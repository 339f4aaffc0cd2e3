"""Parts of docs/protocol.md that can be compared with the code, and the generated parts.

``python tests/support/protocol_doc.py`` draws the diagrams again from the transition table, and
writes the worked example again from tests/vectors/rounds.json and the independent code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import protocol_example
from secagg.protocol import NEXT, Phase

ROOT = Path(__file__).parents[2]
DOC = ROOT / "docs" / "protocol.md"

SENT = {
    Phase.ADVERTISE_KEYS: "AdvertiseKeys",
    Phase.SHARE_KEYS: "ShareKeys",
    Phase.MASKED_INPUT: "MaskedInput",
    Phase.CONSISTENCY_CHECK: "ConsistencySignature",
    Phase.UNMASKING: "UnmaskShares",
}
"""Messages of a client, by phase."""

ANSWERED = {
    Phase.SHARE_KEYS: "Roster",
    Phase.MASKED_INPUT: "Shares",
    Phase.CONSISTENCY_CHECK: "ConsistencyRequest",
    Phase.UNMASKING: "UnmaskRequest",
    Phase.FINISHED: "the sum",
}
"""Answers of the server on its way into each phase."""

SIDES = {
    "client": ["client"],
    "server": ["server"],
    "messages": ["client", "server"],
    "blame": ["verdict"],
    "shape": ["parameters"],
    "params": ["parameters"],
    "params_bytes": ["parameters"],
    "stored": ["states"],
    "vault": ["states"],
    "paillier": ["encryption"],
    "threshold": ["encryption"],
}
"""Sides of the checks by package; ``messages`` checks on both."""
PACKAGES = ("protocol", "client", "server", "blame", "vault", "paillier", "threshold")


def diagram(variant: str) -> str:
    """The state diagram of a variant, as Mermaid has it."""
    table = NEXT[variant]
    first = next(iter(table))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {first}"]
    lines += [f"    {p} --> {q}: {SENT[p]} / {ANSWERED[q]}" for p, q in table.items()]
    lines += [f"    {p} --> {Phase.FAILED}" for p in table]
    lines += [f"    {end} --> [*]" for end in (Phase.FINISHED, Phase.FAILED)]
    return "\n".join([*lines, "```"])


def section(name: str) -> str:
    """Text between the markers of a generated or tested part of the document."""
    found = re.search(
        rf"^<!-- {re.escape(name)} -->\n(.*?)<!-- end -->", DOC.read_text(), re.M | re.S
    )
    assert found, f"docs/protocol.md has no part <!-- {name} -->"
    return found.group(1).strip()


def listing(name: str) -> dict[str, str]:
    """The items of a part: a line ending in a colon, then indented lines of value."""
    items = re.findall(r"^(\S.*):\n((?:    .*\n)+)", section(name), re.M)
    return {key: " ".join(value.split()) for key, value in items}


def documented_checks() -> dict[tuple[str, str], str]:
    """The table of checks: the phases by (check, side)."""
    rows = re.findall(r"^\| `([^`]+)` \| (\w+) \| ([^|]+) \|", section("checks"), re.M)
    assert len({row[:2] for row in rows}) == len(rows), "a check is listed twice"
    return {(check, side): phases for check, side, phases in rows}


def other_checks() -> dict[str, set[str]]:
    """The documented checks of no phase: parameters, states, verdicts and ciphertexts."""
    texts = {
        "parameters": section("parameter checks"),
        "states": section("state checks"),
        "verdict": section("verdict checks"),
        "encryption": (ROOT / "docs" / "paillier.md").read_text(),
    }
    row = re.compile(r"^\| `([a-z_ ]+)` \|", re.M)
    return {side: set(row.findall(text)) for side, text in texts.items()}


def checks_in_code() -> set[tuple[str, str]]:
    """(check, side) of every literal that is passed for a parameter named `check`."""
    trees = {
        path: ast.parse(path.read_text())
        for package in PACKAGES
        for path in (ROOT / "secagg" / package).glob("*.py")
    }
    shared: dict[str, int] = {}
    for tree in trees.values():
        for node in tree.body:
            shared |= _places(node.body if isinstance(node, ast.ClassDef) else [node])
    return {
        (check, side)
        for path, tree in trees.items()
        for check in _literals(tree, shared | _places(ast.walk(tree)))
        for side in SIDES.get(path.stem, []) or SIDES[path.parent.name]
    }


def _places(nodes: Iterable[ast.AST]) -> dict[str, int]:
    """The functions with a parameter `check`, and which one it is, self not counted."""
    names = {
        node.name: [a.arg for a in node.args.args if a.arg != "self"]
        for node in nodes
        if isinstance(node, ast.FunctionDef)
    }
    return {name: args.index("check") for name, args in names.items() if "check" in args}


def _literals(tree: ast.Module, place: dict[str, int]) -> Iterator[str]:
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else None
        name = call.func.id if isinstance(call.func, ast.Name) else name
        given = [k.value for k in call.keywords if k.arg == "check"]
        if name in place and not given:
            given = call.args[place[name] : place[name] + 1]
        for value in given:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.value
            else:  # a helper that hands on what it was given
                handed_on = isinstance(value, ast.Name) and value.id == "check"
                assert handed_on, f"line {value.lineno}: not a literal check"


def generated() -> dict[str, str]:
    """The generated parts of the document by their names."""
    parts = {f"diagram {variant}": diagram(variant) for variant in NEXT}
    parts |= {
        name: protocol_example.listed(values())
        for name, values in protocol_example.LISTINGS.items()
    }
    return parts | {
        "vectors": protocol_example.vectors(),
        "message": protocol_example.message(),
    }


def write() -> None:
    """Write the generated parts of the document again."""
    text = DOC.read_text()
    for name, part in generated().items():
        start = f"<!-- {name} -->\n"
        before, rest = text.split(start)
        text = before + start + part + "\n" + rest[rest.index("<!-- end -->") :]
    DOC.write_text(text)


if __name__ == "__main__":
    write()
