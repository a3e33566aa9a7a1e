# SPDX-License-Identifier: Apache-2.0
"""Tuning profiles: which prefetch settings are best on this machine, as text, as rows, and as what kernels go by."""

from __future__ import annotations

import html
import os
from typing import NamedTuple, Union

from quern import _quern
from quern._machine import Machine, size_text

Path = Union[str, "os.PathLike[str]"]


class Entry(NamedTuple):
    """What was measured of one loop, by the size of its table. Times are nanoseconds a row, of the machine's when it was tuned."""

    loop: str  # "probe_open"; codegen/TUNING.md has all of them
    keys: str  # "packed": packed into 8 bytes; "fixed", "string"
    pipeline: int  # such loops that take turns batch by batch
    threads: int
    table_bytes: int  # tables of more than half of it, and at most so many
    setting: str  # "64", "all/hint=nta"; "default": nothing beat it beyond the noise
    ns: float
    default_ns: float
    off_ns: float  # without prefetch
    gain: float  # share of default_ns that the setting saves; 0 of the default
    noise: float  # share by which two measurements of the same may differ


class Profile:
    """Settings that were measured on one machine. It changes how fast kernels are, never what they answer. It never changes.

    `quern.tune` makes one, Profile.read and Profile.parse take one that was kept, and quern.use_profile puts it into use. It is an Arrow
    table of its entries: polars.DataFrame(profile), pyarrow.table(profile).
    """

    __slots__ = ("_profile",)

    def __init__(self, profile: _quern.Profile) -> None:
        self._profile = profile

    @classmethod
    def read(cls, path: Path) -> Profile:
        """A file that tune has written. Errors: FileNotFoundError; ValueError that names the line which is wrong; RuntimeError where the
        file cannot be read."""
        return cls(_quern.Profile.read(os.fspath(path)))

    @classmethod
    def parse(cls, text: str) -> Profile:
        """The same of its text. Errors: ValueError "text:LINE: ..."."""
        return cls(_quern.Profile.parse(text, "text"))

    @property
    def text(self) -> str:
        """What a file of it holds: one thing a line."""
        return self._profile.text

    @property
    def path(self) -> str | None:
        """Where it was read from or written to."""
        return self._profile.path or None

    @property
    def signature(self) -> str:
        """Of the machine that it was measured on, as its text has it."""
        return self._profile.signature

    @property
    def difference(self) -> str:
        """What makes it another machine's, "cpu znver4 here, znver5 in the profile"; "" of this one's."""
        return self._profile.difference

    @property
    def machine(self) -> Machine | None:
        """What the memory of that machine did; None where that was not measured."""
        facts = self._profile.facts
        return None if facts is None else Machine(*facts)

    @property
    def entries(self) -> list[Entry]:
        """By loop, keys, pipeline, size and threads."""
        return [Entry(*values) for values in self._profile.entries]

    def rows(self) -> list[dict[str, str | int | float]]:
        """The entries as dictionaries."""
        return [entry._asdict() for entry in self.entries]

    def schedules(self, keys: str = "packed", pipeline: int = 1) -> dict[str, str]:
        """What plans on this machine make of it, loop by loop: "0@1M,48@32M,96; profile: 5 sizes exact, 12 nearest size". Settings, each
        with the size of table up to which it counts, then where they come from. keys: "packed", "fixed" or "string". pipeline: such loops
        that take turns.
        """
        return {loop: f"{schedule}; {origin}" for loop, schedule, origin in self._profile.schedules(keys, pipeline)}

    # ---- of one that quern.tune has made ----

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C ended the tuning: what had been measured until then is here."""
        return self._profile.stopped

    @property
    def seconds(self) -> float:
        """That tuning took; 0 of a profile that was read."""
        return self._profile.seconds

    @property
    def csv(self) -> str:
        """A line for each setting that was tried. Errors: ValueError of a profile that was read, as below."""
        return self._profile.csv()

    @property
    def table(self) -> str:
        """A line for each cell that was tuned: default, chosen, off, gain, noise."""
        return self._profile.table()

    def report(self, path: Path) -> None:
        """Writes a page of curves, time a row over prefetch distance, that needs no network. Errors: OSError."""
        page = self._profile.html()
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)

    # ---- files and other profiles ----

    def save(self, path: Path) -> Profile:
        """Writes it, under a temporary name first; makes the folder. Answers itself with that path. Errors: RuntimeError."""
        return Profile(self._profile.write(os.fspath(path)))

    def merge(self, other: Profile) -> Profile:
        """Both, of one machine; of the same cells other's entries. Errors: RuntimeError where the machines differ."""
        return Profile(self._profile.merge(other._profile))

    def diff(self, other: Profile) -> str:
        """A line for each entry that differs: "-" only here, "+" only in other, "~" in both. Times are no difference."""
        return self._profile.diff(other._profile)

    def __arrow_c_schema__(self) -> object:
        """A PyCapsule of an ArrowSchema, a struct of the fields of Entry."""
        return self._profile.schema_capsule()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A PyCapsule of an ArrowArrayStream over the entries."""
        return self._profile.stream_capsule()

    def __len__(self) -> int:
        return len(self._profile.entries)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        better = sum(entry.setting != "default" for entry in self.entries)
        whose = "another machine's" if self.difference else "this machine's"
        end = ", stopped" if self.stopped else ""
        return f"<quern.Profile: {whose}, {len(self)} entries, {better} better than by default{end}>"

    def _repr_html_(self) -> str:
        """In a notebook: the entries."""
        head = "".join(f"<th>{name}</th>" for name in ("loop", "keys", "table", "pipeline", "threads", "setting", "ns", "default", "off"))
        rows = "".join(
            f"<tr><td>{e.loop}</td><td>{e.keys}</td><td>{size_text(e.table_bytes)}</td><td>{e.pipeline}</td><td>{e.threads}</td>"
            f"<td>{html.escape(e.setting)}</td><td>{e.ns:.2f}</td><td>{e.default_ns:.2f}</td><td>{e.off_ns:.2f}</td></tr>"
            for e in self.entries
        )
        return f"<div><code>{html.escape(repr(self))}</code><table><tr>{head}</tr>{rows}</table></div>"


def profile() -> Profile | None:
    """What plans go by: what use_profile said, else what the process found when it made its first plan; None: estimates.

    It looks in QUERN_PROFILE alone, where that is set ("off": nowhere), else in ~/.config/quern, then in /etc/quern. A file that cannot be
    used is one warning. Threads: any.
    """
    native = _quern.profile_in_use()
    return None if native is None else Profile(native)


def use_profile(profile: Profile | Path | None) -> None:
    """What kernels go by from now on, in this process: a Profile, a file of one, "off" for none, None for what profile() would find.

    Calls that run go on as they began; no code is compiled for it. Threads: any. Errors: those of Profile.read; RuntimeError for a profile
    of another machine. What was before then stays.
    """
    if profile is None:
        _quern.use_profile(_quern.find_profile())
    elif isinstance(profile, str) and profile == "off":
        _quern.use_profile(None)
    else:
        chosen = profile if isinstance(profile, Profile) else Profile.read(profile)
        if chosen.difference:
            name = chosen.path or "a Profile"
            raise RuntimeError(f"profile of another machine: {name} ({chosen.difference}); accepted: one of this machine, which tune makes")
        _quern.use_profile(chosen._profile)
