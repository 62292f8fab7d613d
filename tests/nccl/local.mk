# tests/nccl: NCCL's buffers followed and served; see docs/internals/testing.md
check_PROGRAMS += tests/nccl/buffers
tests_nccl_buffers_LDADD = libnccl.so.2 libcudart.so.13 libcuda.so.1 -ldl
dist_check_SCRIPTS += tests/nccl/buffers.py

check_PROGRAMS += tests/nccl/communicators
tests_nccl_communicators_CFLAGS = $(AM_CFLAGS) -g
tests_nccl_communicators_LDADD = libnccl.so.2 libcudart.so.13
dist_check_SCRIPTS += tests/nccl/communicators.py

check_PROGRAMS += tests/nccl/plain
tests_nccl_plain_LDADD = libnccl.so.2 -ldl
dist_check_SCRIPTS += tests/nccl/real.sh
