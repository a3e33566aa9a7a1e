# SPDX-License-Identifier: Apache-2.0
"""Rules about source files that no compiler checks: sources.py RULE SOURCE_ROOT. Prints each break of the rule; exit
status 1 if any.

The rules are the functions below. Which room may include which is in rooms.py."""

import pathlib
import re
import subprocess
import sys

CODE = {".h", ".hpp", ".cc", ".c", ".def"}
PUBLIC_HEADERS = ("quern.h", "quern.hpp")
ROOMS = ("runtime", "codegen", "ir-templates", "tools", "bench", "test", "hosts")
MAX_LINES = 900
MAX_COLUMNS = 120
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)

# System headers that code for bitcode may include: headers without functions of their own, and memcpy and friends.
TEMPLATE_SYSTEM_HEADERS = {
    *("stddef.h", "stdint.h", "stdbool.h", "string.h"),
    *("cstddef", "cstdint", "cstring", "type_traits", "limits", "bit", "concepts"),
}


def source_files(root):
    """Files that git tracks or would track; everything outside build folders where there are none."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True,
                            text=True)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.splitlines()
    else:
        names = [p.relative_to(root).as_posix() for p in root.rglob("*")]
        names = [n for n in names if not n.startswith(("build", ".git/"))]
    return sorted({root / n for n in names if (root / n).is_file()})


def includes(path):
    return [(bracket == '"', name) for bracket, name in INCLUDE.findall(path.read_text())]


def code_files(root, *rooms):
    return [p for p in source_files(root) if p.suffix in CODE and p.relative_to(root).parts[0] in (rooms or ROOMS)]


def includes_from_the_root(root):
    """Includes are named from the root of the repository. Which room may include which: rooms.py."""
    for path in code_files(root):
        for quoted, name in includes(path):
            if quoted and name.startswith(("./", "../")):
                yield f"{path.relative_to(root)}: include that is not named from the repository root: {name}"


def includes_of_templates(root):
    """Templates include, directly or not, only plain headers: their own, POD headers of runtime/, and a few of the
    system. Templates are all of ir-templates/ but generic/."""
    accepted = ", ".join(sorted(TEMPLATE_SYSTEM_HEADERS))
    for start in code_files(root, "ir-templates"):
        where = start.relative_to(root)
        if where.parts[1] == "generic":
            continue
        seen, todo = set(), [start]
        while todo:
            path = todo.pop()
            for quoted, name in includes(path):
                if quoted and (root / name).is_file():
                    if not name.startswith(("runtime/", "ir-templates/")):
                        yield (f"{where}: include by way of {path.relative_to(root)}: {name}; accepted: runtime/, "
                               "ir-templates/")
                    elif name not in seen:
                        seen.add(name)
                        todo.append(root / name)
                elif not quoted and name not in TEMPLATE_SYSTEM_HEADERS:
                    yield f"{where}: include by way of {path.relative_to(root)}: <{name}>; accepted: {accepted}"
                elif quoted:
                    yield f"{where}: include by way of {path.relative_to(root)}: {name}; no such file in the repository"


def includes_of_public_headers(root):
    """A host's compiler needs neither Abseil nor LLVM nor internal headers."""
    for path in code_files(root, "hosts"):
        if path.name not in PUBLIC_HEADERS:
            continue
        for _, name in includes(path):
            if name.startswith(("absl/", "llvm/", "llvm-c/", "codegen/", "runtime/", "ir-templates/", "tools/")):
                yield (f"{path.relative_to(root)}: public header that includes {name}; accepted: the system's headers "
                       "and hosts/")


def spdx(root):
    """The licence stands in the first line, or in the second below #!."""
    for path in source_files(root):
        script = not path.suffix and path.read_bytes()[:2] == b"#!"
        if (path.suffix in CODE | {".py", ".cmake", ".sh"} or path.name in ("CMakeLists.txt", "lit.site.cfg.py.in")
                or script):
            if "SPDX-License-Identifier: Apache-2.0" not in "".join(path.read_text().splitlines()[:2]):
                yield (f"{path.relative_to(root)}: no SPDX line at the head; 'SPDX-License-Identifier: Apache-2.0' as "
                       "a comment in line 1")


def size(root):
    """Files stay readable: lines per file, columns per line."""
    for path in source_files(root):
        if path.suffix not in CODE | {".py", ".cmake", ".rs"} and path.name != "CMakeLists.txt":
            continue
        lines = path.read_text().splitlines()
        if len(lines) > MAX_LINES:
            yield f"{path.relative_to(root)}: too many lines: {len(lines)}; at most {MAX_LINES}"
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_COLUMNS:
                yield f"{path.relative_to(root)}:{number}: line too long: {len(line)}; at most {MAX_COLUMNS} columns"


def comments_that_go_on(root):
    """No // comment ends with a backslash: it would take in the next line, and GCC warns of it."""
    for path in code_files(root):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.endswith("\\") and "//" in line.split('"')[0]:
                yield f"{path.relative_to(root)}:{number}: // comment that ends with a backslash"


BRACELESS_ASSERTION = re.compile(r"^\s*(else )?if \(.*\)\s+(EXPECT|ASSERT)_", re.MULTILINE)


def assertions_in_braces(root):
    """An assertion that depends on an if stands in braces: the macro holds an if of its own, and GCC warns of the else
    that belongs to either."""
    for path in code_files(root, "test"):
        text = path.read_text()
        for match in BRACELESS_ASSERTION.finditer(text):
            number = text.count("\n", 0, match.start(2)) + 1
            yield f"{path.relative_to(root)}:{number}: assertion after an if without braces"


# The file that may name the instruction, and those that may call PrefetchLine without a test of their own, because they
# are called only where the plan prefetches.
PREFETCH_INSTRUCTION = "runtime/base/prefetch_line.h"
PREFETCH_CALLERS = {
    "runtime/blocks/blocks.h": "the entry point prefetch_keys, which a plan without prefetch does not have",
    "runtime/aggregate/accumulators/distinct_set.h": "its caller's RowsToCome",
}


def prefetches(root):
    """Each prefetch follows a distance from the plan, so that prefetch=off stops it: through
    runtime/base/prefetch_line.h, with a type that WithPrefetch chose, PrefetchIf or RowsToCome."""
    instruction = re.compile(r"__builtin_prefetch|_mm_prefetch|_m_prefetch|\bprefetch(w|nta|t[012])\b|"
                             r"arm_prefetch|__pld")
    unchosen = re.compile(r"\bPrefetchLine<|\bPrefetchWith<")
    for path in code_files(root, "runtime", "ir-templates"):
        where = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = line.split("//")[0]
            if where == PREFETCH_INSTRUCTION:
                continue
            if instruction.search(code):
                yield f"{where}:{number}: prefetch instruction; accepted: the functions of {PREFETCH_INSTRUCTION}"
            is_chosen = "!= 0" in code or "return f.template operator()" in code
            if unchosen.search(code) and not is_chosen and where not in PREFETCH_CALLERS:
                yield (f"{where}:{number}: prefetch whatever the plan says; accepted: WithPrefetch, PrefetchIf, "
                       "RowsToCome")


# Files with plain locks in objects, and why a fork does no harm there.
PLAIN_LOCKS = {
    "runtime/base/fork_safety.h": "ForkSafeMutex and ForkSafeCondition themselves",
    "runtime/base/shared_work.h": "of one operator",
    "runtime/base/shared_work.cc": "of one call",
    "runtime/aggregate/key_dictionaries.h": "of one operator",
    "runtime/spill/tuple_blocks.h": "of one operator",
    "runtime/aggregate/hash_aggregate.h": "of one operator",
    "runtime/aggregate/local_groups.cc": "of one operator",
    "runtime/aggregate/local_groups.h": "of one operator",
    "runtime/aggregate/set_operation.h": "of one operator",
    "runtime/aggregate/spilled_groups.h": "of one operator",
    "runtime/join/build_side.cc": "of one operator",
    "runtime/join/build_side.h": "of one operator",
    "runtime/join/hash_join.cc": "of one operator",
    "runtime/join/hash_join.h": "of one operator",
    "hosts/postgres/threads.c": "of one node, in a process that does not fork",
    "runtime/join/table_builder.h": "of one operator",
    "runtime/join/spilled_build.cc": "of one operator",
    "runtime/join/spilled_build.h": "of one operator",
    "runtime/join/spilled_join.cc": "of one operator",
    "runtime/join/spilled_join.h": "of one operator",
    "runtime/observe/key_sampler.h": "of one operator",
    "hosts/c/jobs/pipeline_job.h": "of one job",
    "runtime/sort/local_rows.h": "of one operator",
    "runtime/sink/sink.h": "of one operator",
    "runtime/sort/sorted_rows.h": "of one operator",
    "runtime/sort/spilling/range_partitions.h": "of one operator",
    "runtime/sort/spilling/ranges_in_turn.h": "of one operator",
    "runtime/sort/spilling/spilled_sort.h": "of one operator",
    "runtime/spill/partitioned_tuples.h": "of one operator",
    "runtime/spill/loose_tuples.h": "of one operator",
    "runtime/sort/spilling/spilled_runs.h": "of one operator",
    "runtime/sort/spilling/spilling_rows.h": "of one operator",
    "runtime/spill/budget_with_reserve.cc": "of one job",
    "runtime/spill/budget_with_reserve.h": "of one job",
    "runtime/spill/io_threads.h": "of one job",
    "runtime/spill/memory_holders.cc": "of one job",
    "runtime/spill/memory_holders.h": "of one job",
    "runtime/spill/spill_context.cc": "of one job",
    "runtime/spill/spill_context.h": "of one job",
    "runtime/spill/spill_store.h": "of one job",
    "runtime/spill/spilled_rows.cc": "of one job",
    "runtime/spill/write_behind.cc": "of one job",
    "runtime/spill/write_behind.h": "of one job",
    "codegen/tuning/spill_tuner.cc": "of one run of the tuner",
    "codegen/base/log.cc": "made anew in a child: ForkReset::kLog",
    "hosts/c/examples/event_loop_example.c": "a host's own",
    "hosts/python/src/job.h": "of one call",
    "hosts/python/src/source.h": "of one call",
    "hosts/python/src/tuning.cc": "of one call",
    "hosts/python/src/workers.cc": "of one call",
}
FORK_SAFETY = "runtime/base/fork_safety.cc"


def forks(root):
    """What several jobs share survives a fork: their mutexes are ForkSafeMutex, what a first call makes is made within
    a NoFork, and one file has the handlers of fork."""
    lock = re.compile(r"\b(std::(recursive_|timed_|shared_)?\w*mutex|std::condition_variable(_any)?|std::once_flag|"
                      r"absl::Mutex|absl::once_flag|pthread_(mutex|rwlock|cond|spin)\w*_t)\b[^<*&(]*[;{=]")
    of_process = re.compile(r"^(static |inline |constinit |thread_local )*(std|absl)::|^\s+static ")
    made_once = re.compile(r"^\s+static (?!constexpr|thread_local)[^()\[\]]*(= new\b|= \[\]|= \{$)")
    for path in code_files(root, "runtime", "codegen", "hosts"):
        where = path.relative_to(root).as_posix()
        lines = [line.split("//")[0] for line in path.read_text().splitlines()]
        for number, line in enumerate(lines, 1):
            if where == FORK_SAFETY:
                continue
            if "pthread_atfork" in line:
                yield f"{where}:{number}: handler of fork; accepted: CallInForkedChild of runtime/base/fork_safety.h"
            if "new (&" in line:
                continue
            if lock.search(line) and of_process.search(line):
                yield f"{where}:{number}: lock of the process; accepted: ForkSafeMutex"
            elif lock.search(line) and where not in PLAIN_LOCKS:
                yield (f"{where}:{number}: lock in an object; accepted: ForkSafeMutex, or a reason in PLAIN_LOCKS of "
                       "test/style/sources.py")
            if made_once.search(line) and "NoFork no_fork" not in "".join(lines[max(number - 4, 0):number]):
                yield f"{where}:{number}: made by the first call; accepted: below a NoFork, at most three lines above"


ENVIRONMENT = "codegen/base/environment.cc"


def environment(root):
    """One file reads the environment, and knows when it is not to be trusted."""
    reads = re.compile(r"\b(secure_)?getenv\b|\b_*environ\b|\bAT_SECURE\b|\bissetugid\b")
    for path in code_files(root, "runtime", "codegen", "hosts", "tools", "ir-templates"):
        where = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if where != ENVIRONMENT and reads.search(line.split("//")[0]):
                yield f"{where}:{number}: reads the environment; accepted: the functions of codegen/base/environment.h"


# What reads or writes texts by the locale of the process, which is the host's: a decimal comma, a Turkish i.
LOCALE_FUNCTIONS = re.compile(r"\b(to(lower|upper)|is(alpha|alnum|digit|space|print|upper|lower|x?digit|punct|blank)|"
                              r"strto(d|f|ld)|ato(f|i|l|ll)|sto(d|f|i|l|ul|ull)|strcoll|setlocale|strftime)\(")
LOCALE_FORMAT = re.compile(r'"[^"]*%[-+#0-9.*]*[aefgEFG]')
LOCALE_ROOMS = ("runtime/", "codegen/", "ir-templates/", "hosts/", "tools/frontend/")


def locale(root):
    """What runs in a host's process reads and writes the same text in each locale."""
    for path in code_files(root):
        where = path.relative_to(root).as_posix()
        if not where.startswith(LOCALE_ROOMS) or where.endswith("example.c"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = line.split("//")[0]
            if LOCALE_FUNCTIONS.search(code) or LOCALE_FORMAT.search(code):
                yield (f"{where}:{number}: text that follows the locale of the process; accepted: std::from_chars, "
                       "std::to_chars, codegen/base/text_words.h")


# A line of a test that is a command or a part of one, and the paths that may stand in it. lit also reads %seed, %{x}
# and %%.
COMMAND_LINE = re.compile(r"\b(?:RUN|DEFINE|REDEFINE):(.*)")
PATH_IN_COMMAND = re.compile(r"%(?!seed)(?:python|quern|venv_bin|build_root|cc|cxx|lib|[sStpT])")


def places_in_quotes(command):
    """Where quoted text stands in a command, as (begin, end), with the quotes."""
    quote, begin, at = "", 0, 0
    while at < len(command):
        c = command[at]
        if c == "\\" and quote != "'":
            at += 1
        elif not quote and c in "'\"":
            quote, begin = c, at
        elif c == quote:
            quote = ""
            yield begin, at + 1
        at += 1


def quoted_paths(root):
    """In commands of tests, no path stands within quotes, since it brings its own (test/quoted_paths.py)."""
    for path in source_files(root):
        where = path.relative_to(root)
        if path.suffix not in (".test", ".c") or where.parts[0] != "test" or "Inputs" in where.parts:
            continue
        command, first = "", 0
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = COMMAND_LINE.search(line)
            if not match:
                continue
            first = number if not command else first
            command += match[1].removesuffix("\\")
            if match[1].endswith("\\"):
                continue
            text = command.replace("%%", "..")
            for begin, end in places_in_quotes(text):
                if found := PATH_IN_COMMAND.search(text[begin:end]):
                    yield f"{where}:{first}: path within quotes: {found[0]}; accepted: beside them, as in %t/'*.csv'"
            command = ""


RULES = {rule.__name__: rule
         for rule in (assertions_in_braces, comments_that_go_on, environment, forks, includes_from_the_root,
                      includes_of_templates, includes_of_public_headers, locale, prefetches, quoted_paths, spdx,
                      size)}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in RULES:
        sys.exit(f"usage: sources.py RULE SOURCE_ROOT; rules: {', '.join(RULES)}")
    root = pathlib.Path(sys.argv[2]).resolve()
    breaks = list(RULES[sys.argv[1]](root))
    print("\n".join(breaks) or f"{sys.argv[1]}: {len(source_files(root))} files, all keep it")
    sys.exit(1 if breaks else 0)


if __name__ == "__main__":
    main()
