"""Pictures of reports, by matplotlib."""

from typing import TYPE_CHECKING, Any, List, Tuple

from memshim.errors import missing
from memshim.text import label

if TYPE_CHECKING:
    from memshim.load import Reports

_MIB = 1 << 20


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError:
        raise missing("matplotlib", "plot") from None
    return pyplot.subplots()[1]


class Plot:
    """The pictures of some reports. Each takes the axes to draw into, or makes its own, and returns them."""

    def __init__(self, reports: "Reports") -> None:
        self._reports = reports

    def __call__(self, axes: Any = None) -> Any:
        """The same as timeline()."""
        return self.timeline(axes)

    def timeline(self, axes: Any = None) -> Any:
        """What was live on each device over time, and what the program had reserved, dashed."""
        axes = _axes(axes)
        for report in self._reports:
            courses = {(row.device_api, row.device): row for row in report.timeline}
            for api, device in courses:
                rows = [row for row in report.timeline if (row.device_api, row.device) == (api, device)]
                times = [row.t_ns / 1e9 for row in rows]
                whose = "" if len(self._reports) == 1 else " of %s" % report.path
                name = label("%s %d%s" % (api, device, whose))
                lines = axes.step(times, [row.live_bytes / _MIB for row in rows], where="post", label=name)
                if any(row.reserved_bytes for row in rows):
                    reserved = [row.reserved_bytes / _MIB for row in rows]
                    axes.step(
                        times,
                        reserved,
                        where="post",
                        linestyle="--",
                        color=lines[0].get_color(),
                        label=name + ", reserved",
                    )
        if axes.get_lines():
            axes.legend()
        return _named(axes, "seconds", "MiB", "live memory")

    def sites(self, axes: Any = None, by: str = "at_peak_bytes", top: int = 10) -> Any:
        """The call sites with most of one of their amounts: at_peak_bytes, live_bytes, total_bytes,
        max_bytes."""
        allowed = ("at_peak_bytes", "live_bytes", "total_bytes", "max_bytes")
        if by not in allowed:
            raise ValueError("by is %r: %s are allowed" % (by, ", ".join(allowed)))
        bars: List[Tuple[int, str]] = []
        for report in self._reports:
            for site in report.sites:
                own = report.line(site.stack)
                bars.append(
                    (
                        getattr(site, by),
                        "%s, %s" % (site.api, own.place or own.function or "?") if own else site.api,
                    )
                )
        return _bars(_axes(axes), bars, top, by.replace("_bytes", "").replace("_", " ") + ", by call site")

    def phases(self, axes: Any = None, top: int = 10) -> Any:
        """The most that was live in the phases of each name, those with most."""
        bars = [
            (device.peak_max_bytes, phase.name)
            for report in self._reports
            for phase in report.phases
            for device in phase.devices
        ]
        return _bars(_axes(axes), bars, top, "peak, by phase")

    def leaks(self, axes: Any = None, top: int = 10) -> Any:
        """What was not freed, by the line that allocated it; neither what is suppressed nor a framework's
        cache."""
        bars = []
        for report in self._reports:
            for leak in report.leaks:
                if leak.leak_class in ("at_exit", "growing") and 0 <= leak.site < len(report.sites):
                    site = report.sites[leak.site]
                    own = report.line(site.stack)
                    bars.append(
                        (
                            leak.bytes,
                            "%s, %s" % (site.api, own.place or own.function or "?") if own else site.api,
                        )
                    )
        return _bars(_axes(axes), bars, top, "never freed, by call site")


def _bars(axes: Any, bars: List[Tuple[int, str]], top: int, title: str) -> Any:
    bars = sorted(bars, key=lambda bar: -bar[0])[:top]
    axes.barh(range(len(bars)), [amount / _MIB for amount, _ in bars])
    axes.set_yticks(range(len(bars)))
    axes.set_yticklabels([label(name) for _, name in bars])
    axes.invert_yaxis()
    return _named(axes, "MiB", "", title)


def _named(axes: Any, x: str, y: str, title: str) -> Any:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    return axes
