# tests/findings: programs with one fault each, their clean twins, and what the findings say of them
if BUILD_CLI
check_PROGRAMS += tests/findings/planted
tests_findings_planted_SOURCES = tests/findings/planted.c tests/findings/planted.h \
	tests/findings/planted.def tests/findings/planted_clock.c tests/findings/planted_leaks.c \
	tests/findings/planted_pool.c tests/findings/planted_devices.c tests/findings/planted_uses.c \
	tests/sim/kernels.h include/memshim.h
tests_findings_planted_CFLAGS = $(AM_CFLAGS) -g -O1
tests_findings_planted_LDADD = libcublas.so.13 libnccl.so.2 libcudart.so.13 libcuda.so.1 -ldl
dist_check_SCRIPTS += tests/findings/findings.py tests/findings/tensors.py
EXTRA_DIST += tests/findings/planted.md
endif
