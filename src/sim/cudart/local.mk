# src/sim/cudart: the simulated CUDA runtime; one source tree, built once per version
sim_PROGRAMS += libcudart.so.12 libcudart.so.13

sim_cudart_sources = \
	src/gpu/abi/cuda_driver.h src/gpu/abi/cuda_driver_fn.h \
	src/gpu/abi/cuda_runtime.h src/gpu/abi/cuda_runtime_fn.h \
	src/gpu/abi/cuda_runtime_graph.h src/gpu/abi/cuda_runtime_graph_fn.h \
	src/sim/log.h src/sim/log.c src/sim/embedded/entry.h src/sim/embedded/entry.c \
	src/sim/cudart/runtime.h src/sim/cudart/export.h src/sim/cudart/driver.def src/sim/cudart/error.def src/sim/cudart/props.def \
	src/sim/cudart/exports_12.def src/sim/cudart/exports_13.def \
	src/sim/cudart/array.c src/sim/cudart/capture.c src/sim/cudart/context.c src/sim/cudart/copy.c \
	src/sim/cudart/copy_linear.c src/sim/cudart/copy_shape.c src/sim/cudart/device.c src/sim/cudart/driver.c src/sim/cudart/entrypoint.c \
	src/sim/cudart/error.c src/sim/cudart/event.c src/sim/cudart/fill.c src/sim/cudart/function.c src/sim/cudart/graph.c \
	src/sim/cudart/graphany.c src/sim/cudart/graphexec.c src/sim/cudart/graphmem.c src/sim/cudart/graphnode.c \
	src/sim/cudart/launch.c src/sim/cudart/library.c src/sim/cudart/managed.c src/sim/cudart/memory.c \
	src/sim/cudart/module.c src/sim/cudart/pool.c src/sim/cudart/props.c src/sim/cudart/share.c \
	src/sim/cudart/stream.c src/sim/cudart/stubs.c
sim_cudart_cflags = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
sim_cudart_ldflags = $(AM_LDFLAGS) -shared -pthread $(MS_NO_UNDEFINED) -Wl,-Bsymbolic

EXTRA_DIST += src/sim/cudart/cudart_12.map src/sim/cudart/cudart_13.map

libcudart_so_12_SOURCES = $(sim_cudart_sources)
libcudart_so_12_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_CUDART=12
libcudart_so_12_CFLAGS = $(sim_cudart_cflags)
libcudart_so_12_LDFLAGS = $(sim_cudart_ldflags) -Wl,-soname,libcudart.so.12 \
	-Wl,--version-script=$(srcdir)/src/sim/cudart/cudart_12.map
libcudart_so_12_LDADD = -ldl
EXTRA_libcudart_so_12_DEPENDENCIES = src/sim/cudart/cudart_12.map

libcudart_so_13_SOURCES = $(sim_cudart_sources)
libcudart_so_13_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_CUDART=13
libcudart_so_13_CFLAGS = $(sim_cudart_cflags)
libcudart_so_13_LDFLAGS = $(sim_cudart_ldflags) -Wl,-soname,libcudart.so.13 \
	-Wl,--version-script=$(srcdir)/src/sim/cudart/cudart_13.map
libcudart_so_13_LDADD = -ldl
EXTRA_libcudart_so_13_DEPENDENCIES = src/sim/cudart/cudart_13.map

# The static runtimes, which programs by nvcc contain by default: one object file, as the vendor's, without debug information, in which
# what the runtime's files share among themselves is local. The archives that it is made of are not for linking: of a weak name and a
# strong one, an archive gives the first. 13's stands beside the shared libraries; structures differ between versions, so 12's stands apart.
sim_cudart_static_cflags = $(sim_cudart_cflags) -fno-lto
noinst_LIBRARIES += src/sim/cudart/libparts_12.a src/sim/cudart/libparts_13.a
src_sim_cudart_libparts_12_a_SOURCES = $(sim_cudart_sources)
src_sim_cudart_libparts_12_a_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_CUDART=12 -DSIM_STATIC
src_sim_cudart_libparts_12_a_CFLAGS = $(sim_cudart_static_cflags)
src_sim_cudart_libparts_13_a_SOURCES = $(sim_cudart_sources)
src_sim_cudart_libparts_13_a_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_CUDART=13 -DSIM_STATIC
src_sim_cudart_libparts_13_a_CFLAGS = $(sim_cudart_static_cflags)

sim_DATA = libcudart_static.a
sim12dir = $(simdir)/cuda12
sim12_DATA = cuda12/libcudart_static.a
CLEANFILES += $(sim_DATA) $(sim12_DATA)
sim_static_runtime = $(MKDIR_P) $(@D) && rm -f $@ && \
	$(CC) -r -nostdlib -o $@-one.o -Wl,--whole-archive $< -Wl,--no-whole-archive && \
	$(OBJCOPY) -g -w -G 'cuda*' -G '__cuda*' $@-one.o $(@D)/cudart_static.o && \
	$(AR) $(ARFLAGS) $@ $(@D)/cudart_static.o && $(RANLIB) $@ && rm -f $@-one.o $(@D)/cudart_static.o
libcudart_static.a: src/sim/cudart/libparts_13.a
	$(AM_V_GEN)$(sim_static_runtime)
cuda12/libcudart_static.a: src/sim/cudart/libparts_12.a
	$(AM_V_GEN)$(sim_static_runtime)
