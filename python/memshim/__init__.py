"""memshim: reads the reports that memshim writes of a program's device memory.

    reports = memshim.load("memshim.*.json")
    reports.sites, reports.devices, reports.stacks   # pandas frames
    reports.timeline, reports.phases, reports.leaks
    reports.plot()                                   # matplotlib
    report = memshim.read("memshim.node.4711.json")  # typed rows
    for event in memshim.Trace("r.trace"): ...       # what memshim run --trace recorded

Bytes and nanoseconds are integers, and the names of such amounts end in _bytes or _ns (or are that word).
Reading needs the standard library alone; pandas, matplotlib and Dask are imported where they are used.
memshim.testing is the pytest plugin."""

from memshim import rows
from memshim.errors import MissingPackage, ReportError
from memshim.load import DaskReports, Reports, load
from memshim.report import Report, read
from memshim.rows import *
from memshim.sizes import Size, format_size, parse_size
from memshim.tables import TABLES, frame
from memshim.trace import Event, Trace

__version__ = "0.9.0"

__all__ = [
    "TABLES",
    "DaskReports",
    "Event",
    "MissingPackage",
    "Report",
    "ReportError",
    "Reports",
    "Size",
    "Trace",
    "format_size",
    "frame",
    "load",
    "parse_size",
    "read",
]
__all__ += rows.__all__
