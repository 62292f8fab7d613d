"""The runner of tests/clients: see its neighbours' first lines, and docs/testing.md."""
