# SPDX-License-Identifier: Apache-2.0
"""From a condition over names to the spec of a filter and the columns that it reads.

    "name collate utf8mb4_general_ci = 'ada' and due < shipped"
    ->  filter utf8(utf8mb4_general_ci):nullable = 'ada' and date32 < date32        columns name, due, shipped
"""

from __future__ import annotations

from quern import _quern
from quern._arguments import text_of, wrong
from quern._inputs import Input
from quern._types import Field, common_format, type_name


class Condition:
    """A condition on one input, resolved: its spec and the numbers of its columns, one for each mention."""

    def __init__(self, data: Input, what: str, tree: _quern.Where) -> None:
        self.data = data
        self.what = what
        self.columns: list[int] = []
        self.spec = "filter " + self._text(tree)

    def compile(self, engine: str, params: str = "") -> _quern.Kernel:
        return _quern.Kernel(self.spec, engine, params, False)

    def _text(self, node: _quern.Where) -> str:
        kind = node.kind
        if kind == "not":
            return f"not ({self._text(node.children[0])})"
        if kind in ("and", "or"):
            return f" {kind} ".join(f"({self._text(child)})" for child in node.children)
        return self._columns_text(node) if kind == "compare_columns" else self._leaf_text(node)

    def _type(self, number: int, original: int, collation: str) -> str:
        self.columns.append(number)
        return self.data.kernel_type(number, self.data.nullable(original), collation)

    def _leaf_text(self, node: _quern.Where) -> str:
        name, collation = node.column
        column = self.data.find_in_any_letters(name)
        field = self.data.fields[column]
        if field.format == "n":  # null everywhere, so that no comparison is true and none is false
            boolean = self._type(self.data.made(column, "b"), column, "")
            return (
                f"{boolean} is {'not ' if node.negated else ''}null"
                if node.kind == "is_null"
                else f"{boolean} = true"
            )
        self._type(column, column, collation)
        nullable = self.data.nullable(column)
        text, format_, dictionary = self.data.column_text(field.name), field.format, field.dictionary
        return node.leaf_text(self.what, text, type_name(field), format_, dictionary, collation, nullable)

    def _columns_text(self, node: _quern.Where) -> str:
        (left_name, left_collation), (right_name, right_collation) = node.column, node.other
        left, right = self.data.find_in_any_letters(left_name), self.data.find_in_any_letters(right_name)
        fields = [self.data.fields[left], self.data.fields[right]]
        if left_collation and right_collation and left_collation != right_collation:
            both = f"{left_name} collate {left_collation}, {right_name} collate {right_collation}"
            raise wrong("two collations in one comparison", both, "the same after both, or one after either")
        numbers = self._compared_as(left, right, fields)
        collation = left_collation or right_collation
        texts = [self._type(number, column, collation) for number, column in zip(numbers, (left, right))]
        op = "<>" if node.op == "!=" else node.op
        return f"{texts[0]} {op} {texts[1]}"

    def _compared_as(self, left: int, right: int, fields: list[Field]) -> list[int]:
        if fields[0][1:3] == fields[1][1:3] and fields[0].format != "n":
            return [left, right]
        common = common_format(*fields)
        if common is None:
            text = ", ".join(self.data.type_text(field.name) for field in fields)
            accepted = (
                "the same type, two integers that one integer type holds, numbers with floats, strings with strings"
            )
            raise wrong("columns of types that do not compare", text, accepted)
        return [self.data.made(column, "b" if common == "n" else common) for column in (left, right)]


def condition_of(data: Input, what: str, text: str) -> Condition:
    """*Errors*: ValueError with the text from the mistake on, and what is accepted there."""
    text = text_of(what, text)
    try:
        tree = _quern.parse_where(what, text)
    except ValueError:
        if _is_expression(what, text):
            accepted = "comparisons of columns with constants or columns; quern.scan(t).filter(..) takes expressions"
            raise wrong(f"expression in {what}", text, accepted) from None
        raise
    return Condition(data, what, tree)


def _is_expression(what: str, text: str) -> bool:
    try:
        _quern.parse_expression(what, text)
    except ValueError:
        return False
    return True


def apply_where(data: Input, where: str | None, engine: str, what: str = "where") -> None:
    """Only the rows of the input for which the condition is true take part. The condition's kernel selects them, and
    the operator's kernel reads them in place. `what` is the argument that held `where`.
    """
    if where is None:
        return
    condition = condition_of(data, what, where)
    data.view.set_where(condition.compile(engine), condition.columns)
