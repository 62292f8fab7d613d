"""What the programs of tests/ledger need to run at all."""
import os


def lacking():
    """Whether something is not here: then the test's whole answer is that it is skipped, and why."""
    why = None
    if os.environ["TEST_SANITIZE"]:
        why = "a sanitizer's library cannot be preloaded into a plain program"
    elif not os.access(os.environ["TEST_BIN"], os.X_OK):
        why = "the memshim command is not built (jansson or libdw is missing)"
    if why:
        print("1..0 # SKIP " + why)
    return why is not None
