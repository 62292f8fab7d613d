"""pytest-memshim: tests that are held to limits of device memory (plugin.py). docs/user/python.md has marks and
options."""
