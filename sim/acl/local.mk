# sim/acl: the simulated Ascend runtime, on a private copy of the simulated driver's rooms (sim/cuda/front.h)
sim_PROGRAMS += libascendcl.so
libascendcl_so_SOURCES = src/vendor/abi/acl.h src/vendor/abi/acl_fn.h sim/acl/acl.h sim/acl/exports.def \
	sim/acl/copy.c sim/acl/device.c sim/acl/event.c sim/acl/host.c sim/acl/ipc.c sim/acl/map.c \
	sim/acl/memory.c sim/acl/names.c sim/acl/physical.c sim/acl/pool.c sim/acl/query.c sim/acl/share.c \
	sim/acl/share.h sim/acl/status.c sim/acl/stream.c sim/acl/stubs.c
libascendcl_so_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
libascendcl_so_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libascendcl.so -Wl,-Bsymbolic -Wl,-z,nodelete \
	-Wl,--version-script=$(srcdir)/sim/acl/ascendcl.map $(MS_NO_UNDEFINED)
libascendcl_so_LDADD = $(sim_cuda_front)
EXTRA_libascendcl_so_DEPENDENCIES = sim/acl/ascendcl.map
EXTRA_DIST += sim/acl/ascendcl.map
