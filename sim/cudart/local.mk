# sim/cudart: the simulated CUDA runtime; one source tree, built once per version
sim_PROGRAMS += libcudart.so.12 libcudart.so.13

sim_cudart_sources = src/vendor/abi/cuda_driver.h src/vendor/abi/cuda_driver_fn.h \
	src/vendor/abi/cuda_runtime.h src/vendor/abi/cuda_runtime_fn.h src/vendor/abi/cuda_runtime_graph.h \
	src/vendor/abi/cuda_runtime_graph_fn.h sim/log.h sim/log.c sim/embedded/entry.h \
	sim/embedded/entry.c sim/cudart/runtime.h sim/cudart/export.h sim/cudart/driver.def \
	sim/cudart/error.def sim/cudart/props.def sim/cudart/exports.def sim/versions.h \
	sim/cudart/array.c sim/cudart/capture.c sim/cudart/context.c sim/cudart/copy.c \
	sim/cudart/copy_linear.c sim/cudart/copy_shape.c sim/cudart/device.c sim/cudart/driver.c \
	sim/cudart/entrypoint.c sim/cudart/error.c sim/cudart/event.c sim/cudart/fill.c \
	sim/cudart/function.c sim/cudart/graph/graph.c sim/cudart/graph/graphany.c \
	sim/cudart/graph/graphexec.c sim/cudart/graph/graphmem.c sim/cudart/graph/graphnode.c \
	sim/cudart/launch.c sim/cudart/library.c sim/cudart/managed.c sim/cudart/memory.c \
	sim/cudart/module.c sim/cudart/pool.c sim/cudart/props.c sim/cudart/share.c sim/cudart/stream.c \
	sim/cudart/stubs.c
sim_cudart_cflags = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
sim_cudart_ldflags = $(AM_LDFLAGS) -shared $(MS_NO_UNDEFINED) -Wl,-Bsymbolic

EXTRA_DIST += sim/cudart/cudart_12.map sim/cudart/cudart_13.map

libcudart_so_12_SOURCES = $(sim_cudart_sources)
libcudart_so_12_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_CUDART=12
libcudart_so_12_CFLAGS = $(sim_cudart_cflags)
libcudart_so_12_LDFLAGS = $(sim_cudart_ldflags) -Wl,-soname,libcudart.so.12 \
	-Wl,--version-script=$(srcdir)/sim/cudart/cudart_12.map
libcudart_so_12_LDADD = -ldl
EXTRA_libcudart_so_12_DEPENDENCIES = sim/cudart/cudart_12.map

libcudart_so_13_SOURCES = $(sim_cudart_sources)
libcudart_so_13_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_CUDART=13
libcudart_so_13_CFLAGS = $(sim_cudart_cflags)
libcudart_so_13_LDFLAGS = $(sim_cudart_ldflags) -Wl,-soname,libcudart.so.13 \
	-Wl,--version-script=$(srcdir)/sim/cudart/cudart_13.map
libcudart_so_13_LDADD = -ldl
EXTRA_libcudart_so_13_DEPENDENCIES = sim/cudart/cudart_13.map

# The static runtimes, which programs by nvcc contain by default: one object file, as the vendor's, without debug information, in which
# what the runtime's files share among themselves is local. The archives that it is made of are not for linking: of a weak name and a
# strong one, an archive gives the first. 13's stands beside the shared libraries; structures differ between versions, so 12's stands apart.
sim_cudart_static_cflags = $(sim_cudart_cflags) -fno-lto
noinst_LIBRARIES += sim/cudart/libparts_12.a sim/cudart/libparts_13.a
sim_cudart_libparts_12_a_SOURCES = $(sim_cudart_sources)
sim_cudart_libparts_12_a_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_CUDART=12 -DSIM_STATIC
sim_cudart_libparts_12_a_CFLAGS = $(sim_cudart_static_cflags)
sim_cudart_libparts_13_a_SOURCES = $(sim_cudart_sources)
sim_cudart_libparts_13_a_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_CUDART=13 -DSIM_STATIC
sim_cudart_libparts_13_a_CFLAGS = $(sim_cudart_static_cflags)

sim_DATA = libcudart_static.a
sim12dir = $(simdir)/cuda12
sim12_DATA = cuda12/libcudart_static.a
CLEANFILES += $(sim_DATA) $(sim12_DATA)
sim_static_runtime = $(MKDIR_P) $(@D) && rm -f $@ && \
	$(CC) -r -nostdlib -o $@-one.o -Wl,--whole-archive $< -Wl,--no-whole-archive && \
	$(OBJCOPY) -g -w -G 'cuda*' -G '__cuda*' $@-one.o $(@D)/cudart_static.o && \
	$(AR) $(ARFLAGS) $@ $(@D)/cudart_static.o && $(RANLIB) $@ && rm -f $@-one.o $(@D)/cudart_static.o
libcudart_static.a: sim/cudart/libparts_13.a
	$(AM_V_GEN)$(sim_static_runtime)
cuda12/libcudart_static.a: sim/cudart/libparts_12.a
	$(AM_V_GEN)$(sim_static_runtime)
