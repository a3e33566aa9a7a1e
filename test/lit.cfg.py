# SPDX-License-Identifier: Apache-2.0
# How the tests run. A test is a .test or .c file whose RUN lines are shell commands; it passes when all of them end
# with 0.
# In RUN lines:
#   %seed                    what random tests begin with
#   %quern                   the command line tool, in a cross build under the emulator
#   %tools                   the folder of the built programs
#   %python                  Python of build/venv           %cc, %cxx    the compilers of this build
#   %src_root, %build_root   the two top folders            FileCheck, not, llvm-objdump, ... are those of LLVM 22
# and lit's own %s (the test), %S (its folder), %t (a name for temporary files). A path stands as one quoted word, so
# that a clone may lie in any folder; write it outside of quotes: %t/*.csv, --out=%t, never "%t". For
# REQUIRES: the names in available_features below. `lit -Dlong=1` also runs the tests that take long.
import os
import shlex
import shutil
import sys

sys.path.insert(0, os.path.dirname(__file__))
import quoted_paths

config.name = "quern"
config.test_format = quoted_paths.QuotedPaths()
config.suffixes = [".test", ".c"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.build_root, "test")

tools = os.path.join(config.build_root, "bin")
config.substitutions += [("%quern", shlex.join([*filter(None, config.emulator), os.path.join(tools, "quern")]))]
config.substitutions += [(name, shlex.quote(path)) for name, path in [
    ("%python", os.path.join(config.venv, "bin", "python")),
    ("%venv_bin", os.path.join(config.venv, "bin")),
    ("%tools", tools),
    ("%src_root", config.source_root),
    ("%build_root", config.build_root),
    ("%cxx", config.cxx_compiler),
    ("%cc", config.c_compiler),
]]

# A run is like the one before it: tests that draw take the seed from here, `%seed` or QUERN_TEST_SEED; in C++ by
# test/unit/seed.h. tools/nightly sets another one each time.
seed = os.environ.get("QUERN_TEST_SEED") or "1"
config.substitutions.append(("%seed", seed))

# Nothing of the person who runs the tests may change a result: no QUERN_* variable, no cache or profile of their home.
for name in [name for name in config.environment if name.startswith("QUERN_")]:
    del config.environment[name]
config.environment["PATH"] = os.pathsep.join([config.llvm_tools, config.environment.get("PATH", os.environ["PATH"])])
for variable, folder in [("HOME", "home"), ("XDG_CACHE_HOME", "cache"), ("XDG_CONFIG_HOME", "config")]:
    config.environment[variable] = os.path.join(config.test_exec_root, folder)
config.environment["QUERN_TEST_SEED"] = seed
config.environment["QUERN_HASH_SEED"] = seed
# What a test compiles, it compiles: no kernel of an earlier run or of another test. Tests of the disk cache have
# folders of their own.
config.environment["QUERN_CACHE"] = "off"
# Plans are those of a machine that nobody has tuned.
config.environment["QUERN_PROFILE"] = "off"
config.environment["LC_ALL"] = "C.UTF-8"
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"

# The libraries of Debian and of the wheel are not built with sanitizers, so that containers that cross over look
# overflown.
if "address" in config.sanitizers:
    config.available_features.add("asan")
    config.environment["ASAN_OPTIONS"] = "detect_container_overflow=0:" + os.environ.get("ASAN_OPTIONS", "")
    config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1:" + os.environ.get("UBSAN_OPTIONS", "")
if "thread" in config.sanitizers:
    config.available_features.add("tsan")
if config.have_cli:
    config.available_features.add("cli")
# What tools/check builds of hosts/python; what bench/peers sets up.
if os.path.isdir(os.path.join(config.build_root, "python-site", "quern")):
    config.available_features.add("python-package")
if os.path.isfile(os.path.join(config.build_root, "peers-venv", "bin", "python")):
    config.available_features.add("peers")
# What bench/hosts/spark/run --build sets up, and the Java that Spark needs.
spark_venv = os.path.join(config.build_root, "spark-venv")
config.substitutions.append(("%spark_python", shlex.quote(os.path.join(spark_venv, "bin", "python"))))
if os.path.isfile(os.path.join(spark_venv, "quern-stamp")) and shutil.which("java"):
    config.available_features.add("spark")
# The extension, where PostgreSQL's headers were there when it was built, and the server that loads it.
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "postgres"))
import cluster
extension = os.path.join(config.build_root, "lib", "postgres", "quern.so")
if os.path.isfile(extension) and cluster.bindir(extension):
    config.available_features.add("postgres")
    # The statements of PostgreSQL's regression suite, which tools/setup --postgres fetches where it can.
    import regress
    if regress.has_package(cluster.version(extension), os.path.join(config.source_root, "build", "postgres-suite")):
        config.available_features.add("postgres-suite")
if os.geteuid() == 0:
    config.available_features.add("root")
# Debian's package locales: what localedef makes another locale of.
if os.path.isfile("/usr/share/i18n/locales/tr_TR"):
    config.available_features.add("locale-sources")
if lit_config.params.get("long"):
    config.available_features.add("long")
config.available_features.add("host=" + config.host_arch)
config.available_features.update(target.lower() + "-registered-target" for target in config.llvm_targets)
