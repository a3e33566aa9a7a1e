#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles IR templates to bitcode, prunes and checks them, and embeds them as a C++ array.

    embed_templates.py --clang CLANG --opt OPT --nm NM --source-root DIR --bitcode-dir DIR --output FILE.cc

Clang compiles a template without running passes (so that nothing is decided before its holes are filled). Then it is
pruned: always-inline functions are inlined, dead ones dropped, allocas promoted. Codegen links hole bodies into what
remains. This is done once per architecture, because type layouts are the same on all of them but data layouts,
intrinsics and attributes are not. The templates of x86-64, on which kernels run, are compiled a second time with source
lines for profilers and debuggers: line tables alone, which leave the code unchanged.

These checks make a broken template fail the build rather than a query: every undefined symbol is a hole of holes.def or
an allowed runtime call; every defined one is an entry point or a block; every hole is used by some template; the module
verifies (opt does that).
"""

import argparse
import pathlib
import re
import subprocess
import sys

ARCHITECTURES = {"x86-64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
TEMPLATES = ["join", "aggregate", "sort", "filter", "map", "blocks", "filter_blocks", "lane_blocks"]
PRUNE = ("function(lower-expect),always-inline,globaldce,"
         "function(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
         "loop-mssa(loop-rotate,licm),loop(loop-unroll-full),early-cse<memssa>,simplifycfg),verify")
# Hosted, because a freestanding compilation turns an 8-byte memcmp into a library call; without the headers of a C
# library, because other architectures have none here, and Clang's own stdint.h and stddef.h suffice. No contraction: a
# multiplication and an addition that were one instruction here and two in the generic kernel would differ in their last
# bit.
FLAGS = ["-std=c++20", "-O2", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", "-ffp-contract=off",
         "-fno-exceptions", "-fno-rtti", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-ident",
         "-fno-discard-value-names", "-fno-omit-frame-pointer", "-nostdlibinc", "-Wno-builtin-macro-redefined",
         "-U__STDC_HOSTED__", "-D__STDC_HOSTED__=0", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-I.",
         "-DQUERN_TEMPLATE"]
# Names of files are relative to the source root, so that the bitcode does not depend on where that is.
LINE_FLAGS = ["-gline-tables-only", "-fdebug-compilation-dir=.", "-ffile-prefix-map=./="]
LINE_ARCHITECTURES = {"x86-64"}
RUNTIME_CALLS = r"quern_rt_\w+|quern_hash_secret|memcpy|memmove|memset|memcmp|bcmp"


def run(command, **arguments):
    result = subprocess.run(command, capture_output=True, text=True, **arguments)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def hole_names(source_root):
    text = (source_root / "ir-templates/holes.def").read_text()
    return {"quern_hole_" + name for name in re.findall(
        r"^QUERN_(?:(?:TUPLE|JOIN)_CONSTANT\(\w+|(?:TUPLE|JOIN|SORT|OTHER)_HOLE\(\w+, \w+), (\w+)[,)]", text, re.M)}


def symbols(nm, path, flag):
    return {line.split()[-1] for line in run([nm, flag, path]).splitlines() if line.strip()}


def check(nm, path, holes):
    undefined = symbols(nm, path, "--undefined-only")
    for name in (name for name in undefined - holes if not re.fullmatch(RUNTIME_CALLS, name)):
        sys.exit(f"{path}: undefined symbol that is neither a hole nor a runtime call: {name}; "
                 "accepted: holes.def, runtime_calls.h")
    for name in symbols(nm, path, "--defined-only"):
        if not re.fullmatch(r"quern_(join|aggregate|sort|filter|map|block|outlined|constant)_\w+", name):
            sys.exit(f"{path}: defined symbol that is neither an entry point nor a block: {name}; "
                     "accepted: quern_<operator>_<step>, quern_block_*, quern_outlined_*, quern_constant_*")
    return undefined & holes


def compile_template(options, name, arch, triple, line_flags=(), suffix=""):
    raw = options.bitcode_dir / f"{name}.{arch}{suffix}.raw.bc"
    pruned = options.bitcode_dir / f"{name}.{arch}{suffix}.bc"
    run([options.clang, f"--target={triple}", *FLAGS, *line_flags, f"ir-templates/{name}.cc", "-o", raw],
        cwd=options.source_root)
    run([options.opt, f"-passes={PRUNE}", raw, "-o", pruned])
    raw.unlink()
    return pruned


def array_text(symbol, data):
    lines = [", ".join(str(byte) for byte in data[i:i + 32]) for i in range(0, len(data), 32)]
    return f"alignas(8) const unsigned char {symbol}[] = {{\n" + ",\n".join(lines) + "};\n"


def embed(name, arch, path, suffix=""):
    """The array that holds a file, and its row in a table of templates."""
    symbol = f"k_{name}_{arch.replace('-', '_')}{suffix}"
    return array_text(symbol, path.read_bytes()), f'    {{"{name}", "{arch}", {symbol}, sizeof({symbol})}},\n'


def table_text(symbol, entries):
    return f"const EmbeddedTemplate {symbol}[] = {{\n" + "".join(row for _, row in entries) + "};\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("clang", "opt", "nm"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("source-root", "bitcode-dir", "output"):
        parser.add_argument(f"--{name}", required=True, type=lambda text: pathlib.Path(text).resolve())
    options = parser.parse_args()
    options.bitcode_dir.mkdir(parents=True, exist_ok=True)

    holes = hole_names(options.source_root)
    plain, with_lines = [], []
    for arch, triple in ARCHITECTURES.items():
        used = set()
        for name in TEMPLATES:
            path = compile_template(options, name, arch, triple)
            used |= check(options.nm, path, holes)
            plain.append(embed(name, arch, path))
            if arch in LINE_ARCHITECTURES:
                with_lines.append(
                    embed(name, arch, compile_template(options, name, arch, triple, LINE_FLAGS, ".lines"), "_lines"))
        if holes - used:
            sys.exit(f"holes that no template uses: {', '.join(sorted(holes - used))}; accepted: none")
    options.output.write_text(
        '#include "codegen/llvm/template_library.h"\n\nnamespace quern {\nnamespace {\n' +
        "".join(array for array, _ in plain + with_lines) +
        table_text("kTemplates", plain) + table_text("kTemplatesWithLines", with_lines) + "}  // namespace\n"
        "std::span<const EmbeddedTemplate> EmbeddedTemplates() { return kTemplates; }\n"
        "std::span<const EmbeddedTemplate> EmbeddedTemplatesWithLines() { return kTemplatesWithLines; }\n"
        "}  // namespace quern\n")


if __name__ == "__main__":
    main()
