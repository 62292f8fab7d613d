# src/sim/hip: the simulated HIP runtime on a private copy of the simulated driver's rooms; one source tree, built once per version
sim_PROGRAMS += libamdhip64.so.5 libamdhip64.so.6 libamdhip64.so.7

sim_hip_sources = src/gpu/abi/hip.h src/gpu/abi/hip_fn.h src/sim/hip/hip.h src/sim/hip/exports.def src/sim/hip/version.def \
	src/sim/hip/copy.c src/sim/hip/device.c src/sim/hip/error.c src/sim/hip/front.c src/sim/hip/graph.c src/sim/hip/host.c \
	src/sim/hip/ipc.c src/sim/hip/launch.c src/sim/hip/lookup.c src/sim/hip/memory.c src/sim/hip/pointer.c src/sim/hip/pool.c \
	src/sim/hip/props.c src/sim/hip/stream.c src/sim/hip/stubs.c src/sim/hip/vmm.c
sim_hip_cflags = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
sim_hip_ldflags = $(AM_LDFLAGS) -shared -pthread $(MS_NO_UNDEFINED) -Wl,-Bsymbolic -Wl,-z,nodelete

# The nodes of each version, as a script for the linker: everything that is not in it stays hidden.
sim_hip_maps = src/sim/hip/nodes_5.map src/sim/hip/nodes_6.map src/sim/hip/nodes_7.map
CLEANFILES += $(sim_hip_maps)
EXTRA_DIST += src/sim/hip/make-exports
$(sim_hip_maps): src/sim/hip/exports.def src/sim/hip/make-exports
	$(AM_V_GEN)$(MKDIR_P) $(@D) && version=$@ && version=$${version%.map} && \
	sh $(srcdir)/src/sim/hip/make-exports $${version##*_} $(srcdir)/src/sim/hip/exports.def >$@.tmp && mv $@.tmp $@

libamdhip64_so_5_SOURCES = $(sim_hip_sources)
libamdhip64_so_5_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_HIP=5
libamdhip64_so_5_CFLAGS = $(sim_hip_cflags)
libamdhip64_so_5_LDFLAGS = $(sim_hip_ldflags) -Wl,-soname,libamdhip64.so.5 -Wl,--version-script=src/sim/hip/nodes_5.map
libamdhip64_so_5_LDADD = $(sim_cuda_front)
EXTRA_libamdhip64_so_5_DEPENDENCIES = src/sim/hip/nodes_5.map

libamdhip64_so_6_SOURCES = $(sim_hip_sources)
libamdhip64_so_6_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_HIP=6
libamdhip64_so_6_CFLAGS = $(sim_hip_cflags)
libamdhip64_so_6_LDFLAGS = $(sim_hip_ldflags) -Wl,-soname,libamdhip64.so.6 -Wl,--version-script=src/sim/hip/nodes_6.map
libamdhip64_so_6_LDADD = $(sim_cuda_front)
EXTRA_libamdhip64_so_6_DEPENDENCIES = src/sim/hip/nodes_6.map

libamdhip64_so_7_SOURCES = $(sim_hip_sources)
libamdhip64_so_7_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_HIP=7
libamdhip64_so_7_CFLAGS = $(sim_hip_cflags)
libamdhip64_so_7_LDFLAGS = $(sim_hip_ldflags) -Wl,-soname,libamdhip64.so.7 -Wl,--version-script=src/sim/hip/nodes_7.map
libamdhip64_so_7_LDADD = $(sim_cuda_front)
EXTRA_libamdhip64_so_7_DEPENDENCIES = src/sim/hip/nodes_7.map
