# src/sim/cuda: the simulated driver. Room by room; what they offer each other is in sim.h.
# The rooms, compiled once: with fault.c, lookup.c and stubs.c they are the driver; with front.c other vendors' libraries stand on them.
sim_cuda_rooms = \
	src/sim/log.h src/sim/log.c \
	src/gpu/abi/cuda_driver.h \
	src/gpu/abi/cuda_driver_fn.h \
	src/gpu/abi/cuda_graph.h src/gpu/abi/cuda_graph_fn.h \
	src/sim/cuda/arena.c \
	src/sim/cuda/array.c \
	src/sim/cuda/attributes.def \
	src/sim/cuda/block.c \
	src/sim/cuda/body.c \
	src/sim/cuda/books.c src/sim/cuda/books.h \
	src/sim/cuda/card.c \
	src/sim/cuda/cards.def \
	src/sim/cuda/capture.c \
	src/sim/cuda/captureapi.c \
	src/sim/cuda/clock.c \
	src/sim/cuda/code.h \
	src/sim/cuda/config.c \
	src/sim/cuda/context.c \
	src/sim/cuda/copy.c \
	src/sim/cuda/copylinear.c \
	src/sim/cuda/copyshape.c \
	src/sim/cuda/ctxinfo.c \
	src/sim/cuda/device.c \
	src/sim/cuda/event.c \
	src/sim/cuda/event.h \
	src/sim/cuda/eventwait.c \
	src/sim/cuda/function.c \
	src/sim/cuda/graph.c \
	src/sim/cuda/graph.h \
	src/sim/cuda/graphcond.c \
	src/sim/cuda/graphedge.c \
	src/sim/cuda/graphexec.c \
	src/sim/cuda/graphexec.h \
	src/sim/cuda/graphlaunch.c \
	src/sim/cuda/graphmem.c \
	src/sim/cuda/graphmemapi.c \
	src/sim/cuda/graphnode.c \
	src/sim/cuda/graphtype.c \
	src/sim/cuda/graphupdate.c \
	src/sim/cuda/green.c \
	src/sim/cuda/heap.c \
	src/sim/cuda/host.c \
	src/sim/cuda/hostfn.c \
	src/sim/cuda/identity.c \
	src/sim/cuda/identity.h \
	src/sim/cuda/image.c \
	src/sim/cuda/init.c \
	src/sim/cuda/ipc.c \
	src/sim/cuda/ipcevent.c \
	src/sim/cuda/launch.c \
	src/sim/cuda/library.c \
	src/sim/cuda/logs.c \
	src/sim/cuda/managed.c \
	src/sim/cuda/memop.c \
	src/sim/cuda/memory.c \
	src/sim/cuda/memset.c \
	src/sim/cuda/module.c \
	src/sim/cuda/multiply.c src/sim/cuda/multiply.h \
	src/sim/cuda/object.c \
	src/sim/cuda/op.c \
	src/sim/cuda/order.c \
	src/sim/cuda/param.c \
	src/sim/cuda/peer.c \
	src/sim/cuda/pointer.c \
	src/sim/cuda/pool.c \
	src/sim/cuda/pool.h \
	src/sim/cuda/poolapi.c \
	src/sim/cuda/poolattr.c \
	src/sim/cuda/poolmake.c \
	src/sim/cuda/poolpart.c \
	src/sim/cuda/poolplace.c \
	src/sim/cuda/poolunit.c \
	src/sim/cuda/poolshare.c \
	src/sim/cuda/primary.c \
	src/sim/cuda/queue.c \
	src/sim/cuda/range.c \
	src/sim/cuda/rules.c \
	src/sim/cuda/rules.h \
	src/sim/cuda/sim.h \
	src/sim/cuda/status.c \
	src/sim/cuda/status.def \
	src/sim/cuda/stream.c \
	src/sim/cuda/streamattr.c \
	src/sim/cuda/thread.c \
	src/sim/cuda/usage.h \
	src/sim/cuda/userobj.c \
	src/sim/cuda/vmm.c \
	src/sim/cuda/vmm.h \
	src/sim/cuda/vmmmap.c \
	src/sim/cuda/vmmshare.c

sim_PROGRAMS += libcuda.so.1
libcuda_so_1_SOURCES = src/sim/cuda/exports.def src/sim/cuda/fault.c src/sim/cuda/lookup.c \
	src/sim/cuda/lookup.def src/sim/cuda/graphics.def src/sim/cuda/graphics.c src/sim/cuda/stubs.c src/sim/cuda/usage.c
libcuda_so_1_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
# Its own functions are what its own tables hold, whatever is preloaded; once opened it stays, for its threads run in it.
libcuda_so_1_LDFLAGS = $(AM_LDFLAGS) -shared -pthread -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,-z,nodelete $(MS_NO_UNDEFINED) \
	-Wl,--whole-archive libsimrooms.a -Wl,--no-whole-archive
EXTRA_DIST += scripts/gen-lookup
EXTRA_libcuda_so_1_DEPENDENCIES = libsimrooms.a

noinst_LIBRARIES += libsimrooms.a libsimfront.a
libsimrooms_a_SOURCES = $(sim_cuda_rooms)
libsimrooms_a_CFLAGS = $(libcuda_so_1_CFLAGS)
libsimfront_a_SOURCES = src/sim/cuda/front.c src/sim/cuda/front.h
libsimfront_a_CFLAGS = $(libcuda_so_1_CFLAGS)
sim_cuda_front = libsimfront.a libsimrooms.a

# Programs that find the driver by themselves ask for libcuda.so as well: a link, since a copy would be a driver of its own.
all-local: libcuda.so
libcuda.so: libcuda.so.1
	$(AM_V_GEN)$(LN_S) -f libcuda.so.1 $@
CLEANFILES += libcuda.so
# Where programs go to a directory of ours they are installed with the data.
install-data-hook: install-sim-link
install-sim-link:
	cd "$(DESTDIR)$(simdir)" && rm -f libcuda.so && $(LN_S) libcuda.so.1 libcuda.so
uninstall-hook: uninstall-sim-link
uninstall-sim-link:
	rm -f "$(DESTDIR)$(simdir)/libcuda.so"
.PHONY: install-sim-link uninstall-sim-link
