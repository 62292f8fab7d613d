"""The runner of tests/clients: see its neighbours' first lines, and docs/internals/testing.md."""
