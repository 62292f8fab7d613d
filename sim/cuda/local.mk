# sim/cuda: the simulated driver. Room by room; what they offer each other is in sim.h.
# The rooms, compiled once: with fault.c, lookup.c and stubs.c they are the driver; with front.c other vendors' libraries stand on them.
sim_cuda_rooms = sim/log.h sim/log.c src/vendor/abi/cuda_driver.h src/vendor/abi/cuda_driver_fn.h \
	src/vendor/abi/cuda_graph.h src/vendor/abi/cuda_graph_fn.h sim/cuda/memory/arena.c \
	sim/cuda/memory/array.c sim/cuda/attributes.def sim/cuda/memory/block.c sim/cuda/body.c \
	sim/cuda/books.c sim/cuda/books.h sim/cuda/device/card.c sim/cuda/cards.def \
	sim/cuda/stream/capture.c sim/cuda/stream/captureapi.c sim/cuda/stream/clock.c sim/cuda/code/code.h \
	sim/cuda/device/config.c sim/cuda/device/context.c sim/cuda/memory/copy.c \
	sim/cuda/memory/copylinear.c sim/cuda/memory/copyshape.c sim/cuda/device/ctxinfo.c \
	sim/cuda/device/device.c sim/cuda/stream/event.c sim/cuda/stream/event.h \
	sim/cuda/stream/eventwait.c sim/cuda/code/function.c sim/cuda/graph/graph.c sim/cuda/graph/graph.h \
	sim/cuda/graph/graphcond.c sim/cuda/graph/graphedge.c sim/cuda/graph/graphexec.c \
	sim/cuda/graph/graphexec.h sim/cuda/graph/graphlaunch.c sim/cuda/graph/graphmem.c \
	sim/cuda/graph/graphmemapi.c sim/cuda/graph/graphnode.c sim/cuda/graph/graphtype.c \
	sim/cuda/graph/graphupdate.c sim/cuda/device/green.c sim/cuda/memory/heap.c sim/cuda/memory/host.c \
	sim/cuda/stream/hostfn.c sim/cuda/device/identity.c sim/cuda/device/identity.h \
	sim/cuda/code/image.c sim/cuda/init.c sim/cuda/memory/ipc.c sim/cuda/memory/ipcevent.c \
	sim/cuda/code/launch.c sim/cuda/code/library.c sim/cuda/logs.c sim/cuda/memory/managed.c \
	sim/cuda/memory/memop.c sim/cuda/memory/memory.c sim/cuda/memory/memset.c sim/cuda/code/module.c \
	sim/cuda/code/multiply.c sim/cuda/code/multiply.h sim/cuda/code/object.c sim/cuda/stream/op.c \
	sim/cuda/stream/order.c sim/cuda/code/param.c sim/cuda/memory/peer.c sim/cuda/memory/pointer.c \
	sim/cuda/memory/pool.c sim/cuda/memory/pool.h sim/cuda/memory/poolapi.c sim/cuda/memory/poolattr.c \
	sim/cuda/memory/poolmake.c sim/cuda/memory/poolpart.c sim/cuda/memory/poolplace.c \
	sim/cuda/memory/poolunit.c sim/cuda/memory/poolshare.c sim/cuda/device/primary.c \
	sim/cuda/stream/queue.c sim/cuda/memory/range.c sim/cuda/rules.c sim/cuda/rules.h sim/cuda/sim.h \
	sim/cuda/status.c sim/cuda/status.def sim/cuda/stream/stream.c sim/cuda/stream/streamattr.c \
	sim/cuda/device/thread.c sim/cuda/device/usage.h sim/cuda/graph/userobj.c sim/cuda/memory/vmm.c \
	sim/cuda/memory/vmm.h sim/cuda/memory/vmmmap.c sim/cuda/memory/vmmshare.c

sim_PROGRAMS += libcuda.so.1
libcuda_so_1_SOURCES = sim/cuda/exports.def sim/cuda/fault.c sim/cuda/lookup.c \
	sim/cuda/graphics.def sim/cuda/graph/graphics.c sim/cuda/stubs.c sim/cuda/device/usage.c
libcuda_so_1_LDADD =
libcuda_so_1_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
# Its own functions are what its own tables hold, whatever is preloaded; once opened it stays, for its threads run in it.
libcuda_so_1_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,-z,nodelete $(MS_NO_UNDEFINED) \
	-Wl,--whole-archive libsimrooms.a -Wl,--no-whole-archive
EXTRA_libcuda_so_1_DEPENDENCIES = libsimrooms.a

noinst_LIBRARIES += libsimrooms.a libsimfront.a
libsimrooms_a_SOURCES = $(sim_cuda_rooms)
libsimrooms_a_CFLAGS = $(libcuda_so_1_CFLAGS)
libsimfront_a_SOURCES = sim/cuda/front.c sim/cuda/front.h sim/cuda/frontpools.c
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
