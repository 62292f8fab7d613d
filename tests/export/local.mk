# tests/export: what memshim export writes
dist_check_SCRIPTS += tests/export/formats.py
EXTRA_DIST += tests/export/readers.py
TESTS += tests/export/formats.py
