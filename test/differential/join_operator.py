# SPDX-License-Identifier: Apache-2.0
"""The join as an operator that run.py can test: its cases, how they run, the expected answers, and the coverage of a
run."""
import collections
import dataclasses

from join_case import BIG_ROWS, PARAMS_OF_KINDS, Case  # noqa: F401
from join_expected import Expected, Mismatch  # noqa: F401
from join_kinds import KINDS, LAYOUT_CLASSES
from join_run import check_compiles_twice, run  # noqa: F401
from oracle import DuckdbOracle as Oracle  # noqa: F401

ENGINES = ("generic", "jit")


def fitted_case(library, case):
    """(case, what the library lacks to run it: a function, or None). A library that knows inner joins alone gets an
    inner join."""
    if not library.knows_kinds:
        return case if case.kind.name == "inner" and not case.residuals else case.reduced(
            {**case.reduction, "kind": "inner", "residual": []}), None
    missing = "quern_prober_input_unmatched"
    return case, missing if case.kind.scans_unmatched and not library.has(missing) else None


def fitted_variant(library, variant):
    """(the variant as far as the library can run it, the functions that it lacks)."""
    missing, changes = [], {}
    for field, function in (("append_threads", "quern_appender_create"),
                            ("finalise_threads", "quern_join_finalise_shared")):
        if getattr(variant, field) and not library.has(function):
            missing.append(function)
            changes[field] = 0
    if not library.knows_kinds:
        changes["params"] = {name: value for name, value in variant.params.items()
                             if name not in ("layout", *PARAMS_OF_KINDS)}
    return dataclasses.replace(variant, **changes), missing


def _asks_for(case, variant, layout):
    asked = variant.params.get("layout", "auto")
    return asked in (layout, "auto") if case.fits_word() else layout == "unchained"


class Coverage:
    """What has run: cases by kind, runs by the layout that came out."""

    def __init__(self, library):
        self.knows_layouts = library.knows_kinds and library.has("quern_join_layout")
        self.kinds, self.layouts, self.missing = collections.Counter(), collections.Counter(), collections.Counter()
        self.seen = set()  # (kind, layout class, engine)

    def count_case(self, case):
        self.kinds[case.kind.name] += 1

    def count_run(self, case, variant, answer):
        layout = answer.layout
        if layout is not None:
            self.layouts[layout] += 1
            self.seen.add((case.kind.name, LAYOUT_CLASSES.get(layout, layout), variant.engine))

    def adds(self, case):
        """Whether a run of the case asks for what has not been seen."""
        wanted = {(layout, engine) for kind, layout, engine in self._unseen() if kind == case.kind.name}
        wanted |= {(LAYOUT_CLASSES[layout], engine) for layout in self._unseen_layouts() for engine in ENGINES}
        return max(case.generated_rows) <= BIG_ROWS and any(
            variant.engine == engine and _asks_for(case, variant, layout)
            for variant in case.variants() for layout, engine in wanted)

    def _unseen(self):
        return [(kind, layout, engine) for kind in KINDS for layout in sorted(set(LAYOUT_CLASSES.values()))
                for engine in ENGINES
                if (kind, layout, engine) not in self.seen]

    def _unseen_layouts(self):
        return [layout for layout in LAYOUT_CLASSES if not self.layouts[layout]]

    def is_complete(self):
        """Whether all has been seen, or the library does not report what ran."""
        return not self.knows_layouts or not self._unseen() and not self._unseen_layouts()

    def unseen_text(self):
        return ", ".join(["/".join(what) for what in self._unseen()] + self._unseen_layouts())

    def text(self):
        """One line."""
        layouts = ([f"{layout} {self.layouts[layout]}" for layout in LAYOUT_CLASSES]
                   if self.knows_layouts else ["not told by the library"])
        text = f"cases: {', '.join(f'{kind} {self.kinds[kind]}' for kind in KINDS)}; runs: {', '.join(layouts)}"
        missing = ", ".join(f"{name} ({count} times)" for name, count in sorted(self.missing.items()))
        return text + (f"; without, for want of: {missing}" if missing else "")
