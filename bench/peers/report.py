# SPDX-License-Identifier: Apache-2.0
"""The report of compare.py: the table, its rows as JSON, complaints about a row, and the last line."""
import math

RELATIVE_ERROR = 1e-9  # of floats in an answer; digest.py says why
THREADS_EXCEEDED = 1.25  # processor time per wall time and thread, above which an engine is said to use more threads


def print_list(cases):
    width = max(len(case.name) for case in cases)
    for case in cases:
        sizes = "  ".join(f"{name} {number:10,}" for name, number in case.sizes.items())
        target = f"{case.target:.2f}" if case.target else "-"
        print(f"{case.name:{width}}  {sizes}  target {target}")


class Table:
    """Prints a line per case as soon as it is known, in columns of fixed width."""

    def __init__(self, cases, engines):
        self._others = [name for name in engines if name != "quern"]
        headers = ["case", *self._others, "best", "quern", "ratio", "target", "", "compile", "layout"]
        self._widths = [max(len(case.name) for case in cases)] + [max(len(header), 6) for header in headers[1:]]
        self._print(headers)

    def add(self, row):
        seconds, number = row["seconds"], lambda value, digits: "-" if value is None else f"{value:.{digits}f}"
        met = {None: "", True: "yes", False: "no"}[row["met"]]
        self._print([row["case"], *(number(seconds[name], 4) for name in self._others), number(row["best_other"], 4),
                     number(seconds.get("quern"), 4), number(row["ratio"], 2), number(row["target"], 2), met,
                     number(row["compile_ms"], 1), row["layout"] or ""])

    def _print(self, cells):
        print("  ".join(f"{cell:{width}}" for cell, width in zip(cells, self._widths)).rstrip(), flush=True)


def peak_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def describe(case, timings, compile_ms, layout):
    """A case's row, for the table and for --json."""
    seconds = {name: timing.best() for name, timing in timings.items()}
    others = [value for name, value in seconds.items() if name != "quern"]
    best_other = min(others, default=None)
    ratio = best_other / seconds["quern"] if others and "quern" in seconds else None
    return {
        "case": case.name, "sizes": case.sizes, "seconds": seconds, "best_other": best_other, "ratio": ratio,
        "target": case.target, "met": None if None in (ratio, case.target) else ratio >= case.target,
        "compile_ms": compile_ms, "layout": layout, "peak_bytes": peak_bytes(),
        "variants": {name: timing.seconds for name, timing in timings.items()},
        "processor_share": {name: timing.processor_share for name, timing in timings.items()},
        "answers": {name: sorted(timing.answers) for name, timing in timings.items()},
    }


def same(left, right):
    """Two answers: integers are equal, floats within RELATIVE_ERROR."""
    close = lambda x, y: math.isclose(x, y, rel_tol=RELATIVE_ERROR) if isinstance(x, float) else x == y
    return len(left) == len(right) and all(map(close, left, right))


def complaints(row, threads):
    """What is wrong with a row: (errors, warnings), one line each."""
    errors, warnings = [], []
    answers = [answer for of_engine in row["answers"].values() for answer in of_engine]
    if not all(same(answers[0], answer) for answer in answers):
        errors.append(f"results differ in {row['case']}: {row['answers']}; all engines must have the same")
    for name, share in row["processor_share"].items():
        if share > threads * THREADS_EXCEEDED:
            warnings.append(f"{name} took {share:.2f} s of processor time per second in {row['case']}; {threads} "
                            "thread(s) were asked for")
    return errors, warnings


def summary(rows):
    compared = [row for row in rows if row["ratio"] is not None]
    targets = [row for row in compared if row["target"] is not None]
    ahead, met = sum(row["ratio"] > 1 for row in compared), sum(row["met"] for row in targets)
    gigabytes = max(row["peak_bytes"] for row in rows) / (1 << 30)
    return (f"{len(rows)} cases, peak {gigabytes:.1f} GiB: quern is faster than the best other engine in {ahead} of "
            f"{len(compared)}, "
            f"targets met {met} of {len(targets)}")
