"""What a notebook shows of reports: a table of processes, and the call sites of the fullest. Every text is
escaped."""

from typing import List, Sequence

from memshim.report import Report
from memshim.rows import Site
from memshim.sizes import format_size
from memshim.text import escaped

_PROCESSES_MAX = 50
_SITES_MAX = 5


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = "".join("<tr>%s</tr>" % "".join("<td>%s</td>" % escaped(cell) for cell in row) for row in rows)
    head = "".join("<th>%s</th>" % escaped(name) for name in heads)
    return "<table><caption>%s</caption><thead><tr>%s</tr></thead><tbody>%s</tbody></table>" % (
        escaped(caption),
        head,
        cells,
    )


def _peak(report: Report) -> int:
    return max((device.peak_live_bytes for device in report.devices), default=0)


def _reserved(report: Report) -> int:
    """The most that the program had of a device. Reports of before tell no more than the pool's."""
    return max(
        (
            max(device.peak_held_bytes or 0, device.peak_reserved_bytes, device.peak_live_bytes)
            for device in report.devices
        ),
        default=0,
    )


def _leaked(report: Report) -> int:
    return sum(leak.bytes for leak in report.leaks if leak.leak_class in ("at_exit", "growing"))


def _process(report: Report) -> List[str]:
    run = report.run
    return [
        report.path,
        run.host,
        str(run.pid),
        "" if run.rank is None else str(run.rank),
        format_size(_peak(report)),
        format_size(_reserved(report)),
        format_size(_leaked(report)),
        run.end_reason,
    ]


def _site(report: Report, site: Site) -> List[str]:
    own = report.line(site.stack)
    return [
        format_size(site.at_peak_bytes),
        site.api,
        (own.function or "") if own else "",
        own.place if own else "",
    ]


def report_html(reports: Sequence[Report]) -> str:
    """The view of some reports."""
    shown = sorted(reports, key=lambda report: -_peak(report))[:_PROCESSES_MAX]
    left_out = len(reports) - len(shown)
    caption = "memshim: %d process%s" % (len(reports), "" if len(reports) == 1 else "es")
    heads = ("report", "host", "pid", "rank", "peak", "reserved", "leaked", "ended by")
    text = _table(
        caption + (", the fullest %d" % len(shown) if left_out else ""),
        heads,
        [_process(report) for report in shown],
    )
    if shown:
        fullest = shown[0]
        sites = sorted(
            (site for site in fullest.sites if site.at_peak_bytes), key=lambda site: -site.at_peak_bytes
        )[:_SITES_MAX]
        text += _table(
            "at the peak of %s" % fullest.path,
            ("held", "by", "in", "at"),
            [_site(fullest, site) for site in sites],
        )
    return text
