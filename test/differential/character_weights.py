# SPDX-License-Identifier: Apache-2.0
"""Writes Inputs/character_weights.txt: the weights of 1,741 characters in three versions of the default table of the
Unicode Collation Algorithm.

    character_weights.py ALLKEYS_4.0.0 ALLKEYS_5.2.0 ALLKEYS_9.0.0 > Inputs/character_weights.txt

The tables are Unicode's allkeys.txt of those versions (plain, or .gz). A line of the result is a code point and its
primary weights in each, joined by '.'; 0 where all are zero, - where the table does not have it:

    00DF 0FEA.0FEA 10B3.10B3 1E71.1E71

collation_oracle.py reads it. It shares nothing with the generator of the library's own tables.
"""
import gzip
import re
import sys

_RANGES = ((0x0000, 0x017F), (0x0180, 0x01BF), (0x01C4, 0x01F5), (0x0250, 0x02AD), (0x0300, 0x0345), (0x0370, 0x03D7),
           (0x0400, 0x045F), (0x0460, 0x0481), (0x05D0, 0x05EA), (0x0621, 0x063A), (0x0E01, 0x0E10), (0x0E40, 0x0E44),
           (0x1100, 0x1112), (0x1161, 0x1175), (0x11A8, 0x11C2), (0x1E00, 0x1E99), (0x1E9E, 0x1E9E), (0x1EA0, 0x1EF9),
           (0x1F00, 0x1F07), (0x2000, 0x2015), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x2064), (0x20AC, 0x20AC),
           (0x2100, 0x2102), (0x2126, 0x212B), (0x2150, 0x2156), (0x2460, 0x2465), (0x24B6, 0x24BA), (0x24D0, 0x24D4),
           (0x3000, 0x3000), (0x3041, 0x3094), (0x3099, 0x30FE), (0x32C9, 0x32C9), (0x3363, 0x3363), (0x337F, 0x337F),
           (0x33FE, 0x33FE), (0xF900, 0xF903), (0xFB00, 0xFB06), (0xFDFA, 0xFDFA), (0xFE0F, 0xFE0F), (0xFEFF, 0xFEFF),
           (0xFF01, 0xFF5E), (0xFF66, 0xFF9F), (0xFFFC, 0xFFFD), (0x10400, 0x10405), (0x10428, 0x1042D),
           (0x1D400, 0x1D403), (0x1F468, 0x1F46A), (0x1F600, 0x1F605), (0x2F800, 0x2F804), (0xE0001, 0xE0001),
           (0xE0061, 0xE0064), (0xE0100, 0xE0101))
_LINE = re.compile(r"^([0-9A-F]+)\s*;\s*((?:\[[.*][^\]]*\])+)")


def code_points():
    return [code for first, last in _RANGES for code in range(first, last + 1)]


def _read(path):
    """Code point -> primary weights, of entries of one character."""
    weights = {}
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        for line in file:
            if match := _LINE.match(line):
                weights[int(match[1], 16)] = [element[1:5] for element in re.findall(r"\[(.[0-9A-F]{4})", match[2])]
    return weights


def _text(weights):
    if weights is None:
        return "-"
    return ".".join(weight for weight in weights if weight != "0000") or "0"


def main():
    tables = [_read(path) for path in sys.argv[1:4]]
    print("# Primary weights of characters in versions 4.0.0, 5.2.0 and 9.0.0 of Unicode's default collation table; "
          "character_weights.py")
    print("# wrote it. Unicode data: LICENSE-UNICODE.txt.")
    for code in code_points():
        texts = [_text(table.get(code)) for table in tables]
        if texts != ["-"] * 3:
            print(f"{code:04X}", *texts)


if __name__ == "__main__":
    main()
