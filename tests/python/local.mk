# tests/python: stacks of programs in Python; docs/internals/testing.md says where the interpreters come from
EXTRA_DIST += tests/python/interpreters.py tests/python/lines_of.py tests/python/holders.py
check_PROGRAMS += tests/python/line_tables
dist_check_SCRIPTS += tests/python/lines.py
ms_test_programs += tests/python/test_lines tests/python/test_pair
tests_python_line_tables_SOURCES = tests/python/line_tables.c src/report/symbols/pylines.h \
	src/report/symbols/pylines.c
tests_python_test_lines_SOURCES = tests/python/test_lines.c tests/tap.h src/report/symbols/pylines.h \
	src/report/symbols/pylines.c

# A thread that runs no Python, for programs that do.
check_PROGRAMS += tests/python/plain_thread.so
tests_python_plain_thread_so_CFLAGS = -std=gnu11 $(MS_WARNINGS) -fPIC
tests_python_plain_thread_so_LDFLAGS = -shared -pthread
tests_python_plain_thread_so_LDADD = libcudart.so.12

# An interpreter of another kind.
check_PROGRAMS += tests/python/pypy.so
tests_python_pypy_so_CFLAGS = -std=gnu11 $(MS_WARNINGS) -fPIC
tests_python_pypy_so_LDFLAGS = -shared
dist_check_SCRIPTS += tests/python/pypy.bats

# What is read of the interpreter's memory, against what the program says of itself, and against garbage.
ms_test_programs += tests/python/test_garbage
if SANITIZED
EXTRA_PROGRAMS += tests/python/probe.so
else
check_PROGRAMS += tests/python/probe.so
endif
tests_python_probe_so_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS)
tests_python_probe_so_LDFLAGS = $(AM_LDFLAGS) -shared

# An interpreter that is a library, and has several lives.
check_PROGRAMS += tests/python/lives
dist_check_SCRIPTS += tests/python/frames.sh
EXTRA_DIST += tests/python/own_frames.py tests/python/own_ends.py

# The Python package of python/: its reader by the standard library alone, the rest where scripts/test-python has installed what it takes.
EXTRA_DIST += scripts/test-python tests/clients/requirements/python.txt tests/python/reader.py tests/python/train.py tests/python/limits/gpu.py \
	tests/python/limits/test_limits.py tests/python/reports/c3fa3a5.json tests/python/reports/77cc7a1.json \
	tests/python/reports/984dda7.json tests/python/reports/5c02791.json
if BUILD_CLI
dist_check_SCRIPTS += tests/python/sites.py tests/python/package_reader.py tests/python/package_trace.py tests/python/package_tables.py tests/python/package_plugin.py tests/python/package_wheel.py
endif
