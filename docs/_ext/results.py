"""Tables of docs/results and docs/speed, which benches write, as the sections of a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


class ResultTables(SphinxDirective):
    """Summary of the targets, and a section for each table that the content names, in order.

    The argument is the tables' folder, beside the page.
    """

    has_content = True
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the Markdown of the tables in the place of the directive."""
        folder = Path(self.env.srcdir) / self.arguments[0]
        for path in folder.glob("*.json"):
            self.env.note_dependency(str(path))
        parent = nodes.section()
        parent.document = self.state.document
        text = markdown(folder, [key.strip() for key in self.content])
        self.state.nested_parse(StringList(text.splitlines()), 0, parent, match_titles=True)
        return list(parent.children)


def markdown(folder: Path, keys: Sequence[str]) -> str:
    """Return the tables' Markdown; raise ValueError unless `keys` names each file once."""
    if sorted(keys) != sorted(path.stem for path in folder.glob("*.json")):
        raise ValueError(f"the page must name each table of {folder.name} once: {keys}")
    tables = [json.loads((folder / f"{key}.json").read_text("utf-8")) for key in keys]
    met = sum(table["met"] for table in tables)
    missed = [
        f"{key} / {aim}"
        for key, table in zip(keys, tables, strict=True)
        for aim in table["missed"]
    ]
    # below a heading: a text before the first section would stand after the last
    parts = [f"## {met} of {met + len(missed)} targets are met", "Missed:" if missed else ""]
    parts += ["\n".join(f"- {aim}" for aim in missed)]
    parts += [_section(table, folder.name) for table in tables]
    return "\n\n".join(filter(None, parts))


def _section(table: dict[str, Any], folder: str) -> str:
    lines = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    return "\n\n".join(
        filter(
            None,
            [
                f"## {table['title']}",
                f"`{table['command']}`",
                "\n".join(f"| {' | '.join(line)} |" for line in lines),
                "\n".join(f"- {remark}" for remark in table["remarks"]),
                table["note"],
                *(f"![{one['text']}]({folder}/{one['file']})" for one in table["pictures"]),
                f"<sub>{table['origin']}</sub>" if table["origin"] else "",
            ],
        )
    )


def setup(app: Any) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("results", ResultTables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
