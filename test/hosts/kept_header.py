# SPDX-License-Identifier: Apache-2.0
"""kept_header.py: the declarations of quern.h, kept from one minor version to the next.

    kept_header.py make HEADER                  prints the header to be kept: run it at a release
    kept_header.py check HEADER KEPT LIBRARY    whether a host that was compiled with KEPT runs with this library

What a host was compiled with is in its machine code: the numbers of enumerations, the offsets of members, the types of
parameters, the names of functions. New members stand behind the kept ones, and only where a struct has its size in it
or is owned by the library."""

import pathlib
import re
import subprocess
import sys
import tempfile

# The functions that exist once per operator, and their types, which jobs replace.
PER_OPERATOR = re.compile(r"\bquern_(join|appender|prober|aggregate(?!_function\b)|group|sort|merge|filter)")
GROWS_WITHOUT_SIZE = {"quern_result"}
CC = ("cc", "-std=c11", "-Wall", "-Wextra", "-Werror")


def declarations(header: str) -> list[str]:
    """The text between two semicolons outside braces, without comments and preprocessor."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    text = re.sub(r'^(#.*|extern "C" \{|\})$', "", text, flags=re.MULTILINE)
    found, begin, depth = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if char == ";" and depth == 0:
            lines = [line.rstrip() for line in text[begin:at].splitlines()]
            found.append("\n".join(line for line in lines if line))
            begin = at + 1
    return found


def kept_text(header: str) -> str:
    macros = re.findall(r"^#define QUERN_(?:ABI_VERSION|API).*$", header, flags=re.MULTILINE)
    kept = [text for text in declarations(header) if not PER_OPERATOR.search(text)]
    includes = [f"#include <{name}.h>" for name in ("stdbool", "stddef", "stdint")]
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0",
        " * The declarations of an earlier quern.h, made by test/hosts/kept_header.py: never edit them. */",
        "/* clang-format off */",
        "#ifndef QUERN_H_",
        "#define QUERN_H_",
        *includes,
        *macros,
        *(text + ";" for text in kept),
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def structs(kept: list[str]) -> dict[str, list[str]]:
    found = {}
    for text in kept:
        body = re.fullmatch(r"typedef struct (\w+) \{(.*)\} \1", text, flags=re.DOTALL)
        if body is None:
            continue
        # "uint64_t rows, batches", "char text[1020]", "bool (*reserve)(void* host, uint64_t bytes)"
        members = []
        for member in body[2].replace("\n", " ").split(";")[:-1]:
            function = re.search(r"\(\*(\w+)\)", member)
            names = [function[1]] if function else [re.search(r"(\w+)(\[\d+\])?$", part.strip())[1]
                                                    for part in member.split(",")]  # fmt: skip
            members += names
        found[body[1]] = members
    return found


def compiled(source: str, folder: str, *options: str) -> subprocess.CompletedProcess:
    path = pathlib.Path(folder, "check.c")
    path.write_text(source)
    return subprocess.run([*CC, path, *options], capture_output=True, text=True, check=False)


def numbers_of(header: str, kept: list[str], folder: str) -> dict[str, int]:
    """The numbers that a compiler takes from a header, for what the kept one declares."""
    wanted = [name for text in kept if text.startswith("typedef enum") for name in re.findall(r"\bQUERN_\w+", text)]
    for struct, members in structs(kept).items():
        wanted.append(f"sizeof({struct})")
        for member in members:
            wanted += [f"offsetof({struct}, {member})", f"sizeof((({struct}*)0)->{member})"]
    prints = "".join(f'  printf("%lld %s\\n", (long long)({text}), "{text}");\n' for text in wanted)
    source = f'#include <stdio.h>\n#include "{header}"\nint main(void) {{\n{prints}}}\n'
    program = pathlib.Path(folder, "check")
    built = compiled(source, folder, "-o", str(program))
    if built.returncode != 0:
        sys.exit(f"{header} lacks what was kept:\n{built.stderr}")
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    return {text: int(number) for number, text in (line.split(" ", 1) for line in lines)}


def check(header: str, kept_header: str, library: str) -> list[str]:
    kept = declarations(pathlib.Path(kept_header).read_text())
    with tempfile.TemporaryDirectory() as folder:
        old, new = (numbers_of(str(pathlib.Path(path).resolve()), kept, folder) for path in (kept_header, header))
        # C accepts a second declaration of the same types.
        again = ";\n".join(text for text in kept if text.startswith(("QUERN_API", "typedef")) and "{" not in text)
        source = f'#include "{pathlib.Path(header).resolve()}"\n{again};\n'
        redeclared = compiled(source, folder, "-fsyntax-only")
    grows = {f"sizeof({name})" for name, members in structs(kept).items()
             if "struct_size" in members or name in GROWS_WITHOUT_SIZE}  # fmt: skip
    errors = [f"{text}: {new[text]}; it was {number}" for text, number in old.items()
              if new[text] != number and not (text in grows and new[text] > number)]  # fmt: skip
    errors += [line for line in redeclared.stderr.splitlines() if "error:" in line]
    symbols = subprocess.run(["llvm-nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    exported = set(re.findall(r"\b(quern_\w+)@@", symbols.stdout))
    functions = [re.search(r"\b(quern_\w+)\(", text)[1] for text in kept if text.startswith("QUERN_API")]
    errors += [f"{name}: not exported" for name in functions if name not in exported]
    print(f"{len(functions)} functions, {len(old)} numbers")
    return errors


if __name__ == "__main__":
    if sys.argv[1] == "make":
        print(kept_text(pathlib.Path(sys.argv[2]).read_text()), end="")
    else:
        sys.exit("\n".join(check(*sys.argv[2:])) or 0)
