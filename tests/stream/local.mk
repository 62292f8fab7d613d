# tests/stream: the pool API, captures and bindings, natively and under memshim; see docs/internals/testing.md
check_PROGRAMS += tests/stream/binding tests/stream/capture_ends tests/stream/captures tests/stream/corners tests/stream/given_back \
	tests/stream/graph_memory tests/stream/limit tests/stream/origins tests/stream/pools tests/stream/rest tests/stream/reuse tests/stream/waits
dist_check_SCRIPTS += tests/stream/same.py tests/stream/graph_memory.py tests/stream/capture_ends.py tests/stream/limit.py tests/stream/waits.py \
	tests/stream/reuse.py tests/stream/rest.py
tests_stream_capture_ends_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_captures_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_corners_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_given_back_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_graph_memory_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_limit_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_origins_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_pools_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_rest_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_reuse_LDADD = libcudart.so.13 libcuda.so.1
tests_stream_waits_LDADD = libcudart.so.13 libcuda.so.1
# The same sources for HIP.
check_PROGRAMS += tests/stream/captures_hip tests/stream/corners_hip tests/stream/graph_memory_hip tests/stream/origins_hip \
	tests/stream/pools_hip
tests_stream_captures_hip_SOURCES = tests/stream/captures.c tests/hip/as_cuda.h
tests_stream_captures_hip_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_HIP=7
tests_stream_captures_hip_LDADD = libamdhip64.so.7 $(MS_BESIDE_ALL)
tests_stream_corners_hip_SOURCES = tests/stream/corners.c tests/hip/as_cuda.h
tests_stream_corners_hip_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_HIP=7
tests_stream_corners_hip_LDADD = libamdhip64.so.7 $(MS_BESIDE_ALL)
tests_stream_origins_hip_SOURCES = tests/stream/origins.c tests/hip/as_cuda.h
tests_stream_origins_hip_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_HIP=7
tests_stream_origins_hip_LDADD = libamdhip64.so.7 $(MS_BESIDE_ALL)
tests_stream_graph_memory_hip_SOURCES = tests/stream/graph_memory.c tests/hip/as_cuda.h
tests_stream_graph_memory_hip_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_HIP=7
tests_stream_graph_memory_hip_LDADD = libamdhip64.so.7 $(MS_BESIDE_ALL)
tests_stream_pools_hip_SOURCES = tests/stream/pools.c tests/hip/as_cuda.h
tests_stream_pools_hip_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_HIP=7
tests_stream_pools_hip_LDADD = libamdhip64.so.7 $(MS_BESIDE_ALL)
