# sim/nccl: the simulated NCCL; what its rooms offer each other is in nccl.h
sim_PROGRAMS += libnccl.so.2
libnccl_so_2_SOURCES = src/vendor/abi/cuda_driver.h src/vendor/abi/cuda_driver_fn.h src/vendor/abi/nccl.h \
	src/vendor/abi/nccl_fn.h src/vendor/abi/nccl_later.h sim/embedded/driver.h \
	sim/embedded/embedded.def sim/embedded/driver.c sim/log.h sim/log.c sim/embedded/entry.h \
	sim/embedded/entry.c sim/nccl/nccl.h sim/nccl/driver.def sim/nccl/exports.def sim/nccl/calls.c \
	sim/nccl/collective.c sim/nccl/comm.c sim/nccl/driver.c sim/nccl/group.c sim/nccl/grow.c \
	sim/nccl/job.c sim/nccl/launch.c sim/nccl/mail.c sim/nccl/memory.c sim/nccl/onesided.c \
	sim/nccl/reach.c sim/nccl/reduce.c sim/nccl/room.c sim/nccl/status.c sim/nccl/stubs.c \
	sim/nccl/suspend.c sim/nccl/window.c
libnccl_so_2_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_DRIVER_DEF='"sim/nccl/driver.def"'
libnccl_so_2_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
# Not bound to itself: the real library calls its own exported names so that others can stand before them. Once opened it stays,
# for host functions of it may be on streams.
libnccl_so_2_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libnccl.so.2 -Wl,-z,nodelete $(MS_NO_UNDEFINED)
libnccl_so_2_LDADD = -ldl
