"""JSON into the rows of rows.py: every value has the type that its row says, or the error names the key. Keys
that a row does not know are left alone; those that it may lack are those with a default."""

import typing
from functools import lru_cache
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Tuple, Type, TypeVar

from memshim.errors import ReportError

Row = TypeVar("Row")
Json = Mapping[str, Any]


class _Field(NamedTuple):
    name: str
    key: str
    kind: Optional[type]  # the values that need no second look
    convert: Optional[Callable[[Any, str], Any]]
    required: bool
    default: Any


def fail(where: str, value: object, allowed: str) -> ReportError:
    """The error for a value that is not what a report has there."""
    spelled = repr(value)
    return ReportError(
        "%s is %s, not %s" % (where, spelled if len(spelled) <= 60 else spelled[:57] + "...", allowed)
    )


_ALLOWED = {int: "a whole number", str: "text", bool: "true or false", dict: "an object", list: "an array"}


def value_of(item: Json, key: str, kind: Type[Row], where: str) -> Row:
    """A key that has to be there."""
    value = item.get(key)
    if type(value) is not kind:
        raise fail(where + key, value, _ALLOWED[kind])
    return value


def rows_of(item: Json, key: str, where: str = "") -> List[Json]:
    """An array of objects; an empty one where the report is older than the key."""
    value = item.get(key, [])
    if type(value) is not list:
        raise fail(where + key, value, _ALLOWED[list])
    for number, row in enumerate(value):
        if type(row) is not dict:
            raise fail("%s%s[%d]" % (where, key, number), row, _ALLOWED[dict])
    return value


def _texts(value: Any, where: str) -> Tuple[str, ...]:
    if type(value) is not list or not all(type(one) is str for one in value):
        raise fail(where, value, "an array of text")
    return tuple(value)


def _histogram(value: Any, where: str) -> Mapping[int, int]:
    if type(value) is not dict or not all(
        k.isdigit() and k.isascii() and len(k) <= 20 and type(v) is int for k, v in value.items()
    ):
        raise fail(where, value, "an object of numbers")
    return {int(least): count for least, count in value.items()}


@lru_cache(maxsize=None)
def _fields(row: Any, renamed: Tuple[Tuple[str, str], ...]) -> Tuple[_Field, ...]:
    """How the members of a row are read. `renamed` has the keys of those whose names differ."""
    keys, hints, defaults = dict(renamed), typing.get_type_hints(row), row._field_defaults
    fields = []
    for name in row._fields:
        hint, convert = hints[name], None
        options = (
            [one for one in typing.get_args(hint) if one is not type(None)]
            if typing.get_origin(hint) is typing.Union
            else [hint]
        )
        kind = options[0] if isinstance(options[0], type) and options[0] in _ALLOWED else None
        if hasattr(hint, "_fields"):
            convert = _nested(hint)
        elif kind is None:
            convert = _texts if typing.get_origin(hint) is tuple else _histogram
        optional = name in defaults or type(None) in typing.get_args(hint)
        fields.append(_Field(name, keys.get(name, name), kind, convert, not optional, defaults.get(name)))
    return tuple(fields)


def _nested(row: Type[Any]) -> Callable[[Any, str], Any]:
    """Reads a row within a row; its amounts are named there without their unit."""
    renamed = tuple((name, name[: -len("_bytes")]) for name in row._fields if name.endswith("_bytes"))

    def convert(value: Any, where: str) -> Any:
        if type(value) is not dict:
            raise fail(where, value, _ALLOWED[dict])
        return parse_row(row, value, where + ".", renamed)

    return convert


def parse_row(row: Type[Row], item: Json, where: str, renamed: Tuple[Tuple[str, str], ...] = ()) -> Row:
    """One row; `where` is how errors begin to name its keys."""
    values = []
    for field in _fields(typing.cast(typing.Hashable, row), renamed):
        value = item.get(field.key)
        if type(value) is field.kind:
            pass
        elif value is None and not field.required:
            value = field.default
        elif field.convert is not None:
            value = field.convert(value, where + field.key)
        else:
            raise fail(where + field.key, value, _ALLOWED[typing.cast(type, field.kind)])
        values.append(value)
    return row(*values)


def parse_rows(
    row: Type[Row], item: Json, key: str, renamed: Tuple[Tuple[str, str], ...] = (), where: str = ""
) -> Tuple[Row, ...]:
    """All rows of an array."""
    return tuple(
        parse_row(row, one, "%s%s[%d]." % (where, key, number), renamed)
        for number, one in enumerate(rows_of(item, key, where))
    )
