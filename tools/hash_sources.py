#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C++ file that identifies the sources of a build, as part of the key of kernels that are kept on disk.

    hash_sources.py --version VERSION --output FILE.cc SOURCE...

A kernel on disk must not outlive the generator that made it: a changed emitter, tuple layout or template generates
other code for the same spec, and the version alone does not change between two releases. The hash covers the contents
and names of all files, so two builds of the same sources share their kernels, wherever they are.
"""

import argparse
import hashlib
import os
import pathlib

TEXT = """// Made by tools/hash_sources.py.
#include "codegen/cache/build_identity.h"

namespace quern {{

std::string_view BuildIdentity() {{ return "quern={version} sources={digest}"; }}

}}  // namespace quern
"""


def digest_of(paths):
    digest = hashlib.blake2b(digest_size=16)
    root = os.path.commonpath(paths)
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in paths):
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("sources", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    arguments.output.write_text(TEXT.format(version=arguments.version, digest=digest_of(arguments.sources)))


if __name__ == "__main__":
    main()
