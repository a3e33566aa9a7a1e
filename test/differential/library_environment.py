# SPDX-License-Identifier: Apache-2.0
"""The environment in which a Python process can load a library that was built with a sanitizer."""
import os
import struct
import subprocess

# By the symbol that a library built with a sanitizer wants: what must be in the process before it, in the names of GCC
# and of Clang.
_SANITIZERS = ((b"__asan_init", "libasan.so", "libclang_rt.asan-x86_64.so"),
               (b"__tsan_init", "libtsan.so", "libclang_rt.tsan-x86_64.so"))


_SANITIZER_STATUS = 99  # of a process that a sanitizer ends; its own default is 1, as that of a failure which was
                        # reported


def _dynamic_names(content):
    """The names of an ELF file's dynamic section and symbols. (The whole file has more: LLVM's own literals name every
    sanitizer.)"""
    SHT_DYNSYM = 11
    (first,), (size, num_sections) = struct.unpack_from("<Q", content, 0x28), struct.unpack_from("<HH", content, 0x3A)
    sections = [struct.unpack_from("<IIQQQQI", content, first + number * size) for number in range(num_sections)]
    strings = next(section[6] for section in sections if section[1] == SHT_DYNSYM)
    offset, num_bytes = sections[strings][4:6]
    return content[offset:offset + num_bytes].split(b"\0")


def environment_for(library):
    """The environment of a Python that can load the library: a sanitizer's runtime comes first, and does not count
    Python's own leaks."""
    environment = dict(os.environ, PYTHONMALLOC="malloc")
    with open(library, "rb") as file:
        content = file.read()
    names = _dynamic_names(content)
    for symbol, of_gcc, of_clang in _SANITIZERS:
        if symbol not in names:
            continue
        compiler, name = ((("gcc", "g++"), of_gcc)
                          if of_gcc.encode() + b"." in content else (("clang-22", "clang"), of_clang))
        runtime = next(filter(os.path.isfile, (_file_of(command, name) for command in compiler)), None)
        if runtime:
            environment["LD_PRELOAD"] = os.path.realpath(runtime)
        for options, first in (("ASAN_OPTIONS", "detect_leaks=0"), ("UBSAN_OPTIONS", "halt_on_error=1"),
                               ("TSAN_OPTIONS", "halt_on_error=1")):
            environment[options] = f"{first}:exitcode={_SANITIZER_STATUS}:" + os.environ.get(options, "")
        return environment
    return dict(os.environ)


def _file_of(compiler, name):
    try:
        return subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""
