# tests/python: stacks of programs in Python; docs/testing.md says where the interpreters come from
EXTRA_DIST += tests/python/interpreters.py tests/python/lines_of.py tests/python/lines.py
check_PROGRAMS += tests/python/line_tables tests/python/test_lines
tests_python_line_tables_SOURCES = tests/python/line_tables.c src/report/pylines.h src/report/pylines.c
tests_python_test_lines_SOURCES = tests/python/test_lines.c tests/tap.h src/report/pylines.h src/report/pylines.c
TESTS += tests/python/test_lines tests/python/lines.py
