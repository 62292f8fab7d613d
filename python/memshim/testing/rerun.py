"""pytest --memshim: the process becomes `memshim run -- ` itself, so that every test runs in a process that
memshim was loaded into."""

import os
import shutil
import sys
from typing import List, NoReturn, Optional, Sequence

import pytest

# How the process that is started finds the command again; memshim knows no MEMSHIM_ names but its own.
COMMAND = "PYTEST_MEMSHIM_COMMAND"


def own_words(arguments: Sequence[str]) -> List[str]:
    """The command line of this process, whose arguments pytest was given."""
    if list(arguments) != sys.argv[1:]:
        raise pytest.UsageError(
            "--memshim: pytest was called by a program, which cannot be started anew; "
            "start that program with `memshim run -- PROGRAM`"
        )
    original: Optional[List[str]] = getattr(sys, "orig_argv", None)  # Python 3.10
    if original:
        return [sys.executable, *original[1:]]
    program = ["-m", "pytest"] if os.path.basename(sys.argv[0]) == "__main__.py" else [sys.argv[0]]
    return [sys.executable, *program, *arguments]


def rerun(config: pytest.Config, command: str, options: Sequence[str]) -> NoReturn:
    """Starts this pytest anew under memshim, in place of this process; its exit status is pytest's."""
    own = own_words(config.invocation_params.args)
    program = shutil.which(command)
    if program is None:
        raise pytest.UsageError(
            "--memshim: there is no program %s; --memshim-command names the memshim command" % command
        )
    words = [command, "run", *options, "--", *own]
    environment = dict(os.environ, **{COMMAND: command})
    if "-o" not in options:
        environment.setdefault("MEMSHIM_REPORT", "none")
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(program, words, environment)
    except OSError as error:
        # Too late to go back to pytest, whose output is its own no longer.
        sys.exit("--memshim: cannot start %s: %s" % (program, error.strerror))
