# SPDX-License-Identifier: Apache-2.0
"""Prints the statistics that a quern command left with --stats for a reader: demo_stats.py FILE.

FILE is the command's stderr. Its last line that is a JSON object counts; other lines are passed on."""

import json
import sys


def read(path):
    stats = None
    for line in open(path):
        try:
            stats = json.loads(line)
        except ValueError:
            print(line, end="", file=sys.stderr)
    if not isinstance(stats, dict):
        sys.exit(f"demo: error: no statistics: {path}; one JSON object on a line of its own")
    return stats


def milliseconds(value):
    return f"{value:,.3f} ms" if value < 10 else f"{value:,.1f} ms"


def lines(stats):
    """What there is to say, as pairs of label and text; what a command does not report is left out."""
    yield "kernel spec", stats.get("spec")
    yield "kernel", stats.get("engine") and f"{stats['engine']}, cache: {stats.get('cache', 'off')}"
    plan = stats.get("plan")
    yield "plan", plan and ", ".join(f"{name}={value}" for name, value in plan.items())
    if "method" in stats:
        entry = f"{stats['entry_bytes']} bytes an entry, {stats['key_bits']} bits of keys that vary"
        rows = f"{stats['dropped_rows']:,} rows left out early, {stats['collided_rows']:,} with equal prefixes"
        yield "sorted", f"{stats['method']}, {entry}, {rows}"
    yield "rows", f"{stats.get('rows_in', 0):,} in, {stats.get('rows_out', 0):,} out"
    for stage in ("read", "compile", "build", "probe", "run", "write"):
        value = stats.get(stage + "_ms")
        yield stage, value is not None and milliseconds(value)
    if stats.get("run_ms"):
        rate = stats.get("rows_in", 0) / stats["run_ms"] * 1000
        yield "speed", f"{rate:,.0f} input rows per second, {stats.get('threads', 1)} thread(s)"
    yield "peak memory", stats.get("peak_bytes") and f"{stats['peak_bytes'] / 2**20:,.1f} MiB"


for name, text in lines(read(sys.argv[1])):
    if text:
        print(f"    {name:<12} {text}")
