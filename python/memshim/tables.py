"""Reports as tables: which there are, their columns, and their rows. The columns and the types of a table are
the same for every file, whatever is in it and whichever memshim wrote it, so that tables of files can be put
together, by Dask too."""

import typing
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Type

from memshim.errors import ReportError, missing
from memshim.report import Path, Report, read
from memshim.rows import Device, Frame, Leak, Parts, Phase, PhaseDevice, Site, TimelineRow

# Whose a row is; in every table.
_WHOSE: Tuple[Tuple[str, type, bool], ...] = (
    ("report", str, False),
    ("host", str, False),
    ("pid", int, False),
    ("rank", int, True),
)
_LINE: Tuple[Tuple[str, type, bool], ...] = (
    ("function", str, True),
    ("file", str, True),
    ("line", int, True),
    ("callers", str, True),
)
_DTYPES = {
    (int, False): "int64",
    (int, True): "Int64",
    (str, False): "string",
    (str, True): "string",
    (bool, False): "bool",
}


class Column(NamedTuple):
    """A column: its name, and the type that pandas has it in. Int64 and string may lack values (NA)."""

    name: str
    dtype: str


class Table(NamedTuple):
    """A table: its columns, and how a report's rows of it are made."""

    name: str
    columns: Tuple[Column, ...]
    rows: Callable[[Report], Iterable[Tuple[Any, ...]]]


def _members(
    row: Type[Any], leave_out: Sequence[str] = (), may_lack: bool = False
) -> Iterator[Tuple[str, type, bool]]:
    """The members of a row, those of rows in it in its place."""
    hints = typing.get_type_hints(row)
    for name in row._fields:
        if name in leave_out:
            continue
        if hints[name] is Parts:
            prefix = "peak_" if name.startswith("peak") else "reserved_"
            yield from ((prefix + part, int, may_lack) for part in Parts._fields)
            continue
        options = [one for one in typing.get_args(hints[name]) if one is not type(None)] or [hints[name]]
        yield name, options[0], may_lack or type(None) in typing.get_args(hints[name])


def _columns(*members: Tuple[str, type, bool]) -> Tuple[Column, ...]:
    return tuple(Column(name, _DTYPES[kind, may_lack]) for name, kind, may_lack in (*_WHOSE, *members))


def _line(report: Report, site: int) -> Tuple[Optional[str], Optional[str], Optional[int], Optional[str]]:
    frame, callers = report.line(report.sites[site].stack), report.callers(site)
    if frame is None:
        return (None, None, None, callers)
    return (frame.function, frame.file or frame.module, frame.line, callers)


def _device_rows(report: Report) -> Iterator[Tuple[Any, ...]]:
    for device in report.devices:
        flat: List[Any] = []
        for value in device:
            flat.extend(value) if isinstance(value, Parts) else flat.append(value)
        yield tuple(flat)


def _site_rows(report: Report) -> Iterator[Tuple[Any, ...]]:
    histogram = Site._fields.index("size_hist")
    for number, site in enumerate(report.sites):
        yield (*site[:histogram], *site[histogram + 1 :], *_line(report, number))


def _stack_rows(report: Report) -> Iterator[Tuple[Any, ...]]:
    return ((node.stack, node.parent, *node.frame) for node in report.stacks[1:])


def _phase_rows(report: Report) -> Iterator[Tuple[Any, ...]]:
    nothing = (None,) * (len(PhaseDevice._fields) - 1)
    for phase in report.phases:
        for device in phase.devices or (None,):
            yield (*phase[:-1], *(device[:-1] if device else nothing))


def _leak_rows(report: Report) -> Iterator[Tuple[Any, ...]]:
    for number, leak in enumerate(report.leaks):
        if not 0 <= leak.site < len(report.sites):
            raise ReportError("leaks[%d].site is %d, not a site that is there" % (number, leak.site))
        yield (*leak, *_line(report, leak.site))


def _phase_members() -> Iterator[Tuple[str, type, bool]]:
    yield from _members(Phase, ("devices",))
    for name, kind, may_lack in _members(PhaseDevice, ("sites",), True):
        yield ("device_phase_count" if name == "phase_count" else name), kind, may_lack


TABLES: Dict[str, Table] = {
    table.name: table
    for table in (
        Table("devices", _columns(*_members(Device)), _device_rows),
        Table("sites", _columns(*_members(Site, ("size_hist",)), *_LINE), _site_rows),
        Table(
            "stacks", _columns(("stack", int, False), ("parent", int, False), *_members(Frame)), _stack_rows
        ),
        Table("timeline", _columns(*_members(TimelineRow)), lambda report: report.timeline),
        Table("phases", _columns(*_phase_members()), _phase_rows),
        Table("leaks", _columns(*_members(Leak), *_LINE), _leak_rows),
    )
}


def table_named(name: str) -> Table:
    """The table of that name."""
    if name not in TABLES:
        raise ValueError("%r is no table: %s are" % (name, ", ".join(TABLES)))
    return TABLES[name]


def frame_of(reports: Iterable[Report], name: str) -> Any:
    """The pandas frame of a table over reports."""
    try:
        import pandas
    except ImportError:
        raise missing("pandas", "frames") from None
    table = table_named(name)
    rows: List[Tuple[Any, ...]] = []
    for report in reports:
        whose = (report.path, report.run.host, report.run.pid, report.run.rank)
        try:
            rows.extend((*whose, *row) for row in table.rows(report))
        except ReportError as error:
            raise ReportError("%s: %s" % (report.path, error)) from None
    courses = zip(*rows) if rows else ((),) * len(table.columns)
    columns = {}
    for column, course in zip(table.columns, courses):
        try:
            columns[column.name] = pandas.Series(pandas.array(list(course), dtype=column.dtype))
        except OverflowError:
            raise ReportError("%s of %s has a number of more than 63 bits" % (column.name, name)) from None
    return pandas.DataFrame(columns)


def frame(path: Path, table: str) -> Any:
    """One table of one file, as a pandas frame; made for `map` over files, in whatever runs it."""
    return frame_of([read(path)], table)
