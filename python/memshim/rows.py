"""The rows of a report, typed. Amounts are integers, and their names end in their unit: _bytes, _ns; _count
and vendor_calls are numbers of things. What an earlier memshim did not write yet, or what is not known, is
None. docs/user/report.md has the meaning of each name.
"""

from typing import Mapping, NamedTuple, Optional, Tuple

__all__ = [
    "Device",
    "Frame",
    "Held",
    "Leak",
    "Parts",
    "Phase",
    "PhaseDevice",
    "Rank",
    "RankDevice",
    "Run",
    "Site",
    "SiteBytes",
    "StackNode",
    "TimelineRow",
]


class Run(NamedTuple):
    """The process, and how it ended."""

    argv: Tuple[str, ...]
    exe: str
    cwd: str
    host: str
    pid: int
    ppid: int
    start_unix_ns: int
    end_unix_ns: int
    end_reason: str
    complete: bool
    symbolized: bool
    rank: Optional[int] = None
    local_rank: Optional[int] = None
    world_size: Optional[int] = None
    job_id: Optional[str] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    view: Optional[str] = None
    id: Optional[str] = None


class Parts(NamedTuple):
    """What the pool's reserved memory is in use for; the parts add up to it."""

    requested_bytes: int
    rounding_bytes: int
    limbo_bytes: int
    cached_bytes: int
    stranded_bytes: int
    pinned_bytes: int


class Device(NamedTuple):
    """A device: what was live on it, what of it the pool reserved, and what the program held of it in all."""

    device: int
    device_api: str
    name: str
    total_bytes: int
    granularity_bytes: int
    live_bytes: int
    live_count: int
    peak_live_bytes: int
    peak_ns: int
    reserved_bytes: int
    peak_reserved_bytes: int
    followed_bytes: int
    reserved_parts: Parts
    peak_parts: Parts
    vendor_calls: int
    vendor_calls_saved: int
    uuid: Optional[str] = None
    untracked_bytes: Optional[int] = None
    allocated_bytes: Optional[int] = None
    allocated_count: Optional[int] = None
    held_bytes: Optional[int] = None
    peak_held_bytes: Optional[int] = None


class Frame(NamedTuple):
    """A place in code, or (kind `mark`) a word on those further out. `module` is the file that the code is
    in."""

    kind: str
    function: Optional[str] = None
    file: Optional[str] = None
    line: Optional[int] = None
    inlined: bool = False
    module: Optional[str] = None
    rel_pc: Optional[str] = None
    mark: Optional[str] = None
    name: Optional[str] = None

    @property
    def place(self) -> str:
        """file:line, or what is known of it."""
        if self.file:
            return self.file if self.line is None else "%s:%d" % (self.file, self.line)
        return self.module or ""


class StackNode(NamedTuple):
    """A stack: its frame, called from the stack `parent`. 0 is no stack and ends every one."""

    stack: int
    parent: int
    frame: Frame


class Site(NamedTuple):
    """One function that allocated, called by one stack, on one device, of one kind of memory."""

    site: int
    hash: str
    stack: int
    device: int
    device_api: str
    api: str
    total_bytes: int
    total_count: int
    live_bytes: int
    live_count: int
    at_peak_bytes: int
    max_bytes: int
    lifetime_ns_sum: int
    rounding_bytes: int
    size_hist: Mapping[int, int]
    max_is_bound: bool = False
    kind: Optional[str] = None
    owner: Optional[str] = None
    requested_bytes: Optional[int] = None
    grew_bytes: Optional[int] = None
    freed_count: Optional[int] = None
    first_ns: Optional[int] = None
    last_ns: Optional[int] = None
    estimated_total_bytes: Optional[int] = None
    estimated_total_count: Optional[int] = None
    estimated_live_bytes: Optional[int] = None
    estimated_live_count: Optional[int] = None


class Leak(NamedTuple):
    """What a site allocated and had not freed. `leak_class` is at_exit, growing, or, which count as no leak,
    suppressed and cache. `pattern` says in which way: growing, lost, held, or, which count as no leak either,
    interrupted, context and live."""

    site: int
    bytes: int
    block_count: int
    leak_class: str
    first_ns: int
    last_ns: int
    device: Optional[int] = None
    device_api: str = "cuda"
    kind: Optional[str] = None
    died_with_context_bytes: Optional[int] = None
    framework: Optional[str] = None
    pattern: Optional[str] = None


class TimelineRow(NamedTuple):
    """The most in the stretch of `bucket_ns` that begins at `t_ns`, on one device."""

    t_ns: int
    bucket_ns: int
    device: int
    device_api: str
    live_bytes: int
    reserved_bytes: int
    limbo_bytes: int


class SiteBytes(NamedTuple):
    """What a site held at some moment."""

    site: int
    bytes: int


class PhaseDevice(NamedTuple):
    """What all phases of one name were on one device."""

    device: int
    device_api: str
    phase_count: int
    peak_min_bytes: int
    peak_median_bytes: int
    peak_max_bytes: int
    peak_ns: int
    growth_min_bytes: int
    growth_median_bytes: int
    growth_max_bytes: int
    growth_total_bytes: int
    trend_bytes: int
    allocated_bytes: int
    allocated_count: int
    freed_bytes: int
    freed_count: int
    sites: Tuple[SiteBytes, ...]


class Phase(NamedTuple):
    """All phases, and marks, of one name."""

    name: str
    source: str
    domain: Optional[str]
    phase_count: int
    open_count: int
    mark_count: int
    first_ns: int
    last_ns: int
    total_ns: int
    devices: Tuple[PhaseDevice, ...]


class Held(NamedTuple):
    """What a site held from `t_ns` on, one of the moments of the report, until its next row; before its first
    nothing."""

    site: int
    t_ns: int
    held_bytes: int


class RankDevice(NamedTuple):
    """What a process of a job had on a device, which is named as `memshim check` names it: "0", "hip 1"."""

    device: str
    device_bytes: int
    peak_bytes: int
    leaked_bytes: int
    growth_bytes: int
    stranded_bytes: int
    reserved_bytes: int


class Rank(NamedTuple):
    """A process of a job report. Peak and reserved memory are those of its fullest device, the others of all
    its devices; `job_group` is a row of job.groups, which are in `data`."""

    host: str
    pid: int
    start_unix_ns: int
    job_group: int
    peak_bytes: int
    reserved_bytes: int
    live_bytes: int
    leaked_bytes: int
    call_count: int
    oom_count: int
    rank: Optional[int] = None
    growth_bytes: Optional[int] = None
    devices: Optional[Tuple[RankDevice, ...]] = None
