# SPDX-License-Identifier: Apache-2.0
"""The columns of one input of an operator: found by their names, cast where needed, and numbered as its kernel reads
them.

For `aggregate(t, by="k", aggs="sum(x), avg(x)")` over columns k, y, x:

    take("k") -> 0    take("x") -> 1    take("x") -> 1        columns 0 and 2 of t are the kernel's 0 and 1
"""

from __future__ import annotations

from quern import _quern
from quern._arguments import wrong
from quern._types import ACCEPTED, Field, common_format, same_kind, type_name

KEY_TYPES = "the same type, two integers that one integer type holds, numbers with floats, strings with strings"


def _in_small_letters(name: str) -> bytes:
    return name.encode().lower()


class Input:
    """An object with Arrow data, and the view of it for a kernel. `what` names the argument in errors."""

    def __init__(self, data: object, what: str, stream: bool = False) -> None:
        self.what = what
        self.source = _quern.Source(data, what)
        self.is_stream = stream
        if not stream:
            self.source.collect()
        self.fields = [Field(*field) for field in self.source.fields]
        self.names = [field.name for field in self.fields]
        self.view = _quern.View(self.source)
        self._all_fields = list(self.fields)  # those that were made too
        self._has_nulls: dict[int, bool] = {}
        self._made: dict[tuple[int, str], int] = {}
        self._places: list[int] = []  # of the view's output: numbers of columns

    def column_text(self, name: str) -> str:
        return f"column {_quern.quote_name(name)} of {self.what}"

    def type_text(self, name: str) -> str:
        return f"{self.column_text(name)} is {type_name(self.fields[self.find(name)])}"

    def find(self, name: str) -> int:
        """The number of a column. *Errors*: ValueError with the nearest name, or for a name that two columns have."""
        found = self.names.count(name)
        if found == 1:
            return self.names.index(name)
        if found > 1:
            raise wrong(f"two columns of one name in {self.what}", _quern.quote_name(name), "one")
        if not self.names:
            raise wrong(
                f"unknown column of {self.what}", _quern.quote_name(name), f"none, since {self.what} has no columns"
            )
        accepted = [_quern.quote_name(column) for column in self.names]
        raise ValueError(_quern.unknown_word(f"column of {self.what}", _quern.quote_name(name), accepted))

    def find_in_any_letters(self, name: str) -> int:
        """The same; a name that no column has stands for the one that differs only in the case of ASCII letters."""
        if name in self.names:
            return self.find(name)
        alike = [column for column in self.names if _in_small_letters(column) == _in_small_letters(name)]
        if len(alike) > 1:
            raise wrong(f"column of {self.what} that is meant is not clear", _quern.quote_name(name), ", ".join(alike))
        return self.find(alike[0] if alike else name)

    def has_in_any_letters(self, names: list[str]) -> bool:
        small = {_in_small_letters(column) for column in self.names}
        return all(_in_small_letters(name) in small for name in names)

    def nullable(self, column: int) -> bool:
        """Whether nulls were read; in a stream, whether there may be any."""
        if self.fields[column].format == "n":
            return True
        if self.is_stream:
            return self.fields[column].nullable
        if column not in self._has_nulls:
            self._has_nulls[column] = self.source.has_nulls(column)
        return self._has_nulls[column]

    def made(self, column: int, text: str) -> int:
        """The column in another format: itself if it has that format, otherwise the number of a cast."""
        field = self.fields[column]
        if not field.dictionary and (field.format == text or same_kind(field.format, text)):
            return column
        if (column, text) not in self._made:
            self._made[column, text] = self.view.add_cast(column, text)
            self._all_fields.append(field._replace(format=text, dictionary=""))
        return self._made[column, text]

    def readable(self, column: int, format_of_nulls: str = "u") -> int:
        """The column, or a column of nulls in a format that kernels read if its type is null."""
        return (
            self.made(column, "vu" if format_of_nulls == "u" else format_of_nulls)
            if self.fields[column].format == "n"
            else column
        )

    def kernel_type(self, number: int, nullable: bool, collation: str = "") -> str:
        """The type of the column in a spec; the column may be a made one. *Errors*: ValueError for types that no kernel
        reads.
        """
        field = self._all_fields[number]
        if collation not in ("", "binary") and field.value_format not in ("u", "U", "vu", "z", "Z", "vz"):
            text = f"{self.column_text(field.name)} is {type_name(field)}"
            raise wrong("collation on a column without text", text, "utf8 columns")
        kernel = _quern.type_text(field.format, field.dictionary, collation, nullable)
        if not kernel:
            raise wrong(f"unsupported type of {self.column_text(field.name)}", type_name(field), ACCEPTED)
        return kernel

    def format_of(self, number: int) -> tuple[str, str]:
        """Of a column, which may be a made one: its format, and that of its dictionary's values or ""."""
        field = self._all_fields[number]
        return field.format, field.dictionary

    def add_test(self, kernel: _quern.Kernel, columns: list[int]) -> int:
        """A bool column that is true where a filter's condition is."""
        self._all_fields.append(Field("", "b", "", False))
        return self.view.add_test(kernel, columns)

    def set_computation(self, kernel: _quern.Kernel, columns: list[int]) -> int:
        """The number of the first result of a map over these columns, the last columns that are added."""
        first: int = self.view.set_computation(kernel, columns)
        self._all_fields += [Field(*field) for field in self.view.fields[first:]]
        return first

    def result_type(self, number: int) -> str:
        """The type of a computed column in a spec."""
        return self.kernel_type(number, self.result_nullable(number))

    def result_nullable(self, number: int) -> bool:
        return self._all_fields[number].nullable

    def place(self, number: int) -> int:
        """The position of the column among those that the kernel reads, which it joins if it is not there yet."""
        if number not in self._places:
            self._places.append(number)
        return self._places.index(number)

    def finish(self) -> _quern.View:
        self.view.set_output(self._places)
        return self.view

    def kernel_input(self, keys: list[int], payload: list[int]) -> _quern.Input:
        return _quern.Input(self.finish(), keys, payload)


def in_common_type(
    sides: list[Input], names: tuple[str, str], what: str, accepted: str, without_values: str = "vu"
) -> tuple[list[int], bool]:
    """The columns of both sides in their common type, and whether either may be null. `without_values`: the format
    where neither side has a value. *Errors*: ValueError, which says what is wrong and what is accepted.
    """
    columns = [data.find(name) for data, name in zip(sides, names)]
    fields = [data.fields[column] for data, column in zip(sides, columns)]
    nullable = any(data.nullable(column) for data, column in zip(sides, columns))
    if fields[0][1:3] == fields[1][1:3] and fields[0].format != "n":
        return columns, nullable
    common = common_format(*fields)
    if common is None:
        raise wrong(what, ", ".join(data.type_text(name) for data, name in zip(sides, names)), accepted)
    if common == "n":
        common = without_values
    return [data.made(column, common) for data, column in zip(sides, columns)], nullable
