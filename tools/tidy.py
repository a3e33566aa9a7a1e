# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over files of the release build; tools/lint calls it.

    tidy.py all        every .cc file of the build
    tidy.py library    the same without test/ and bench/, in about half of the time
    tidy.py changed    what a change touches of the library: its .cc files, and for each of its headers one .cc file
                       that includes it

A change is everything that differs from QUERN_TIDY_BASE. Without that variable the change begins where the branch
left origin/main (or the branch that it follows); where that is the last commit itself, it begins at the commit
before. Files that are not committed belong to the change. Everything counts as changed where there is no history, and
where the change touches .clang-tidy. A changed header can cause a finding in a .cc file that nobody touched: the run
over all files, which tools/nightly does, finds that.

Ninja knows from the last build which files a .cc file includes. A file without findings leaves a stamp in build/lint,
which holds as long as the file and all that it includes of ours stay the same, so that a second run takes no time.
Precompiled headers are removed from the compile commands: clang-tidy reads each file as it is, and finds a missing
include.
Variables: QUERN_JOBS  processes at once; default: the number of cores."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

BUILD, STAMPS = pathlib.Path("build"), pathlib.Path("build/lint")
TIDY = "clang-tidy-22"
CONFIGURATIONS = {".clang-tidy", "test/.clang-tidy"}
NOT_LIBRARY = re.compile(r"(.*/)?(test|bench)/")
PCH = re.compile(r" -Winvalid-pch| -fpch-instantiate-templates"
                 r"| -Xclang (-include-pch|-include|-emit-pch|-fno-pch-timestamp)( -Xclang \S*cmake_pch\.\S*)?")
NOISE = re.compile(r"warnings? generated|^Suppressed|^Use -header-filter|Processing file")


def output_of(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout if result.returncode == 0 else None


def own_name(path, folder, root):
    """The name from the top of the repository of a file of ours; None for others and for what the build generates."""
    name = os.path.normpath(os.path.join(folder, path))
    inside = name.startswith(root + "/")
    name = name[len(root) + 1:]
    return name if inside and not name.startswith("build") else None


def compile_commands(root):
    """One for each .cc file of ours, which clang-tidy finds beside the stamps."""
    commands = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        name = own_name(entry["file"], entry["directory"], root)
        if name and name.endswith(".cc"):
            commands.setdefault(name, {**entry, "command": PCH.sub("", entry["command"])})
    (STAMPS / "compile_commands.json").write_text(json.dumps(list(commands.values())))
    return commands


def included_files(root, commands):
    """The files of ours that each .cc file includes, itself among them."""
    folder, deps, source = os.path.abspath(BUILD), {}, None
    for line in (output_of("ninja", "-C", str(BUILD), "-t", "deps") or "").splitlines():
        if line.startswith("    "):
            name = own_name(line.strip(), folder, root)
            if source is None:
                source = deps.setdefault(name, set()) if name else set()
            if name:
                source.add(name)
        else:
            source = None
    missing = [name for name in commands if name not in deps]
    if missing:
        print(f"tidy: what {len(missing)} files include is not known before they are built: {missing[0]}, ...",
              file=sys.stderr)
    return {name: deps.get(name, set()) | {name} for name in commands}


def base_commit():
    """The commit that a change is measured from; None where there is none."""
    given = os.environ.get("QUERN_TIDY_BASE")
    if given:
        base = output_of("git", "rev-parse", "--verify", "--quiet", given + "^{commit}")
        if base is None:
            sys.exit(f"tidy: error: no such commit: {given}; set QUERN_TIDY_BASE to one, or leave it unset")
        return base.strip()
    head = (output_of("git", "rev-parse", "HEAD") or "").strip()
    for branch in ("origin/main", "@{upstream}"):
        base = (output_of("git", "merge-base", "HEAD", branch) or "").strip()
        if base and base != head:
            return base
    return (output_of("git", "rev-parse", "--verify", "--quiet", "HEAD~1") or "").strip() or None


def changed_files():
    """What differs from the base; None: everything."""
    base = base_commit()
    if base is None:
        return None
    listed = (output_of("git", "diff", "--name-only", base),
              output_of("git", "ls-files", "--others", "--exclude-standard"))
    names = {name for names in listed for name in (names or "").splitlines()}
    print(f"tidy: {len(names)} files differ from {base[:12]}", file=sys.stderr)
    return None if names & {".clang-tidy"} else names


def touched(includes):
    """The changed .cc files, and as few others as see every changed header, those of few includes first."""
    changed = changed_files()
    if changed is None:
        return set(includes)
    chosen = set(includes) & changed
    for header in sorted(changed - set(includes)):
        users = [name for name, files in includes.items() if header in files]
        if users and not chosen & set(users):
            stem = pathlib.Path(header).stem
            chosen.add(min(users, key=lambda name: (pathlib.Path(name).stem != stem, len(includes[name]), name)))
    return chosen


def checksum(common, files):
    digest = hashlib.sha256(common.encode())
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + pathlib.Path(name).read_bytes())
    return digest.hexdigest()


def tidy(name, stamp):
    """What clang-tidy says of a file; "" where it is clean."""
    if stamp.exists():
        return ""
    command = [TIDY, "-p", str(STAMPS), "--quiet", name]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode == 0:
        stamp.touch()
        return ""
    lines = [line for line in result.stdout.splitlines() if not NOISE.search(line)]
    return "\n".join(lines) or f"{name}: clang-tidy ended with status {result.returncode}"


def main():
    which = sys.argv[1] if len(sys.argv) == 2 else ""
    if which not in ("all", "library", "changed"):
        sys.exit("tidy: error: unknown argument; accepted: all, library, changed")
    if not (BUILD / "compile_commands.json").exists():
        sys.exit("tidy: error: no build/compile_commands.json: run cmake --preset release")
    STAMPS.mkdir(parents=True, exist_ok=True)
    root = os.getcwd()
    commands = compile_commands(root)
    includes = included_files(root, commands)
    if which != "all":
        includes = {name: files for name, files in includes.items() if not NOT_LIBRARY.match(name)}
    names = touched(includes) if which == "changed" else set(includes)
    common = output_of(TIDY, "--version") + "".join(pathlib.Path(name).read_text() for name in sorted(CONFIGURATIONS))
    stamps = {name: STAMPS / checksum(common + commands[name]["command"], includes[name]) for name in names}
    # Large files first, so that none is left for the end.
    order = sorted(names, key=lambda name: -os.path.getsize(name))
    num_clean = sum(stamp.exists() for stamp in stamps.values())
    print(f"tidy: {len(order)} of {len(includes)} files, {num_clean} of them known to be clean", file=sys.stderr)
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("QUERN_JOBS") or os.cpu_count())) as pool:
        findings = [text for text in pool.map(lambda name: tidy(name, stamps[name]), order) if text]
    print("\n".join(findings), end="\n" if findings else "")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
