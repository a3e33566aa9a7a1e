# SPDX-License-Identifier: Apache-2.0
"""jit_dump.py LIB QUERN SOURCE_ROOT FOLDER: FOLDER/jit-PID.dump conforms to perf's specification of the format, and its
contents are right.

For each kernel prints its functions and the files that its source lines are in."""
import ctypes
import os
import pathlib
import struct
import sys

import kernels

CODE_LOAD, DEBUG_INFO = 0, 2
X86_64 = 62


def text_at(data, offset):
    end = data.index(b"\0", offset)
    return data[offset:end].decode(), end + 1


def check_header(data):
    magic, version, size, machine, padding, process, time, flags = struct.unpack_from("<4sIIIIIQQ", data)
    kernels.check(magic == b"DTiJ" and version == 1 and size == 40 and machine == X86_64, magic, version, size, machine)
    kernels.check(padding == 0 and process == os.getpid() and time > 0 and flags == 0, padding, process, time, flags)
    return size


def records(data):
    """(kind, body) of each; times do not go back."""
    offset, last = check_header(data), 0
    while offset < len(data):
        kind, size, time = struct.unpack_from("<IIQ", data, offset)
        kernels.check(size >= 16 and offset + size <= len(data) and time >= last, "record at", offset)
        yield kind, data[offset + 16:offset + size]
        offset, last = offset + size, time


def debug_info(body):
    """(address of the code, [(address, line, file)])."""
    address, count = struct.unpack_from("<QQ", body)
    offset, lines = 16, []
    for _ in range(count):
        at, line, _ = struct.unpack_from("<QII", body, offset)
        file, offset = text_at(body, offset + 16)
        lines.append((at, line, file))
    kernels.check(offset == len(body), "debug info ends at", offset)
    return address, lines


def code_load(body):
    """(index, name, address, bytes)."""
    process, _, virtual, address, size, index = struct.unpack_from("<IIQQQQ", body)
    name, offset = text_at(body, 40)
    kernels.check(process == os.getpid() and virtual == address and offset + size == len(body), name)
    return index, name, address, body[offset:]


def check_lines(lines, address, size, root):
    addresses = [at for at, _, _ in lines]
    kernels.check(addresses == sorted(set(addresses)) and address <= addresses[0] and addresses[-1] < address + size,
                  addresses)
    for _, line, file in lines:
        path = root / file
        kernels.check(path.is_file() and 0 < line <= len(path.read_text().splitlines()), file, line)


def check_marker(path):
    kernels.check(any(permissions == "r-xp" and mapped == str(path)
                      for _, _, permissions, mapped in kernels.mappings()),
                  f"no page of {path} is mapped executable")


def main():
    library, quern, root, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
    folder.mkdir(parents=True, exist_ok=True)
    library, made = kernels.compile_all(library, QUERN_JIT_PROFILE="jitdump", JITDUMPDIR=str(folder))
    path = folder.resolve() / f"jit-{os.getpid()}.dump"
    check_marker(path)
    pending, found = {}, {}
    for number, (kind, body) in enumerate(records(path.read_bytes())):
        kernels.check(kind in (CODE_LOAD, DEBUG_INFO), "record", kind)
        if kind == DEBUG_INFO:
            address, lines = debug_info(body)
            pending[address] = lines
            continue
        index, name, address, code = code_load(body)
        kernels.check(index == len(found), name, index)
        kernels.check_executable(address, len(code))
        kernels.check(code == ctypes.string_at(address, len(code)), name, "other bytes than in memory")
        kernels.check(address in pending, name, "without source lines before it")
        lines = pending.pop(address)
        check_lines(lines, address, len(code), root)
        found[name] = len(code), {file for _, _, file in lines}
    for kernel in made:
        spec = kernel.text("spec")
        mine = {name.removesuffix(f" [{spec}]"): what for name, what in found.items() if name.endswith(f" [{spec}]")}
        # Source lines leave the code as it is.
        kernels.check({name: size for name, (size, _) in mine.items()} == kernels.symbols_of(quern, spec), spec, mine)
        print(spec)
        print(*sorted(mine))
        print(*sorted(set().union(*(files for _, files in mine.values()))))


main()
