# src/sim/nccl: the simulated NCCL; what its rooms offer each other is in nccl.h
sim_PROGRAMS += libnccl.so.2
libnccl_so_2_SOURCES = \
	src/gpu/abi/cuda_driver.h src/gpu/abi/cuda_driver_fn.h src/gpu/abi/nccl.h src/gpu/abi/nccl_fn.h \
	src/gpu/abi/nccl_later.h \
	src/sim/embedded/driver.h src/sim/embedded/embedded.def src/sim/embedded/driver.c \
	src/sim/log.h src/sim/log.c src/sim/embedded/entry.h src/sim/embedded/entry.c \
	src/sim/nccl/nccl.h src/sim/nccl/driver.def src/sim/nccl/exports.def \
	src/sim/nccl/calls.c src/sim/nccl/collective.c src/sim/nccl/comm.c src/sim/nccl/driver.c src/sim/nccl/group.c src/sim/nccl/grow.c \
	src/sim/nccl/job.c src/sim/nccl/launch.c src/sim/nccl/mail.c src/sim/nccl/memory.c src/sim/nccl/onesided.c \
	src/sim/nccl/reach.c src/sim/nccl/reduce.c \
	src/sim/nccl/room.c src/sim/nccl/status.c src/sim/nccl/stubs.c src/sim/nccl/suspend.c src/sim/nccl/window.c
libnccl_so_2_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_DRIVER_DEF='"sim/nccl/driver.def"'
libnccl_so_2_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
# Not bound to itself: the real library calls its own exported names so that others can stand before them. Once opened it stays,
# for host functions of it may be on streams.
libnccl_so_2_LDFLAGS = $(AM_LDFLAGS) -shared -pthread -Wl,-soname,libnccl.so.2 -Wl,-z,nodelete $(MS_NO_UNDEFINED)
libnccl_so_2_LDADD = -ldl
