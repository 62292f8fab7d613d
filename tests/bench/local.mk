# tests/bench: the programs that scripts/bench runs, and a test that they run
check_PROGRAMS += tests/bench/follow tests/bench/live tests/bench/record
tests_bench_follow_SOURCES = tests/bench/follow.c tests/bench/chain.h
tests_bench_follow_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_bench_follow_LDADD = libcudart.so.13 libcuda.so.1
tests_bench_follow_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_bench_live_SOURCES = tests/bench/live.c
tests_bench_live_LDADD = libcuda.so.1

tests_bench_record_SOURCES = tests/bench/record.c
tests_bench_record_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_bench_record_LDFLAGS = $(AM_LDFLAGS) -pthread

dist_check_SCRIPTS += tests/bench/bench.py tests/bench/synthetic.py
TESTS += tests/bench/bench.py

# The benches of allocators: scripts/bench links the same objects with the peers' ways in.
check_PROGRAMS += tests/bench/alloc/alloc
MS_BENCH_ALLOC_SOURCES = tests/bench/alloc/alloc.h tests/bench/alloc/main.c tests/bench/alloc/pool.c \
	tests/bench/alloc/replay.c tests/bench/alloc/recipe.c tests/bench/alloc/runahead.c \
	tests/bench/alloc/shapes.c tests/bench/alloc/small.c
tests_bench_alloc_alloc_SOURCES = $(MS_BENCH_ALLOC_SOURCES) tests/bench/alloc/runtime.c
tests_bench_alloc_alloc_LDADD = libcudart.so.13 libcuda.so.1 -lm
tests_bench_alloc_alloc_LDFLAGS = $(AM_LDFLAGS) -pthread
EXTRA_DIST += tests/bench/allocators.py tests/bench/small.py tests/bench/start.py tests/bench/page.py tests/bench/tune.py tests/bench/peers/torch.cc tests/bench/peers/rmm.cc tests/bench/peers/install.sh \
	tests/bench/peers/requirements.txt
dist_check_SCRIPTS += tests/bench/alloc.py
TESTS += tests/bench/alloc.py

check_PROGRAMS += tests/bench/acl
tests_bench_acl_SOURCES = tests/bench/acl.c
tests_bench_acl_LDADD = libascendcl.so -ldl
check_PROGRAMS += tests/bench/hip
tests_bench_hip_SOURCES = tests/bench/hip.c
tests_bench_hip_LDADD = libamdhip64.so.6 -ldl
check_PROGRAMS += tests/bench/together
tests_bench_together_SOURCES = tests/bench/together.c tests/cases/case.h tests/program.h
tests_bench_together_LDADD = libcudart.so.13 -ldl
tests_bench_together_LDFLAGS = $(AM_LDFLAGS) -pthread
check_PROGRAMS += tests/bench/uses
tests_bench_uses_SOURCES = tests/bench/uses.c
tests_bench_uses_LDADD = libcudart.so.13
EXTRA_DIST += tests/bench/together.py tests/bench/uses.py tests/bench/vendors.py tests/bench/schedules.py tests/bench/stacks.py tests/bench/python_stacks.py
dist_check_SCRIPTS += tests/bench/vendors_form.py
TESTS += tests/bench/vendors_form.py

check_PROGRAMS += tests/bench/nccl
tests_bench_nccl_SOURCES = tests/bench/nccl.c
tests_bench_nccl_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_bench_nccl_LDADD = libnccl.so.2 libcudart.so.13 libcuda.so.1 -ldl
