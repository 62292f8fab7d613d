"""The pytest plugin: marks that hold tests to limits of device memory, and --memshim, which has them run
where that can be measured."""

import gc
import os
import shutil
from typing import Any, Generator, List, Optional

import pytest

from memshim.errors import ReportError
from memshim.sizes import Size, parse_size
from memshim.testing import measure, rerun
from memshim.testing.ledger import Ledger, Unread

_MARKS = {
    "limit_gpu_memory": "limit_gpu_memory(size): fail if the test holds more of a device's memory at a time",
    "limit_gpu_leaks": "limit_gpu_leaks(size=0): fail if the test leaves more of a device's memory unfreed",
}
_LEDGER = "_memshim_ledger"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("memshim", "device memory (memshim)")
    group.addoption(
        "--memshim", action="store_true", help="run under memshim: limit_gpu_memory and limit_gpu_leaks hold"
    )
    group.addoption("--memshim-sim", action="store_true", help="on the simulated GPU (memshim run --sim)")
    group.addoption(
        "--memshim-report",
        metavar="FILE",
        help="keep memshim's report of the tests, with a phase for each that is marked",
    )
    group.addoption(
        "--memshim-command", metavar="PATH", help="the memshim command; without it the one on the PATH"
    )


def _command(named: Optional[str]) -> str:
    return named or os.environ.get(rerun.COMMAND) or shutil.which("memshim") or "memshim"


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before anything of the user's is imported: there is no coming back from here."""
    options = early_config.known_args_namespace
    if not options.memshim or rerun.COMMAND in os.environ:
        return
    words = ["--sim"] if options.memshim_sim else []
    if options.memshim_report:
        words += ["-o", options.memshim_report]
    rerun.rerun(early_config, _command(options.memshim_command), words)


def pytest_configure(config: pytest.Config) -> None:
    """Whether memshim is here; the marks hold wherever it is, however it came."""
    for line in _MARKS.values():
        config.addinivalue_line("markers", line)
    ledger = Ledger(_command(config.getoption("memshim_command")))
    if config.getoption("memshim") and not ledger.active:
        raise pytest.UsageError(
            "--memshim: memshim is not active in this process; MEMSHIM_MODE, MEMSHIM_INCLUDE or "
            "MEMSHIM_EXCLUDE says so"
        )
    setattr(config, _LEDGER, ledger if ledger.active else None)


def pytest_report_header(config: pytest.Config) -> List[str]:
    """Whether the marks hold."""
    return ["memshim: active, limits of device memory hold"] if getattr(config, _LEDGER, None) else []


def _limit(item: pytest.Item, name: str) -> Optional[Size]:
    """The limit that the nearest of its marks gives a test."""
    mark = item.get_closest_marker(name)
    if mark is None:
        return None
    sizes = [*mark.args, *mark.kwargs.values()]
    if name == "limit_gpu_leaks" and not sizes:
        return Size(0)
    if len(sizes) != 1 or set(mark.kwargs) - {"size"}:
        raise pytest.UsageError("%s: %s takes one size" % (item.nodeid, name))
    try:
        return parse_size(sizes[0])
    except ValueError as error:
        raise pytest.UsageError("%s: %s: %s" % (item.nodeid, name, error)) from None


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    """A size that is none is said at once, and without memshim too."""
    for item in items:
        for name in _MARKS:
            _limit(item, name)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """The test itself; what fixtures do before and after it is theirs."""
    ledger: Optional[Ledger] = getattr(item.config, _LEDGER, None)
    memory, leaks = _limit(item, "limit_gpu_memory"), _limit(item, "limit_gpu_leaks")
    if ledger is None or (memory is None and leaks is None):
        yield
        return
    measurement = measure.Measurement(ledger, item.nodeid)
    try:
        measurement.begin()
    except (Unread, ReportError) as error:
        pytest.fail("memshim could not measure the test: %s" % error, pytrace=False)
    outcome = yield
    if leaks is not None:
        gc.collect()  # what waits for the collector is no leak
    measurement.stop()
    if outcome.excinfo is not None:
        return
    found: List[Optional[str]] = []
    try:
        measured = measurement.read()
        reader = measure.Reader(ledger, str(item.config.invocation_params.dir), str(item.path))
        found.append(measure.over_memory(measured, memory, reader) if memory else None)
        found.append(measure.over_leaks(measured, leaks, reader) if leaks else None)
    except (Unread, ReportError) as error:
        found.append("memshim could not measure the test: %s" % error)
    lines = [one for one in found if one]
    if lines:
        outcome.force_exception(pytest.fail.Exception("\n".join(lines), pytrace=False))
