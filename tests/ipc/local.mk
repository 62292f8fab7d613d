# tests/ipc: memory shared between processes, where the pool packs; see docs/internals/testing.md
check_PROGRAMS += tests/ipc/agent tests/ipc/exchange
tests_ipc_agent_LDADD = libcuda.so.1
tests_ipc_exchange_LDADD = libcudart.so.13 libcuda.so.1
check_PROGRAMS += tests/ipc/threads
tests_ipc_threads_LDADD = libcudart.so.13

# Called as MPI is.
check_PROGRAMS += tests/ipc/libmpi.so.40
tests_ipc_libmpi_so_40_SOURCES = tests/ipc/mpi.c
tests_ipc_libmpi_so_40_CFLAGS = $(ms_module_cflags)
tests_ipc_libmpi_so_40_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libmpi.so.40

dist_check_SCRIPTS += tests/ipc/scenarios.py tests/ipc/exchange.sh
EXTRA_DIST += tests/ipc/agents.py
