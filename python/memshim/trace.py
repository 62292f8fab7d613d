"""Recorded traces (docs/user/trace.md), event by event: as memshim writes them, compressed, or as lines."""

import os
import re
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from memshim.errors import ReportError, missing

KINDS = ("device", "async", "managed", "array", "handle", "graph", "inner")
SOURCES = ("memshim", "nvtx", "roctx", "mstx")
APIS = ("cuda", "hip", "acl")
LAYERS = ("blocks", "tensors")
_INNER = 6
_TIMED = frozenset((1, 2, 3, 8, 9, 10))
_PARTS = 4
_FIRST_WORDS = b"# memshim "


class Event(NamedTuple):
    """What happened: `op` is alloc, free, begin, end or mark, the last three of phases."""

    ns: int
    op: str
    layer: str  # "blocks" or "tensors"; of a phase ""
    id: int
    bytes: int
    stream: int
    site: Optional[int]  # `row` of the report's sites, or `id` where that has none
    address: int
    kind: str  # "" where the trace does not say
    thread: int  # 0 where the trace does not say
    phase: Optional[int] = None  # of a phase: Trace.phases has its name


class Stream(NamedTuple):
    api: str
    device: int
    handle: int
    thread: int


class Phase(NamedTuple):
    source: str
    domain: str
    name: str


class _Cut(Exception):
    """The file ends within a record."""


def _decompressor() -> Any:
    """Python's own, or a package's."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        return zstd.ZstdDecompressor()
    except ImportError:
        pass
    try:
        import zstandard  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise missing("zstandard", "trace") from None
    return zstandard.ZstdDecompressor().decompressobj()


def _unzstd(path: str, data: bytes) -> bytes:
    """A trace is one frame, whole."""
    reader = _decompressor()
    try:
        text = bytes(reader.decompress(data))
    except Exception as error:  # each module has an error of its own
        raise ReportError("%s is compressed, and damaged: %s" % (path, error)) from None
    if not reader.eof:
        raise ReportError("%s is compressed, and cut off" % path)
    if reader.unused_data:
        raise ReportError("%s is compressed, and has something behind its end: two traces put together?" % path)
    return text


class _Reader:
    """Numbers and bytes of records."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def number(self) -> int:
        number = shift = 0
        while self.at < len(self.data):
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
            if shift > 63:
                raise ValueError
        raise _Cut

    def signed(self) -> int:
        number = self.number()
        return number >> 1 ^ -(number & 1)

    def text(self) -> str:
        count = self.number()
        if count >= 256:
            raise ValueError
        if self.at + count > len(self.data):
            raise _Cut
        self.at += count
        return self.data[self.at - count : self.at].decode("utf-8", "replace")


class _Records:
    """The binary form, from one part on."""

    def __init__(self, trace: "Trace") -> None:
        self.trace = trace
        self.ticks = self.thread = self.part = self.part_ticks = 0
        self.ids, self.before = [0, 0], [0, 0]
        self.shapes: Dict[int, List[Any]] = {}
        self.live: Tuple[Dict[int, Event], Dict[int, Event]] = ({}, {})
        self.open: Dict[int, int] = {}
        self.is_begun = self.is_gathering = False
        self.listed: List[Event] = []
        self.waiting: List[Event] = []

    def block(self, reader: _Reader) -> Tuple[int, List[Any]]:
        """A shape with its new address, and its layer."""
        word = reader.number()
        shape = self.shapes[word >> 2]
        if word & 3:
            far = reader.signed()
            shape[4] = (shape[4] + (far * 256 if word & 3 == 1 else far)) % (1 << 64)
        return (1 if shape[3] == _INNER else 0), shape

    def event(self, op: str, layer: int, identity: int, shape: List[Any], thread: int) -> Event:
        size, stream, site, kind, address = shape
        return Event(
            self.ticks << 10, op, LAYERS[layer], identity, size, stream, site, address, KINDS[kind], thread
        )

    def phase(self, op: str, identity: int, phase: int) -> Event:
        return Event(self.ticks << 10, op, "", identity, 0, 0, None, 0, "", self.thread, phase)

    def begin_part(self, reader: _Reader) -> None:
        part, ticks, blocks, pieces, events = (reader.number() for _ in range(5))
        if self.is_begun and (part != self.part + 1 or [blocks, pieces] != self.ids):
            raise ValueError
        if not self.is_begun:
            self.trace.fallen = events
        self.is_gathering = not self.is_begun and part > 0
        self.is_begun = True
        self.part, self.ticks, self.part_ticks, self.thread = part, ticks, ticks, 0
        self.ids, self.before = [blocks, pieces], [blocks, pieces]
        self.shapes = {}

    def free(self, layer: int, reader: _Reader) -> Optional[Event]:
        ago = reader.number()
        born = self.live[layer].pop(self.ids[layer] - ago, None)
        if born:
            return born._replace(ns=self.ticks << 10, op="free", thread=self.thread)
        if self.trace.fallen or self.is_gathering:
            return None
        raise ValueError

    def alloc(self, reader: _Reader) -> Event:
        layer, shape = self.block(reader)
        self.ids[layer] += 1
        event = self.event("alloc", layer, self.ids[layer], shape, self.thread)
        self.live[layer][event.id] = event
        return event

    def list_live(self, reader: _Reader) -> None:
        """Of the first part alone: it has not been told before."""
        before = reader.number()
        layer, shape = self.block(reader)
        if self.is_gathering:
            event = self.event("alloc", layer, self.before[layer] - before, shape, 0)
            event = event._replace(ns=self.part_ticks << 10)
            self.live[layer][event.id] = event
            self.listed.append(event)

    def introduce(self, record: int, reader: _Reader) -> None:
        if record == 4:
            number, size, stream, site, kind = (reader.number() for _ in range(5))
            if kind > _INNER:
                raise ValueError
            self.shapes[number] = [size, stream, site - 1 if site else None, kind, 0]
        elif record == 5:
            self.thread = reader.number()
        elif record == 6:
            number, api = reader.number(), APIS[reader.number()]
            self.trace.streams[number] = Stream(api, reader.signed(), reader.number(), reader.number())
        else:
            number, source = reader.number(), SOURCES[reader.number()]
            self.trace.phases[number] = Phase(source, reader.text(), reader.text())

    def of_phase(self, record: int, reader: _Reader) -> Optional[Event]:
        if record == 10:
            return self.phase("mark", 0, reader.number())
        if record == 8:
            phase, _, identity = reader.number(), reader.number(), reader.number()
            if identity in self.open:
                return None
            self.open[identity] = phase
            return self.phase("begin", identity, phase)
        identity = reader.number()
        began = self.open.pop(identity, None)
        return None if began is None else self.phase("end", identity, began)

    def record(self, reader: _Reader) -> Optional[Event]:
        """The next one, which is not an end: its event, if it is one."""
        first = reader.data[reader.at]
        reader.at += 1
        record, code = first & 15, first >> 4
        if record in _TIMED:
            self.ticks += code if code < 15 else 15 + reader.number()
        elif code:
            raise ValueError
        if record == 1:
            return self.alloc(reader)
        if record in (2, 3):
            return self.free(record - 2, reader)
        if 4 <= record <= 7:
            self.introduce(record, reader)
        elif record in (8, 9, 10):
            return self.of_phase(record, reader)
        elif record == 11:
            self.begin_part(reader)
        elif record == 12:
            self.list_live(reader)
        elif record == 13:
            self.is_gathering = False
        else:
            raise ValueError
        return None

    def gathered(self) -> Iterator[Event]:
        """What was live as the first part began, then what happened while it was listed."""
        self.is_gathering = False
        held, self.listed, self.waiting = self.listed + self.waiting, [], []
        return iter(held)

    def events(self, data: bytes, start: int, part_bytes: int) -> Iterator[Event]:
        reader = _Reader(data, start)
        while reader.at < len(data):
            at = reader.at
            if data.startswith(_FIRST_WORDS, at if data[at] else at + 1):
                raise self.trace.another()
            if not data[at]:
                reader.at = at - (at - start) % part_bytes + part_bytes if part_bytes else len(data)
                if reader.at >= len(data) or data[reader.at] != 11:
                    break
                continue
            was_gathering = self.is_gathering
            try:
                event = self.record(reader)
            except _Cut:
                break
            except (ValueError, LookupError):
                raise ReportError(
                    "%s: byte %d is damaged: no record of a trace" % (self.trace.path, at)
                ) from None
            if was_gathering and not self.is_gathering:
                yield from self.gathered()
            if event and self.is_gathering:
                self.waiting.append(event)
            elif event:
                yield event
        yield from self.gathered()


class Trace:
    """A recorded trace: iterating gives its events in order. `streams` and `phases` have names as far as it was read.

    `fallen` says how many events came before, which have fallen out (MEMSHIM_TRACE_MAX)."""

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        self.path = os.fspath(path)
        with open(self.path, "rb") as file:
            self._data = self._read(file)
        lines = self._data[:4096].decode("utf-8", "replace").split("\n")
        head = re.match(r"# memshim ([^,:]+)(?:, run ([0-9a-f]+))?: (.*), process (\d+)$", lines[0])
        if not head:
            raise ReportError("%s does not begin as a trace of memshim's" % self.path)
        self.version, self.program, self.pid = head[1], head[3], int(head[4])
        self.run = int(head[2] or "0", 16)
        self.summary = lines[2][2:].strip() if len(lines) > 2 else ""
        self.fallen = 0
        self.streams: Dict[int, Stream] = {0: Stream("cuda", 0, 0, 0)}
        self.phases: Dict[int, Phase] = {}
        form = re.match(r"# binary (\d+)(?:, (\d+) parts of (\d+) bytes)?$", lines[1] if len(lines) > 1 else "")
        if form and form[1] != "1":
            raise ReportError("%s: another version of memshim wrote it" % self.path)
        self._is_binary, self._part_bytes = bool(form), int(form[3] or 0) if form else 0
        self._start = 0
        for _ in range(3 if form else 0):
            self._start = self._data.find(b"\n", self._start) + 1

    def _read(self, file: BinaryIO) -> bytes:
        data = file.read()
        self._is_packed = data.startswith(b"\x28\xb5\x2f\xfd")
        return _unzstd(self.path, data) if self._is_packed else data

    def another(self) -> ReportError:
        """What is wrong where a second trace begins."""
        return ReportError("%s: another trace begins behind the first: two were put together" % self.path)

    def _in_order(self) -> bytes:
        """The parts of a file that has them in turns, as they were written."""
        if not self._part_bytes or self._is_packed:
            return self._data
        places = {}
        for place in range(_PARTS):
            at = self._start + place * self._part_bytes
            if self._data[at : at + 1] == b"\x0b":
                places[_Reader(self._data, at + 1).number()] = at
        numbers = [max(places)] if places else []
        while numbers and numbers[0] - 1 in places:
            numbers.insert(0, numbers[0] - 1)
        return self._data[: self._start] + b"".join(
            self._data[places[number] : places[number] + self._part_bytes] for number in numbers
        )

    def __iter__(self) -> Iterator[Event]:
        if self._is_binary:
            return _Records(self).events(self._in_order(), self._start, self._part_bytes)
        return self._lines()

    def _lines(self) -> Iterator[Event]:
        thread = 0
        live: Dict[Tuple[str, str], Event] = {}
        open_phases: Dict[int, int] = {}
        lines = self._data.split(b"\n")
        for number, line in enumerate(lines[:-1], 1):
            words = line.decode("utf-8", "replace").split()
            if number > 1 and line.startswith(_FIRST_WORDS):
                raise self.another()
            try:
                if line.startswith(b"#"):
                    event, thread = self._remark(words, thread, open_phases)
                else:
                    event = self._event(words, thread, live)
            except (ValueError, LookupError):
                raise ReportError("%s: line %d is no line of a trace" % (self.path, number)) from None
            if event:
                yield event

    @staticmethod
    def _event(words: List[str], thread: int, live: Dict[Tuple[str, str], Event]) -> Event:
        ns, identity, size, stream = int(words[0]) * 1000, int(words[2]), int(words[3]), int(words[4])
        layer = LAYERS["af".find(words[1]) < 0]
        if words[1] in "fF":
            born = live.pop((layer, words[2]), None)
            if born:
                return born._replace(ns=ns, op="free", thread=thread)
            return Event(ns, "free", layer, identity, size, stream, None, 0, "", thread)
        if words[1] not in "aA":
            raise ValueError
        site = int(words[5]) if len(words) > 6 and words[5] != "-" else None
        address = int(words[6], 16) if len(words) > 6 else 0
        kind = words[7] if len(words) > 7 else ""
        event = Event(ns, "alloc", layer, identity, size, stream, site, address, kind, thread)
        live[layer, words[2]] = event
        return event

    def _remark(
        self, words: List[str], thread: int, open_phases: Dict[int, int]
    ) -> Tuple[Optional[Event], int]:
        word = words[1] if len(words) > 2 else ""
        if word == "thread" and len(words) == 3:
            return None, int(words[2])
        if word == "fallen":
            self.fallen = int(words[2])
        elif word == "stream":
            found = re.match(
                r"# stream (\d+): (?:(\S+) )?device (-?\d+)(?:, handle (0x[0-9a-f]+))?(?:, thread (\d+))?",
                " ".join(words),
            )
            if found:
                self.streams[int(found[1])] = Stream(
                    found[2] or "cuda", int(found[3]), int(found[4] or "0", 16), int(found[5] or 0)
                )
        elif word == "phase" and len(words) == 6:
            texts = [
                "" if text == "-" else re.sub(rb"%(..)", lambda m: bytes([int(m[1], 16)]), text.encode()).decode("utf-8", "replace")
                for text in words[4:]
            ]
            self.phases[int(words[2].rstrip(":"))] = Phase(words[3], texts[0], texts[1])
        elif word in ("begin", "end", "mark"):
            return self._phase(word, [int(number) for number in words[2:]], thread, open_phases), thread
        return None, thread

    @staticmethod
    def _phase(op: str, numbers: List[int], thread: int, open_phases: Dict[int, int]) -> Event:
        identity, phase = 0, numbers[1]
        if op == "begin":
            identity = numbers[2]
            open_phases[identity] = phase
        elif op == "end":
            identity, phase = phase, open_phases.pop(phase)
        return Event(numbers[0] * 1000, op, "", identity, 0, 0, None, 0, "", thread, phase)
