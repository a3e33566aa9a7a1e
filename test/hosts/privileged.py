# SPDX-License-Identifier: Apache-2.0
"""privileged.py CC SOURCE_ROOT BUILD_ROOT: a set-user-ID program on the library ignores what its user's environment
says of files and code, and the same program without that bit does not. Needs root."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

NOBODY = 65534

cc, source, build = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
inputs = source / "test/hosts/Inputs"


def run(program, folder, **environment):
    """What it prints, and the files that are in the folder afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    ran = subprocess.run([program], env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment}, user=NOBODY,
                         group=NOBODY, extra_groups=[], capture_output=True, text=True, timeout=600)
    return ran.stdout.splitlines(), sorted(p.name for p in folder.rglob("*") if p.is_file())


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found}; expected: {expected}")


with tempfile.TemporaryDirectory(prefix="quern-privileged-", dir="/tmp") as name:
    here = pathlib.Path(name)
    here.chmod(0o755)
    shutil.copy(build / "lib/libquern.so.2", here / "libquern.so.2")
    collector, plain, privileged = here / "collector.so", here / "plain", here / "privileged"
    subprocess.run([cc, "-shared", "-fPIC", inputs / "collector.c", "-o", collector], check=True)
    subprocess.run([cc, "-I", source / "hosts/c", inputs / "privileged_host.c", here / "libquern.so.2",
                    f"-Wl,-rpath,{here}", "-o", plain], check=True)
    shutil.copy(plain, privileged)
    for path in here.iterdir():
        path.chmod(0o755)
    privileged.chmod(0o4755)
    files = here / "files"
    for version in range(50, 100):
        data = here / f"icu/icudt{version}l/coll"
        data.mkdir(parents=True)
        (data / "ucadata.icu").write_text("no data of ICU")

    if run(plain, files, QUERN_CACHE="off")[0] != ["compiled"]:
        print("skipped: no ICU in this build")
        sys.exit(0)
    vtune = {"QUERN_CACHE": "off", "QUERN_JIT_PROFILE": "vtune", "INTEL_JIT_PROFILER64": str(collector)}
    check("collector of a plain program", run(plain, files, **vtune)[0], ["collector loaded", "compiled"])
    if os.statvfs(here).f_flag & os.ST_NOSUID:
        print("skipped: the file system ignores the set-user-ID bit")
        sys.exit(0)
    check("collector", run(privileged, files, **vtune), (["compiled"], []))
    icu = {"QUERN_CACHE": "off", "ICU_DATA": str(here / "icu")}
    check("data of ICU in a plain program", run(plain, files, **icu)[0] == ["compiled"], False)
    check("data of ICU", run(privileged, files, **icu), (["compiled"], []))
    for way in ({"QUERN_DUMP": f"plan,ir:{files}/dumped"},
                {"QUERN_CACHE": "off", "QUERN_JIT_PROFILE": "jitdump", "JITDUMPDIR": str(files)},
                {"QUERN_CACHE_DIR": f"{files}/kernels"}, {"XDG_CACHE_HOME": f"{files}/cache"},
                {"QUERN_CAPTURE": f"{files}/captures"}):  # fmt: skip
        if "QUERN_CAPTURE" not in way and not run(plain, files, **way)[1]:
            sys.exit(f"a plain program left no files: {way}; expected: some")
        check(f"privileged, {way}", run(privileged, files, **way), (["compiled"], []))
print("privileged: the environment is ignored")
