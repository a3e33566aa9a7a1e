# SPDX-License-Identifier: Apache-2.0
"""gdb_objects.py LIB READELF: the objects behind __jit_debug_descriptor are ELF files whose sections stand where the
code is.

Walks the list as a debugger does. Prints the spec of each kernel and its functions, as readelf finds them."""
import ctypes
import re
import subprocess
import sys
import tempfile

import kernels


class Entry(ctypes.Structure):
    pass


Entry._fields_ = [("next", ctypes.POINTER(Entry)), ("previous", ctypes.POINTER(Entry)), ("object", ctypes.c_void_p),
                  ("size", ctypes.c_uint64)]


class Descriptor(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("action", ctypes.c_uint32), ("relevant", ctypes.POINTER(Entry)),
                ("first", ctypes.POINTER(Entry))]


def objects(descriptor):
    entry = descriptor.first
    while entry:
        yield ctypes.string_at(entry.contents.object, entry.contents.size)
        entry = entry.contents.next


def readelf(program, data, *options):
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(data)
        file.flush()
        result = subprocess.run([program, *options, file.name], capture_output=True, text=True)
    kernels.check(result.returncode == 0 and not result.stderr, result.stderr)
    return result.stdout


def main():
    library, made = kernels.compile_all(sys.argv[1], QUERN_JIT_PROFILE="gdb")
    descriptor = Descriptor.in_dll(ctypes.CDLL(sys.argv[1]), "__jit_debug_descriptor")
    kernels.check(descriptor.version == 1 and descriptor.action == 0 and not descriptor.relevant, "descriptor")
    found = list(objects(descriptor))
    kernels.check(len(found) == len(made), len(found), "objects")
    for kernel, data in zip(made, reversed(found)):  # the last one is the first in the list
        text, = re.findall(r"\.text +PROGBITS +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+)",
                           readelf(sys.argv[2], data, "-S", "--wide"))
        address, size = (int(number, 16) for number in text)
        kernels.check_executable(address, size)
        print(kernel.text("spec"))
        print(*sorted(re.findall(r" FUNC +\w+ +\w+ +\d+ (quern_\w+)", readelf(sys.argv[2], data, "-s", "--wide"))))
        kernel.close()
    made.clear()
    library.clear_cache()
    kernels.check(not list(objects(descriptor)), "objects of kernels that are gone")


main()
