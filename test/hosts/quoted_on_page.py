# SPDX-License-Identifier: Apache-2.0
"""quoted_on_page.py PAGE FILE [--max-lines N]: the page holds the file word for word, and the file is not too long."""
import argparse
import pathlib
import re
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--max-lines", type=int, default=1000)
    options = parser.parse_args()
    text = options.file.read_text()
    num_lines = len(text.splitlines())
    if num_lines > options.max_lines:
        sys.exit(f"{options.file.name}: too many lines: {num_lines}; at most {options.max_lines}")
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", options.page.read_text(), re.MULTILINE | re.DOTALL)
    if text not in blocks:
        sys.exit(f"{options.page.name}: {options.file.name} is not in it word for word; expected in a ``` block")


if __name__ == "__main__":
    main()
