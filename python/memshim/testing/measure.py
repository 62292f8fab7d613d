"""What one test did with device memory: a phase of its own tells the peak, and the record before and after it
what of each call site is still live. What others held before it does not count."""

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from memshim.report import Report
from memshim.rows import Frame, Phase, Site
from memshim.sizes import Size, format_size
from memshim.testing.ledger import Ledger, Unread
from memshim.text import plain

_SITES_SHOWN = 5
# Kinds of memory that take a device's own (docs/user/report.md).
_DEVICE_KINDS = ("device", "async", "managed", "array", "handle", "graph")

Where = Tuple[str, int]  # a device: its interface, and its number there


class Held(NamedTuple):
    """What a call site held for a test."""

    site: int
    bytes: int
    block_count: int


class Use(NamedTuple):
    """What a test did on one device."""

    where: Where
    total_bytes: int
    peak_bytes: int
    at_peak: List[Held]
    left: List[Held]


class Measured(NamedTuple):
    """What a test did: on each device that was used by then."""

    report: Optional[Report]
    devices: List[Use]


class _Before(NamedTuple):
    live_bytes: Dict[Where, int]
    peak_bytes: Dict[Where, int]
    sites: Dict[int, Tuple[int, int]]


def _live(report: Optional[Report]) -> _Before:
    if report is None:
        return _Before({}, {}, {})
    live_bytes = {(device.device_api, device.device): device.live_bytes for device in report.devices}
    peak_bytes = {(device.device_api, device.device): device.peak_live_bytes for device in report.devices}
    return _Before(live_bytes, peak_bytes, {site.site: (site.live_bytes, site.live_count) for site in report.sites})


class Measurement:
    """begin() before the test, stop() after it. A site has the same number in both records: rows of a ledger
    never move."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self._ledger, self._name = ledger, ledger.name_of_its_own(name)
        self._before = _Before({}, {}, {})
        self._phase = 0

    def begin(self) -> None:
        """As of now it counts."""
        self._before = _live(self._ledger.read())
        self._phase = self._ledger.begin(self._name)

    def stop(self) -> None:
        """Until now it did."""
        self._ledger.end(self._phase)

    def read(self) -> Measured:
        """What that was, right after stop(). Unread where it cannot be told."""
        report = self._ledger.read()
        if report is None:
            return Measured(None, [])
        phase = next(
            (phase for phase in report.phases if phase.name == self._name and phase.source == "memshim"), None
        )
        if phase is None or phase.open_count:
            raise Unread("there were more phases than memshim tells apart (docs/user/phases.md)")
        return Measured(report, list(self._uses(report, phase)))

    def _uses(self, report: Report, phase: Phase) -> Iterator[Use]:
        for device in report.devices:
            where = (device.device_api, device.device)
            row = next((one for one in phase.devices if (one.device_api, one.device) == where), None)
            here = [
                site
                for site in report.sites
                if (site.device_api, site.device) == where and (site.kind or "device") in _DEVICE_KINDS
            ]
            peak_bytes, held = (row.peak_max_bytes, [tuple(one) for one in row.sites]) if row else (0, [])
            if device.peak_live_bytes > max(peak_bytes, self._before.peak_bytes.get(where, 0)):
                # The device's own peak is the test's: one that is first used in a phase has no other there.
                peak_bytes, held = device.peak_live_bytes, [(site.site, site.at_peak_bytes) for site in here]
            yield Use(
                where,
                device.total_bytes,
                max(0, peak_bytes - self._before.live_bytes.get(where, 0)),
                _most([Held(site, held_bytes - self._live_before(site), 0) for site, held_bytes in held]),
                _most([self._grown(site) for site in here]),
            )

    def _live_before(self, site: int) -> int:
        return self._before.sites.get(site, (0, 0))[0]

    def _grown(self, site: Site) -> Held:
        live_bytes, live_count = self._before.sites.get(site.site, (0, 0))
        return Held(site.site, site.live_bytes - live_bytes, max(1, site.live_count - live_count))


def _most(held: List[Held]) -> List[Held]:
    return sorted((one for one in held if one.bytes > 0), key=lambda one: (-one.bytes, one.site))


class Reader(NamedTuple):
    """Who reads what a test fails with: files below `folder` are told from there; where `file`, the test's,
    called is told too."""

    ledger: Ledger
    folder: str
    file: str

    def place(self, frame: Frame) -> str:
        """file:line."""
        below = self.folder.rstrip("/") + "/"
        return plain(frame.place[len(below) :] if frame.place.startswith(below) else frame.place)

    def site(self, report: Report, held: Held) -> str:
        """A line for one call site."""
        site = report.sites[held.site]
        own = report.line(site.stack)
        text = "%12s  %s" % (format_size(held.bytes), plain(site.api))
        if own:
            text += ", in %s at %s" % (plain(own.function or "?"), self.place(own))
        if own and own.file != self.file:
            caller = next((frame for frame in report.frames(site.stack) if frame.file == self.file), None)
            text += ", called at %s" % self.place(caller) if caller else ""
        return text

    def sites(self, report: Report, held: List[Held]) -> List[str]:
        """A line for each of those that held most, the largest first."""
        lines = [self.site(report, one) for one in held[:_SITES_SHOWN]]
        rest = held[_SITES_SHOWN:]
        if rest:
            lines.append(
                "%12s  at %d more call sites" % (format_size(sum(one.bytes for one in rest)), len(rest))
            )
        return lines

    def head(self, report: Report, held: List[Held], text: str) -> str:
        """What is wrong, behind file:line of what held most, as editors know it."""
        own = report.line(report.sites[held[0].site].stack) if held else None
        return "%s: %s" % (self.place(own), text) if own and own.place else text


def over_memory(measured: Measured, limit: Size, reader: Reader) -> Optional[str]:
    """What the test fails with if its peak on a device was over the limit; None if it holds."""
    for use in measured.devices:
        allowed = limit.of(use.total_bytes)
        if allowed is not None and use.peak_bytes > allowed and measured.report is not None:
            report = reader.ledger.named(measured.report)
            text = "the test held %s of memory on %s %d at its peak, limit_gpu_memory allows %s" % (
                format_size(use.peak_bytes),
                *use.where,
                format_size(allowed),
            )
            text += _exact(use.peak_bytes, allowed)
            return "\n".join([reader.head(report, use.at_peak, text), *reader.sites(report, use.at_peak)])
    return None


def over_leaks(measured: Measured, limit: Size, reader: Reader) -> Optional[str]:
    """What the test fails with if it left more than the limit on a device; None if it holds. What a
    framework's cache keeps, and what MEMSHIM_SUPPRESSIONS names, is no leak."""
    for use in measured.devices:
        allowed = limit.of(use.total_bytes)
        if allowed is None or measured.report is None or sum(one.bytes for one in use.left) <= allowed:
            continue
        report = reader.ledger.named(measured.report)
        kept = {leak.site for leak in report.leaks if leak.leak_class in ("cache", "suppressed")}
        left = [one for one in use.left if one.site not in kept]
        left_bytes = sum(one.bytes for one in left)
        if left_bytes > allowed:
            blocks = sum(one.block_count for one in left)
            text = "the test left %s of memory on %s %d in %d block%s, limit_gpu_leaks allows %s" % (
                format_size(left_bytes),
                *use.where,
                blocks,
                "" if blocks == 1 else "s",
                format_size(allowed),
            )
            text += _exact(left_bytes, allowed)
            return "\n".join([reader.head(report, left, text), *reader.sites(report, left)])
    return None


def _exact(found_bytes: int, allowed_bytes: int) -> str:
    """Where both look alike as people write them, the bytes."""
    return (
        " (%d bytes, not %d)" % (found_bytes, allowed_bytes)
        if format_size(found_bytes) == format_size(allowed_bytes)
        else ""
    )
