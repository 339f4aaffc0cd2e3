"""Mends in the finished pages that screen readers and keyboards need; axe-core found them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

MENDS = [
    (r'role="heading">', 'role="heading" aria-level="2">'),
    (r'<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Site">'),
    (r'<aside class="toc-drawer', '<aside aria-label="On this page" class="toc-drawer'),
    (r"<pre>", '<pre tabindex="0">'),  # a region that scrolls must take the focus
    (r'<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
    (r'<th class="head"><p></p></th>', '<td class="head"></td>'),
    (r'(?<!</h1>)<div id="search-results">', '<h1>Search</h1><div id="search-results">'),
]
LONG_SIGNATURE = re.compile(r"<dl>\s*((?:<dd><em class=\"sig-param\">.*?</dd>\s*)+)</dl>", re.S)


def mend(page: str) -> str:
    """Return the HTML of a page with all mends; a mended page stays as it is."""
    for pattern, replacement in MENDS:
        page = re.sub(pattern, replacement, page)

    def as_lines(found: re.Match[str]) -> str:
        lines = found[1].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")
        return f"<span>{lines}</span>"

    return LONG_SIGNATURE.sub(as_lines, page)


def mend_all(app: Any, error: Exception | None) -> None:
    """Mend every page once the build is over."""
    if error is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            path.write_text(mend(path.read_text()))


def setup(app: Any) -> dict[str, bool]:
    """Connect to the end of the build."""
    app.connect("build-finished", mend_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
