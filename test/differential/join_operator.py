# SPDX-License-Identifier: Apache-2.0
"""The join as an operator that run.py can test: its cases, how they run, the expected answers, and the coverage of a
run."""
import collections

from join_case import BIG_ROWS, Case  # noqa: F401
from join_expected import Expected, Mismatch  # noqa: F401
from join_kinds import KINDS, LAYOUT_CLASSES
from join_run import check_compiles_twice, run  # noqa: F401
from oracle import DuckdbOracle as Oracle  # noqa: F401

ENGINES = ("generic", "jit")


def _asks_for(case, variant, layout):
    asked = variant.params.get("layout", "auto")
    return asked in (layout, "auto") if case.fits_word() else layout == "unchained"


class Coverage:
    """What has run: cases by kind, runs by the layout that came out."""

    def __init__(self):
        self.kinds, self.layouts = collections.Counter(), collections.Counter()
        self.seen = set()  # (kind, layout class, engine)

    def count_case(self, case):
        self.kinds[case.kind.name] += 1

    def count_run(self, case, variant, answer):
        if answer.out_of_memory:
            return
        self.layouts[answer.layout] += 1
        self.seen.add((case.kind.name, LAYOUT_CLASSES[answer.layout], variant.engine))

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
        return not self._unseen() and not self._unseen_layouts()

    def unseen_text(self):
        return ", ".join(["/".join(what) for what in self._unseen()] + self._unseen_layouts())

    def text(self):
        """One line."""
        layouts = ", ".join(f"{layout} {self.layouts[layout]}" for layout in LAYOUT_CLASSES)
        return f"cases: {', '.join(f'{kind} {self.kinds[kind]}' for kind in KINDS)}; runs: {layouts}"
