"""The state machines of protocol.md, which GitHub draws by Mermaid, as inline SVG."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

STEP, HEIGHT = 84, 40
LEFT, WIDTH = 8, 176  # of the chain's boxes
FAILED = 340  # left edge of the last box
TIP = (
    '<defs><marker id="{}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
    'markerHeight="8" orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>'
)


class StateDiagram(SphinxDirective):
    """A chain of states with labelled transitions, all of which but the last can fail."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw the chain from top to bottom."""
        edges = re.findall(r"(\w+) --> (\w+): (.*)", "\n".join(self.content))
        tip = f"state-tip-{self.env.new_serialno('state-tip')}"
        return [nodes.raw("", draw(edges, tip), format="html")]


def draw(edges: list[tuple[str, str, str]], tip: str) -> str:
    """Return the SVG of (state, next state, messages) triples; `tip` is its marker's id."""
    states = [edges[0][0], *(after for _, after, _ in edges)]
    middle, fail_y = LEFT + WIDTH // 2, STEP * (len(edges) - 1) // 2 + 8
    title = f"From {' to '.join(states)}; each but the last can end in failed."
    parts = [
        f'<svg class="states" role="img" aria-label="{title}" '
        f'viewBox="0 0 440 {STEP * len(edges) + HEIGHT + 16}">{TIP.format(tip)}'
    ]
    end_mark = f'marker-end="url(#{tip})"'
    for row, (state, _, messages) in enumerate(edges):
        y = STEP * row + 8
        parts.append(_box(LEFT, y, WIDTH, state))
        parts.append(f'<path class="line" {end_mark} d="M{middle} {y + HEIGHT}V{y + STEP}"/>')
        note = f'<text class="note" x="{middle + 10}" y="{y + HEIGHT + 27}">'
        parts.append(f"{note}{escape(messages)}</text>")
        bend = FAILED + 46
        end = fail_y + (HEIGHT if y > fail_y else 0)
        across = f"H{bend}V{end}" if abs(y - fail_y) > HEIGHT else f"H{FAILED}"
        path = f'class="line faint" {end_mark} d="M{LEFT + WIDTH} {y + 20}{across}"'
        parts.append(f"<path {path}/>")
    parts.append(_box(LEFT, STEP * len(edges) + 8, WIDTH, states[-1]))
    parts.append(_box(FAILED, fail_y, 92, "failed"))
    return "".join([*parts, "</svg>"])


def _box(x: int, y: int, width: int, text: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" rx="6"/>'
        f'<text x="{x + width // 2}" y="{y + 25}">{text}</text>'
    )


def setup(app: Any) -> dict[str, bool]:
    """Register the directive under the fence's name."""
    app.add_directive("mermaid", StateDiagram)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
