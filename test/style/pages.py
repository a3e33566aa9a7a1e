# SPDX-License-Identifier: Apache-2.0
"""Rules about pages: pages.py SOURCE_ROOT. Prints each break; exit status 1 if any.

README.md has at most 200 lines, any other page 800; no page has a line above 120 columns; links lead to pages and
headings that exist; so do the files that a page names in backticks."""

import pathlib
import re
import subprocess
import sys

MAX_README_LINES = 200
MAX_PAGE_LINES = 800
MAX_COLUMNS = 120
TOPS = "runtime codegen ir-templates tools bench test hosts docs".split()
# Made by a build or a run.
MADE = ("build", "docs/figures")


def anchors(path):
    """The anchors that headings have: lower case, punctuation gone, blanks as hyphens."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def broken_links(root, page):
    prose = re.sub(r"^```.*?^```|^ {4}.*?$|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if target.startswith(("http:", "https:")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists():
            yield f"{page.relative_to(root)}: link to no file: {target}"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            yield f"{page.relative_to(root)}: link to no heading: {target}"


def files_that_are_not(root, page):
    for name in re.findall(r"`((?:" + "|".join(TOPS) + r")/[\w./-]+\.\w+)`", page.read_text()):
        if not name.startswith(MADE) and not (root / name).exists():
            yield f"{page.relative_to(root)}: names a file that does not exist: {name}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md"], capture_output=True,
                            text=True)
    names = (listed.stdout.splitlines()
             or [p.relative_to(root).as_posix() for p in [*root.glob("*.md"), *root.glob("docs/*.md")]])
    breaks = []
    for page in sorted(root / name for name in set(names) if (root / name).is_file()):
        lines = page.read_text().splitlines()
        most = MAX_README_LINES if page == root / "README.md" else MAX_PAGE_LINES
        if len(lines) > most:
            breaks.append(f"{page.relative_to(root)}: too many lines: {len(lines)}; at most {most}")
        breaks += [f"{page.relative_to(root)}:{n}: line too long: {len(line)}; at most {MAX_COLUMNS} columns"
                   for n, line in enumerate(lines, 1) if len(line) > MAX_COLUMNS]
        breaks += [*broken_links(root, page), *files_that_are_not(root, page)]
    print("\n".join(breaks) or f"pages: {len(names)}, all keep the rules")
    sys.exit(1 if breaks else 0)


if __name__ == "__main__":
    main()
