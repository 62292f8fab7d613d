"""memshim.load: files into tables, at once by pandas or file by file by Dask; both have the same names."""

import glob
import os
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Sequence, Tuple, Union, overload

from memshim.errors import ReportError, missing
from memshim.report import Path, Report, read
from memshim.tables import frame, frame_of

if TYPE_CHECKING:
    from typing import Literal

    from memshim.plot import Plot


class Reports(Sequence[Report]):
    """Reports that were read: a sequence of them, and as pandas frames with a row of whichever report it
    is."""

    def __init__(self, reports: Iterable[Report]) -> None:
        self._reports: Tuple[Report, ...] = tuple(reports)

    def __len__(self) -> int:
        return len(self._reports)

    def __iter__(self) -> Iterator[Report]:
        return iter(self._reports)

    @overload
    def __getitem__(self, place: int) -> Report: ...

    @overload
    def __getitem__(self, place: slice) -> "Reports": ...

    def __getitem__(self, place: Union[int, slice]) -> Union[Report, "Reports"]:
        return Reports(self._reports[place]) if isinstance(place, slice) else self._reports[place]

    def __repr__(self) -> str:
        return "<memshim.Reports of %d>" % len(self)

    def _repr_html_(self) -> str:
        from memshim.notebook import report_html

        return report_html(self._reports)

    def __getstate__(self) -> Tuple[Report, ...]:
        return self._reports

    def __setstate__(self, reports: Tuple[Report, ...]) -> None:
        self._reports = reports

    @cached_property
    def devices(self) -> Any:
        """What was live and reserved on each device."""
        return frame_of(self, "devices")

    @cached_property
    def sites(self) -> Any:
        """The call sites, each with the program's own line (function, file, line)."""
        return frame_of(self, "sites")

    @cached_property
    def stacks(self) -> Any:
        """The trees of stacks: a row for each stack, with its caller (`parent`, 0 for none) and its frame."""
        return frame_of(self, "stacks")

    @cached_property
    def timeline(self) -> Any:
        """The most in each stretch of time."""
        return frame_of(self, "timeline")

    @cached_property
    def phases(self) -> Any:
        """What programs named of their own time, a row for each device."""
        return frame_of(self, "phases")

    @cached_property
    def leaks(self) -> Any:
        """What was not freed, with the line that allocated it."""
        return frame_of(self, "leaks")

    @property
    def plot(self) -> "Plot":
        """Pictures: plot(), plot.timeline(), plot.sites(), plot.phases(), plot.leaks()."""
        from memshim.plot import Plot

        return Plot(self)


class DaskReports:
    """Files that Dask reads when it has to: the same tables under the same names, each a Dask frame with one
    partition for each file."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return "<memshim.DaskReports of %d>" % len(self)

    def _table(self, name: str) -> Any:
        try:
            from dask import dataframe
        except ImportError:
            raise missing("dask[dataframe]", "dask") from None
        return dataframe.from_map(partial(frame, table=name), list(self.paths), meta=frame_of([], name))

    def compute(self) -> Reports:
        """All of them, read here and now."""
        return Reports(read(path) for path in self.paths)

    @cached_property
    def devices(self) -> Any:
        """As Reports.devices."""
        return self._table("devices")

    @cached_property
    def sites(self) -> Any:
        """As Reports.sites."""
        return self._table("sites")

    @cached_property
    def stacks(self) -> Any:
        """As Reports.stacks."""
        return self._table("stacks")

    @cached_property
    def timeline(self) -> Any:
        """As Reports.timeline."""
        return self._table("timeline")

    @cached_property
    def phases(self) -> Any:
        """As Reports.phases."""
        return self._table("phases")

    @cached_property
    def leaks(self) -> Any:
        """As Reports.leaks."""
        return self._table("leaks")


def _files(paths: Union[Path, Iterable[Path]]) -> List[str]:
    """The files that are meant: a name that is no file may be a pattern."""
    files: List[str] = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        name = os.fspath(path)
        if os.path.isdir(name):
            raise ReportError(
                "%s is a directory: files, or a pattern such as %s, are allowed"
                % (name, os.path.join(name, "*.json"))
            )
        found = (
            [name]
            if os.path.exists(name) or not glob.has_magic(name)
            else sorted(glob.glob(name, recursive=True))
        )
        if not found:
            raise FileNotFoundError("no file matches %s" % name)
        files.extend(found)
    return files


@overload
def load(paths: Union[Path, Iterable[Path]], engine: "Literal['pandas']" = "pandas") -> Reports: ...


@overload
def load(paths: Union[Path, Iterable[Path]], engine: "Literal['dask']") -> DaskReports: ...


def load(paths: Union[Path, Iterable[Path]], engine: str = "pandas") -> Union[Reports, DaskReports]:
    """The reports in a file, in the files of a pattern (`memshim.*.json`), or in a list of these. With
    engine="dask" no file is read until Dask computes, one after another or on many machines; the tables have
    the same names."""
    if engine == "dask":
        return DaskReports(_files(paths))
    if engine != "pandas":
        raise ValueError("engine is %r: pandas and dask are allowed" % (engine,))
    return Reports(read(path) for path in _files(paths))
