# SPDX-License-Identifier: Apache-2.0
"""HTML of kernels and results for notebooks. Colours are those of the page, so dark themes stay dark: lines and
backgrounds are shades of the text's own colour.
"""

from __future__ import annotations

import decimal
import html
from collections.abc import Iterable, Sequence

_STYLE = """<style>
.quern { max-width: 100%; }
.quern table { border-collapse: collapse; margin: 0.4em 0; }
.quern th, .quern td { padding: 0.15em 0.8em; text-align: left;
  border: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
.quern td.number { text-align: right; font-variant-numeric: tabular-nums; }
.quern th small { font-weight: normal; opacity: 0.7; }
.quern summary { cursor: pointer; padding: 0.15em 0; }
.quern pre { max-height: 24em; overflow: auto; margin: 0.2em 0 0.6em; padding: 0.6em; font-size: 0.85em;
  line-height: 1.3; white-space: pre; text-align: left; border-radius: 4px;
  background: color-mix(in srgb, currentColor 7%, transparent); }
.quern .null { opacity: 0.5; }
</style>"""
_LONGEST_TEXT = 60


def page(parts: Iterable[str]) -> str:
    return f'<div class="quern">{_STYLE}{"".join(parts)}</div>'


def code(text: str) -> str:
    return f"<code>{html.escape(text)}</code>"


def fold(name: str, text: str) -> str:
    return f"<details><summary>{html.escape(name)}</summary><pre>{html.escape(text)}</pre></details>"


def cell(value: object) -> str:
    if value is None:
        return '<td class="null">null</td>'
    is_number = isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool)
    text = str(value)
    text = text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + ".."
    return f'<td{" class=number" if is_number else ""}>{html.escape(text)}</td>'


def table(heads: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """heads: HTML."""
    head = "".join(f"<th>{text}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(cell(value) for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def head(name: str, below: str) -> str:
    return f"{html.escape(name)}<br><small>{html.escape(below)}</small>"
