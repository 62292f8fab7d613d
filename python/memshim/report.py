"""One report: a file, read by the standard library alone."""

import json
import os
import re
from functools import cached_property
from typing import Any, Dict, List, Mapping, NamedTuple, NoReturn, Optional, Tuple, Union

from memshim import parse
from memshim.errors import ReportError
from memshim.lines import Lines
from memshim.rows import (
    Device,
    Frame,
    Held,
    Leak,
    Phase,
    PhaseDevice,
    Rank,
    RankDevice,
    Run,
    Site,
    SiteBytes,
    StackNode,
    TimelineRow,
)
from memshim.text import plain, sound

Path = Union[str, "os.PathLike[str]"]

_VERSION = re.compile(r"1\.[0-9]+", re.ASCII)
_DEVICE = (("device", "index"), ("device_api", "api"))
_SITE = (("site", "id"),)
_LEAK = (("leak_class", "class"), ("block_count", "count"))
_PHASE = (("phase_count", "count"), ("open_count", "open"), ("mark_count", "marks"))
_PHASE_DEVICE = (("phase_count", "count"),)
_RANK = (("job_group", "group"), ("call_count", "calls"), ("oom_count", "ooms"))


class _JobDevice(NamedTuple):
    device: str
    device_bytes: int


class Report:
    """A report that was read. Rows are made when they are first asked for; an error names the key that is not
    what a report has there.

    `data` is all of it, as JSON has it."""

    def __init__(self, data: Mapping[str, Any], path: str = "") -> None:
        version = data.get("schema_version")
        if type(version) is not str or not _VERSION.fullmatch(version):
            raise parse.fail("schema_version", version, "1.x, which is what this package reads")
        self.data, self.path, self.schema_version = data, path, version

    def __repr__(self) -> str:
        return "<memshim.Report %s>" % plain(self.path or str(self.run.pid))

    def _repr_html_(self) -> str:
        from memshim.notebook import report_html

        return report_html([self])

    @cached_property
    def tool_version(self) -> str:
        """The version of the memshim that recorded."""
        return parse.value_of(parse.value_of(self.data, "tool", dict, ""), "version", str, "tool.")

    @cached_property
    def run(self) -> Run:
        """The process."""
        return parse.parse_row(Run, parse.value_of(self.data, "run", dict, ""), "run.")

    @cached_property
    def devices(self) -> Tuple[Device, ...]:
        """The devices that were used."""
        return parse.parse_rows(Device, self.data, "devices", _DEVICE)

    @cached_property
    def sites(self) -> Tuple[Site, ...]:
        """The call sites; a site is found at the place that is its number."""
        return parse.parse_rows(Site, self._with_api("sites"), "sites", _SITE)

    @cached_property
    def leaks(self) -> Tuple[Leak, ...]:
        """What was not freed, by site, what is suppressed or a framework's cache included (`leak_class`)."""
        return parse.parse_rows(Leak, self.data, "leaks", _LEAK)

    @cached_property
    def stacks(self) -> Tuple[StackNode, ...]:
        """The tree of stacks; a stack is found at the place that is its number."""
        frames, nodes = self._frames, []
        for number, pair in enumerate(parse.value_of(self.data, "stacks", list, "")):
            if (
                type(pair) is not list
                or len(pair) != 2
                or type(pair[0]) is not int
                or type(pair[1]) is not int
            ):
                raise parse.fail("stacks[%d]" % number, pair, "a parent and a frame")
            if number and not 0 <= pair[1] < len(frames):
                raise parse.fail("stacks[%d]" % number, pair, "of a frame that is there")
            nodes.append(
                StackNode(number, pair[0] if number else 0, frames[pair[1]] if number else Frame("mark"))
            )
        return tuple(nodes)

    @cached_property
    def timeline(self) -> Tuple[TimelineRow, ...]:
        """The most that was live, reserved and in limbo in each stretch of time, a row for each device."""
        timeline = parse.value_of(self.data, "timeline", dict, "")
        times, bucket_ns = _counts(timeline, "t", "timeline."), parse.value_of(
            timeline, "bucket_ns", int, "timeline."
        )
        rows: List[TimelineRow] = []
        for number, device in enumerate(parse.rows_of(timeline, "devices", "timeline.")):
            where = "timeline.devices[%d]." % number
            courses = [_counts(device, key, where) for key in ("live", "reserved", "limbo")]
            if any(len(course) != len(times) for course in courses):
                raise ReportError("%slive, reserved and limbo have other lengths than timeline.t" % where)
            index, api = parse.value_of(device, "device", int, where), parse.value_of(
                _named(device), "device_api", str, where
            )
            rows.extend(
                TimelineRow(t, bucket_ns, index, api, *amounts) for t, *amounts in zip(times, *courses)
            )
        return tuple(rows)

    @cached_property
    def phases(self) -> Tuple[Phase, ...]:
        """What the program named of its own time; none in reports of a memshim that did not know phases."""
        found = []
        for number, item in enumerate(parse.rows_of(self.data, "phases")):
            where = "phases[%d]." % number
            devices = tuple(
                _phase_device(device, "%sdevices[%d]." % (where, place))
                for place, device in enumerate(parse.rows_of(item, "devices", where))
            )
            found.append(
                parse.parse_row(Phase, {**item, "devices": []}, where, _PHASE)._replace(devices=devices)
            )
        return tuple(found)

    @cached_property
    def moments(self) -> Tuple[int, ...]:
        """The times, in nanoseconds, at which it is known what each site held; none in earlier reports."""
        timeline = parse.value_of(self.data, "timeline", dict, "")
        return tuple(_counts(timeline, "moments", "timeline.")) if "moments" in timeline else ()

    @cached_property
    def held(self) -> Tuple[Held, ...]:
        """What sites held at those moments, a row for each change."""
        rows: List[Held] = []
        for number, item in enumerate(parse.rows_of(self.data, "sites")):
            where = "sites[%d]." % number
            for pair in parse.value_of(item, "held", list, where) if "held" in item else ():
                if type(pair) is not list or [type(one) for one in pair] != [int, int]:
                    raise parse.fail(where + "held", pair, "a moment and bytes")
                if not 0 <= pair[0] < len(self.moments):
                    raise parse.fail(where + "held", pair, "of a moment that is there")
                rows.append(Held(parse.value_of(item, "id", int, where), self.moments[pair[0]], pair[1]))
        return tuple(rows)

    @cached_property
    def ranks(self) -> Tuple[Rank, ...]:
        """The processes of a job report; none in the report of one process."""
        items = parse.rows_of(self.data, "ranks")
        found = parse.parse_rows(Rank, {"ranks": [{**item, "devices": None} for item in items]}, "ranks", _RANK)
        return tuple(
            row._replace(devices=self._rank_devices(item, "ranks[%d]." % number)) if "devices" in item else row
            for number, (row, item) in enumerate(zip(found, items))
        )

    def frames(self, stack: int) -> Tuple[Frame, ...]:
        """The frames of a stack, innermost first."""
        nodes = self.stacks
        found: List[Frame] = []
        while 0 < stack < len(nodes) and len(found) < len(nodes):
            found.append(nodes[stack].frame)
            stack = nodes[stack].parent
        return tuple(found)

    def line(self, stack: int) -> Optional[Frame]:
        """The frame of a stack that is the program's own line, as the memshim command tells it; where there
        is none the innermost that is no machinery, or None."""
        return self._lines.of(stack)

    def callers(self, site: int) -> Optional[str]:
        """Who called the own line of a site (its number in `sites`), where others have that line in common:
        "kv (serve.py:6)". None where it is told by its line alone, or the memshim command has not told it."""
        numbers = parse.rows_of(self.data, "sites")[site].get("callers")
        if type(numbers) is not list:
            return None
        frames = [
            self._frames[number]
            for number in numbers
            if type(number) is int and 0 <= number < len(self._frames)
        ]
        return " <- ".join(
            "%s (%s)" % (frame.function or "?", frame.place) for frame in frames
        ) or None

    def _rank_devices(self, item: Mapping[str, Any], where: str) -> Tuple[RankDevice, ...]:
        """The devices of a process of a job: a row of job.devices each, and bytes."""
        job = parse.value_of(self.data, "job", dict, "")
        kinds = parse.parse_rows(_JobDevice, job, "devices", where="job.")
        found = []
        for row in parse.value_of(item, "devices", list, where):
            if type(row) is not list or [type(one) for one in row] != [int] * (len(RankDevice._fields) - 1):
                raise parse.fail(where + "devices", row, "a row of job.devices and five amounts of bytes")
            if not 0 <= row[0] < len(kinds):
                raise parse.fail(where + "devices", row, "of a device that is there")
            found.append(RankDevice(*kinds[row[0]], *row[1:]))
        return tuple(found)

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.stacks)

    @cached_property
    def _frames(self) -> List[Frame]:
        paths = [
            parse.value_of(module, "path", str, "modules[%d]." % n)
            for n, module in enumerate(parse.rows_of(self.data, "modules"))
        ]
        codes = parse.rows_of(self.data, "codes")
        made = []
        for number, item in enumerate(parse.rows_of(self.data, "frames")):
            where, module, code = "frames[%d]." % number, item.get("module"), item.get("code")
            more: Dict[str, Any] = {"module": None}
            if module is not None:
                if type(module) is not int or not 0 <= module < len(paths):
                    raise parse.fail(where + "module", module, "a module that is there")
                more["module"] = paths[module]
            if code is not None:
                if type(code) is not int or not 0 <= code < len(codes):
                    raise parse.fail(where + "code", code, "a code that is there")
                more.update(
                    file=item.get("file", codes[code].get("file")),
                    function=item.get("function", codes[code].get("function")),
                )
            made.append(parse.parse_row(Frame, {**item, **more}, where))
        return made

    def _with_api(self, key: str) -> Dict[str, Any]:
        """The rows of an array, each with the interface of its device."""
        return {key: [_named(item) for item in parse.rows_of(self.data, key)]}


def _named(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Only what is not CUDA's says whose it is."""
    return item if "device_api" in item else {**item, "device_api": "cuda"}


def _counts(item: Mapping[str, Any], key: str, where: str) -> List[int]:
    values: List[int] = parse.value_of(item, key, list, where)
    if not all(type(value) is int for value in values):
        raise parse.fail(where + key, values, "an array of whole numbers")
    return values


def _phase_device(item: Mapping[str, Any], where: str) -> PhaseDevice:
    flat = dict(_named(item))
    for key in ("peak", "growth"):
        amounts = parse.value_of(item, key + "_bytes", dict, where)
        flat.update({"%s_%s_bytes" % (key, which): amount for which, amount in amounts.items()})
    sites = parse.parse_rows(SiteBytes, item, "sites", where=where)
    return parse.parse_row(PhaseDevice, {**flat, "sites": []}, where, _PHASE_DEVICE)._replace(sites=sites)


def _refuse(word: str) -> NoReturn:
    raise ValueError("%s is no number of JSON's" % word)


def _sound(value: Any) -> Any:
    """Every text below, made sound."""
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, list):
        return [_sound(one) for one in value]
    if isinstance(value, dict):
        return {sound(key): _sound(one) for key, one in value.items()}
    return value


def parse_report(text: Union[bytes, bytearray], path: str = "") -> Report:
    """A report out of the bytes of its file."""
    shown = plain(path) or "the report"
    try:
        data = json.loads(bytes(text).decode("utf-8"), parse_constant=_refuse)
        if b"\\u" in text:
            data = _sound(data)
    except RecursionError:
        raise ReportError("%s is no report of memshim's: it is nested too deeply" % shown) from None
    except ValueError as error:
        raise ReportError("%s is no report of memshim's: %s" % (shown, plain(str(error)))) from None
    try:
        if type(data) is not dict:
            raise ReportError("it is no object")
        return Report(data, path)
    except ReportError as error:
        raise ReportError("%s is no report of memshim's that can be read: %s" % (shown, error)) from None


def read(path: Path) -> Report:
    """The report in a file. ReportError where it is none, OSError where it cannot be read."""
    name = os.fspath(path)
    with open(name, "rb") as file:
        return parse_report(file.read(), sound(name))
