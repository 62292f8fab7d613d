# tests/stream: the pool API, captures and bindings, natively and under memshim; see docs/internals/testing.md
check_PROGRAMS += tests/stream/pools tests/stream/captures tests/stream/binding tests/stream/origins tests/stream/graph_memory tests/stream/capture_ends tests/stream/corners tests/stream/limit
tests_stream_pools_SOURCES = tests/stream/pools.c
tests_stream_pools_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_captures_SOURCES = tests/stream/captures.c
tests_stream_captures_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_stream_captures_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_origins_SOURCES = tests/stream/origins.c
tests_stream_origins_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_graph_memory_SOURCES = tests/stream/graph_memory.c
tests_stream_graph_memory_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_capture_ends_SOURCES = tests/stream/capture_ends.c
tests_stream_capture_ends_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_stream_capture_ends_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_corners_SOURCES = tests/stream/corners.c
tests_stream_corners_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_stream_corners_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_limit_SOURCES = tests/stream/limit.c
tests_stream_limit_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_binding_SOURCES = tests/stream/binding.c
tests_stream_binding_LDADD = -ldl

dist_check_SCRIPTS += tests/stream/same.py tests/stream/graph_memory.py tests/stream/capture_ends.py tests/stream/limit.py
TESTS += tests/stream/same.py tests/stream/graph_memory.py tests/stream/capture_ends.py tests/stream/limit.py

# Memory that one stream asks for while another is still at it, natively and under memshim.
check_PROGRAMS += tests/stream/waits
tests_stream_waits_SOURCES = tests/stream/waits.c
tests_stream_waits_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_stream_waits_LDADD = libcudart.so.13 libcuda.so.1
dist_check_SCRIPTS += tests/stream/waits.py
TESTS += tests/stream/waits.py

# What the report says of who answered a request, for programs whose numbers are known.
check_PROGRAMS += tests/stream/reuse
tests_stream_reuse_SOURCES = tests/stream/reuse.c
tests_stream_reuse_LDADD = libcudart.so.13 libcuda.so.1
dist_check_SCRIPTS += tests/stream/reuse.py
TESTS += tests/stream/reuse.py

# What the device has back when a program has rested.
check_PROGRAMS += tests/stream/rest
tests_stream_rest_SOURCES = tests/stream/rest.c
tests_stream_rest_LDADD = libcudart.so.13 libcuda.so.1
dist_check_SCRIPTS += tests/stream/rest.py
TESTS += tests/stream/rest.py
check_PROGRAMS += tests/stream/given_back
tests_stream_given_back_SOURCES = tests/stream/given_back.c
tests_stream_given_back_LDADD = libcudart.so.13 libcuda.so.1
