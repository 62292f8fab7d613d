"""What memshim has recorded of this process so far: phases are begun and ended by its functions (memshim.h),
and the record, which is a file, is read by the command (`memshim recover`) while the process goes on."""

import ctypes
import os
import subprocess
import tempfile
from typing import List, Optional

from memshim.report import Report, parse_report

_NAME_BYTES_MAX = 255  # docs/user/phases.md


class Unread(Exception):
    """The record could not be read; the message is one line."""


def _run(words: List[str]) -> "subprocess.CompletedProcess[bytes]":
    """A command that is not recorded itself."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("LD_PRELOAD", "NVTX_INJECTION64_PATH")
    }
    try:
        return subprocess.run(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )
    except OSError as error:
        raise Unread("cannot start %s: %s" % (words[0], error.strerror)) from None


class Ledger:
    """The record of this process."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._names = 0
        try:
            functions = ctypes.CDLL(None)
            self._begin, self._end = functions.memshim_phase_begin, functions.memshim_phase_end
        except AttributeError:
            self.active = False
            return
        self._begin.restype, self._begin.argtypes = ctypes.c_uint64, [ctypes.c_char_p]
        self._end.restype, self._end.argtypes = None, [ctypes.c_uint64]
        self.active = self.begin("pytest") != 0

    def begin(self, name: str) -> int:
        """A phase of the whole process; 0 where memshim is not active."""
        return int(self._begin(name.encode("utf-8")))

    def end(self, phase: int) -> None:
        """Ends it."""
        self._end(phase)

    def name_of_its_own(self, name: str) -> str:
        """A name for one phase: numbered, as a name is told once, and of as many bytes as are kept. What is
        no text is spelled out."""
        self._names += 1
        tail = " #%d" % self._names
        kept = name.encode("utf-8", "backslashreplace").replace(b"\0", b"\\0")[: _NAME_BYTES_MAX - len(tail)]
        return kept.decode("utf-8", "ignore") + tail

    def read(self) -> Optional[Report]:
        """The report as of now, without names; None where nothing was recorded, since no function of a GPU
        was called."""
        done = _run([self._command, "recover", "-o", "-", str(os.getpid())])
        if done.returncode == 2 and b" has no ledger in " in done.stderr:
            return None
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise Unread(said[-1] if said else "%s recover ended with %d" % (self._command, done.returncode))
        return parse_report(done.stdout, "the record of process %d" % os.getpid())

    def named(self, report: Report) -> Report:
        """The same with the names of functions, files and lines, and with what they tell: what is a cache,
        what is suppressed."""
        import json

        with tempfile.TemporaryDirectory(prefix="pytest-memshim.") as folder:
            path = os.path.join(folder, "report.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report.data, file)
            done = _run([self._command, "symbolize", "-o", "-", path])
        return parse_report(done.stdout, report.path) if done.returncode == 0 else report
