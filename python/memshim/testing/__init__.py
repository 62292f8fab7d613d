"""pytest-memshim: tests that are held to limits of device memory (plugin.py). docs/python.md has marks and
options."""
