# src/sim/acl: the simulated Ascend runtime, on a private copy of the simulated driver's rooms (src/sim/cuda/front.h)
sim_PROGRAMS += libascendcl.so
libascendcl_so_SOURCES = src/gpu/abi/acl.h src/gpu/abi/acl_fn.h src/sim/acl/acl.h src/sim/acl/exports.def \
	src/sim/acl/copy.c src/sim/acl/device.c src/sim/acl/event.c src/sim/acl/host.c src/sim/acl/ipc.c src/sim/acl/map.c \
	src/sim/acl/memory.c src/sim/acl/names.c src/sim/acl/physical.c src/sim/acl/pool.c src/sim/acl/query.c src/sim/acl/share.c \
	src/sim/acl/share.h src/sim/acl/status.c src/sim/acl/stream.c src/sim/acl/stubs.c
libascendcl_so_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
libascendcl_so_LDFLAGS = $(AM_LDFLAGS) -shared -pthread -Wl,-soname,libascendcl.so -Wl,-Bsymbolic -Wl,-z,nodelete \
	-Wl,--version-script=$(srcdir)/src/sim/acl/ascendcl.map $(MS_NO_UNDEFINED)
libascendcl_so_LDADD = $(sim_cuda_front)
EXTRA_libascendcl_so_DEPENDENCIES = src/sim/acl/ascendcl.map
EXTRA_DIST += src/sim/acl/ascendcl.map
