# SPDX-License-Identifier: Apache-2.0
"""Derives runtime/collation/weights_*.cc from published Unicode data. Run it again only to check the tables or to add
one:

    apt-get install unicode-data                                # UnicodeData.txt and DerivedAge.txt, version 15.0.0
    pip download --no-deps pyuca==1.2 && unzip pyuca-1.2*.whl   # allkeys-5.2.0.txt and allkeys-9.0.0.txt
    python3 tools/collations/derive.py --to runtime/collation --unicode-data /usr/share/unicode/UnicodeData.txt \\
        --derived-age /usr/share/unicode/DerivedAge.txt --allkeys-400 allkeys-4.0.0.txt \\
        --allkeys-520 pyuca/allkeys-5.2.0.txt --allkeys-900 pyuca/allkeys-9.0.0.txt

allkeys-4.0.0.txt came with Unicode Technical Standard 10, version 4.0.0 (2003). Every text is identified by its
SHA-256. With --check nothing is written; the exit status says whether the files are up to date.

A table maps code points to their weights, 0 to 8 numbers of 16 bits. It is stored as a list of instructions over the
code points in order. Each is a number whose lowest two bits select one of these:

    0  the next n code points weigh one more than the one before each   ("0123..": one instruction for ten digits)
    1  the next n code points weigh as much as the one before them      ("Aa")
    2  the next n code points are not in the table                      (weights by rule, or their own numbers)
    3  the next code point has n weights, which follow, each as its difference to the weight before; lowest bit: sign

Numbers are written with seven bits a byte, lowest first; the eighth bit is set if more follow. The bytes are in base
64.
"""

import argparse
import base64
import hashlib
import pathlib
import re
import sys

SHA256 = {
    "unicode_data": "806e9aed65037197f1ec85e12be6e8cd870fc5608b4de0fffd990f689f376a73",
    "derived_age": "7570877e0fa197c45338f7c41a02636da4e14c8dba6a3611a01cd30bf329d5ca",
    "allkeys_400": "866600028db037b68cb1007f5a36d3c8dd1b4884db80276b44a02cf52085885d",
    "allkeys_520": "47744eece32cf295185a8542f91800f08db7609ca044dc7f6564228c942939fc",
    "allkeys_900": "0633f4520c99f249b0c53aa1442cd2521702041fb00a32df944fec13c9da3ed5",
}
COLUMNS = 136
MAX_WEIGHTS = 8


def read(paths, name):
    text = pathlib.Path(paths[name]).read_bytes()
    found = hashlib.sha256(text).hexdigest()
    if found != SHA256[name]:
        sys.exit(f"derive.py: error: not the {name} that tables are made from: sha256 {found}; "
                 f"accepted: {SHA256[name]}")
    return text.decode()


# ---- general_ci: capitals without accents, of the letters of Unicode 3.0 in a few blocks ----

GENERAL_PAGES = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x1E, 0x1F, 0x21, 0x24, 0xFF}
GENERAL_EXCEPTIONS = {0x00DF: 0x0053, 0x03F2: 0x03A3, 0x0419: 0x0419, 0x0439: 0x0419}


def ages(text):
    age = {}
    for line in text.splitlines():
        match = re.match(r"([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*;\s*(\d+)\.(\d+)", line)
        if match:
            first, last = int(match[1], 16), int(match[2] or match[1], 16)
            age.update(dict.fromkeys(range(first, last + 1), (int(match[3]), int(match[4]))))
    return age


def general(paths):
    """Code points that do not weigh what they are."""
    age = ages(read(paths, "derived_age"))
    rows = {int(fields[0], 16): fields
            for fields in (line.split(";") for line in read(paths, "unicode_data").splitlines())}

    def is_known(c):
        return age.get(c, (99, 0)) <= (3, 0)

    def without_accents(c):
        while c in rows:
            parts = rows[c][5].split()
            if len(parts) != 2 or parts[0].startswith("<"):
                break
            base, mark = (int(part, 16) for part in parts)
            if not rows[base][2].startswith("L") or rows[mark][2] != "Mn":
                break
            c = base
        return c

    def weight(c):
        if c in GENERAL_EXCEPTIONS:
            return GENERAL_EXCEPTIONS[c]
        if c >> 8 not in GENERAL_PAGES or not is_known(c) or c not in rows:
            return c
        c = without_accents(c)
        upper = int(rows[c][12], 16) if c in rows and rows[c][12] else c
        return without_accents(upper if upper <= 0xFFFF and is_known(upper) else c)

    weights = {c: [weight(c)] for c in range(0x10000)}
    return {c: w for c, w in weights.items() if w != [c]}


# ---- the Unicode Collation Algorithm: primary weights of single characters; variable ones are weights like others ----


def primaries(text):
    table = {}
    for line in text.splitlines():
        match = re.match(r"([0-9A-F]+)\s*;\s*((?:\[[^\]]*\])+)", line)
        if match:
            elements = [int(element, 16) for element in re.findall(r"\[[.*]([0-9A-F]{4})", match[2])]
            table[int(match[1], 16)] = [weight for weight in elements if weight != 0]
    return table


def uca400(paths):
    table = primaries(read(paths, "allkeys_400"))
    del table[0xFDFA]  # 18 weights: by rule, as if it were not there
    return {c: w for c, w in table.items() if c <= 0xFFFF}


def uca520(paths):
    return {c: w[:MAX_WEIGHTS] for c, w in primaries(read(paths, "allkeys_520")).items()}


def uca900(paths):
    return {c: w[:MAX_WEIGHTS] for c, w in primaries(read(paths, "allkeys_900")).items()}


# ---- writing ----


def number(value):
    """Seven bits a byte, lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def steps(table):
    """(kind, n, weights of kind 3) for the code points in order."""
    before, at = 0, 0
    for c in sorted(table):
        if c > at:
            yield 2, c - at, []
        weights, at = table[c], c + 1
        difference = weights[0] - before if len(weights) == 1 else None
        if difference in (0, 1):
            yield 1 - difference, 1, []
        else:
            yield 3, len(weights), weights
        before = weights[-1] if weights else before


def packed(table):
    joined = []
    for kind, n, weights in steps(table):
        if joined and joined[-1][0] == kind and kind < 3:
            joined[-1] = (kind, joined[-1][1] + n, [])
        else:
            joined.append((kind, n, weights))
    out, before = bytearray(), 0
    for kind, n, weights in joined:
        out += number(n << 2 | kind)
        before += n if kind == 0 else 0
        for weight in weights:
            difference = weight - before
            out += number(abs(difference) << 1 | (difference < 0))
            before = weight
    return bytes(out)


def source(table, name, what, comes_from):
    text = base64.b64encode(packed(table)).decode()
    lines = "\n".join(f'    "{text[i:i + COLUMNS - 6]}"' for i in range(0, len(text), COLUMNS - 6))
    return f"""// SPDX-License-Identifier: Apache-2.0
// {what}
// Written by tools/collations/derive.py, which says how to read it, from {comes_from}:
// data of Unicode, Inc., under the terms of UNICODE-LICENSE.txt beside this file. {len(table)} code points.
#include "runtime/collation/packed_weights.h"

namespace quern {{

// clang-format off
const std::string_view {name} =
{lines};
// clang-format on

}}  // namespace quern
"""


TABLES = (
    ("weights_general.cc", "kPackedGeneral", general, "general_ci: BMP characters that do not weigh what they are.",
     "UnicodeData.txt and DerivedAge.txt 15.0.0"),
    ("weights_uca400.cc", "kPackedUca400", uca400, "unicode_ci: primary weights of BMP characters.",
     "allkeys.txt 4.0.0"),
    ("weights_uca520.cc", "kPackedUca520", uca520, "unicode_520_ci: primary weights, at most 8 of a character.",
     "allkeys.txt 5.2.0"),
    ("weights_uca900.cc", "kPackedUca900", uca900, "0900_ai_ci: primary weights, at most 8 of a character.",
     "allkeys.txt 9.0.0"),
)


def main():
    parser = argparse.ArgumentParser(description="Derives the tables of weights of collations.")
    for name in SHA256:
        parser.add_argument("--" + name.replace("_", "-"), required=True, metavar="FILE")
    parser.add_argument("--to", required=True, metavar="FOLDER", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="write nothing; compare with what is there")
    arguments = parser.parse_args()
    wrong = []
    for file, name, derive, what, comes_from in TABLES:
        text = source(derive(vars(arguments)), name, what, comes_from)
        path = arguments.to / file
        if not arguments.check:
            path.write_text(text)
        elif not path.is_file() or path.read_text() != text:
            wrong.append(str(path))
    if wrong:
        sys.exit(f"derive.py: error: files that differ from what is derived: {', '.join(wrong)}; accepted: none")


if __name__ == "__main__":
    main()
