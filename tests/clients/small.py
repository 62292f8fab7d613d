#!/usr/bin/env python3
"""The small clients (clients.conf): programs of other people, unmodified, natively on the simulated GPU and under memshim in every mode. scripts/test-clients runs all.

Skipped where their packages cannot be had from PyPI.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import session, table  # noqa: E402


def skip_all(reason):
    """Says why, and ends."""
    print("1..0 # SKIP " + reason)
    sys.exit(0)


def main():
    """The test."""
    if os.environ.get("TEST_SANITIZE"):
        skip_all("a sanitizer's library cannot be preloaded into python3")
    if not os.path.exists(os.environ["TEST_BIN"]) or not os.path.exists(os.environ["TEST_LIB"]):
        skip_all("the memshim command is not built")
    if os.uname().machine != "x86_64":
        skip_all("the packages are for x86-64")
    clients = table.choose(os.environ.get("TEST_CLIENTS", "").split(), kinds=("small",))
    tap = session.Tap()
    session.whole(clients, os.environ["top_builddir"], os.environ["TEST_TMP"], tap, seconds=150)
    tap.plan()


main()
