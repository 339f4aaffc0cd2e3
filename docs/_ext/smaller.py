"""Finished pages without what nobody sees, and without closed branches of the navigation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

KEPT = re.compile(
    r"(<(?:pre|script|style|textarea)\b.*?</(?:pre|script|style|textarea)>)", re.S
)
PARAMETER = re.compile(r'<em class="sig-param">.*?</em>', re.S)
SPAN = re.compile(r"</?span\b[^>]*>")
WORD = re.compile(r'<span class="pre">([^<]*)</span>')
NAME = re.compile(r'(<a class="reference internal" href="[^"]*") title="[^"]*"')
BRANCH = re.compile(
    r'(<li class="toctree-l1) has-children(">\s*<a [^>]*>[^<]*</a>)<input .*?</ul>(?=\s*</li>)',
    re.S,
)
SYMBOL = re.compile(r'<symbol id="([^"]*)".*?</symbol>\s*', re.S)


def shrink(page: str) -> str:
    """Return the HTML of a page with the same look; a small page stays as it is."""
    page = PARAMETER.sub(lambda found: SPAN.sub("", found[0]), page)
    # a word is one line, so that only words with places for a break need the tag
    page = WORD.sub(lambda found: found[0 if re.search(r"[-/?]", found[1]) else 1], page)
    page = NAME.sub(r"\1", page)
    page = re.sub(r'(?<=[" ])docutils (?=literal notranslate")', "", page)
    page = BRANCH.sub(r"\1\2", page)
    page = SYMBOL.sub(lambda found: found[0] if f"#{found[1]}" in page else "", page)
    parts, end = [], 0
    for kept in KEPT.finditer(page):
        parts += [re.sub(r"\n\s+", "\n", page[end : kept.start()]), kept[0]]
        end = kept.end()
    return "".join([*parts, re.sub(r"\n\s+", "\n", page[end:])])


def shrink_all(app: Any, error: Exception | None) -> None:
    """Shrink every page once the build is over, and remove the maps of styles and scripts."""
    if error is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            path.write_text(shrink(path.read_text(encoding="utf-8")), encoding="utf-8")
        for path in Path(app.outdir, "_static").rglob("*.map"):
            path.unlink()


def setup(app: Any) -> dict[str, bool]:
    """Connect to the end of the build."""
    app.connect("build-finished", shrink_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
