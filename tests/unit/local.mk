# tests/unit: tests listed here run under make check; see docs/testing.md
