# tests/bench: the programs that scripts/bench runs, and a test that they run
check_PROGRAMS += tests/bench/acl tests/bench/flow tests/bench/follow tests/bench/hip tests/bench/live tests/bench/nccl tests/bench/record tests/bench/together tests/bench/uses
tests_bench_follow_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_bench_follow_LDADD = libcudart.so.13 libcuda.so.1
tests_bench_live_LDADD = libcuda.so.1

dist_check_SCRIPTS += tests/bench/bench.py tests/bench/alloc.py tests/bench/vendors_form.py
EXTRA_DIST += tests/bench/synthetic.py tests/bench/chain.h

# The benches of allocators: scripts/bench links the same objects with the peers' ways in.
check_PROGRAMS += tests/bench/alloc/alloc
MS_BENCH_ALLOC_SOURCES = tests/bench/alloc/alloc.h tests/bench/alloc/main.c tests/bench/alloc/pool.c \
	tests/bench/alloc/replay.c tests/bench/alloc/recipe.c tests/bench/alloc/runahead.c \
	tests/bench/alloc/shapes.c tests/bench/alloc/small.c
tests_bench_alloc_alloc_SOURCES = $(MS_BENCH_ALLOC_SOURCES) tests/bench/alloc/runtime.c
tests_bench_alloc_alloc_LDADD = libcudart.so.13 libcuda.so.1 -lm
# The same with HIP.
check_PROGRAMS += tests/bench/alloc/alloc_hip
tests_bench_alloc_alloc_hip_SOURCES = $(tests_bench_alloc_alloc_SOURCES) tests/hip/as_cuda.h
tests_bench_alloc_alloc_hip_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_HIP=7 -include $(top_srcdir)/tests/hip/as_cuda.h
tests_bench_alloc_alloc_hip_LDADD = libamdhip64.so.7 -ldl -lm $(MS_BESIDE_ALL)
EXTRA_DIST += tests/bench/allocators.py tests/bench/small.py tests/bench/start.py tests/bench/flows.py tests/bench/page.py tests/bench/tune.py tests/bench/peers/torch.cc tests/bench/peers/rmm.cc tests/bench/peers/install.sh \
	tests/bench/peers/requirements.txt

tests_bench_acl_LDADD = libascendcl.so -ldl
tests_bench_hip_LDADD = libamdhip64.so.6 -ldl
tests_bench_together_LDADD = libcudart.so.13 -ldl
tests_bench_uses_LDADD = libcudart.so.13
tests_bench_flow_LDADD = libcudart.so.13 -lpthread
EXTRA_DIST += tests/bench/together.py tests/bench/tensors.py tests/bench/uses.py tests/bench/vendors.py tests/bench/schedules.py tests/bench/stacks.py tests/bench/python_stacks.py

tests_bench_nccl_LDADD = libnccl.so.2 libcudart.so.13 libcuda.so.1 -ldl
