# sim/hip: the simulated HIP runtime on a private copy of the simulated driver's rooms; one source tree, built once per version
sim_PROGRAMS += libamdhip64.so.5 libamdhip64.so.6 libamdhip64.so.7

sim_hip_sources = src/vendor/abi/hip.h src/vendor/abi/hip_fn.h sim/hip/hip.h sim/hip/exports.def \
	sim/hip/version.def sim/versions.h sim/hip/copy.c sim/hip/device.c sim/hip/error.c sim/hip/front.c sim/hip/graph.c \
	sim/hip/host.c sim/hip/ipc.c sim/hip/launch.c sim/hip/lookup.c sim/hip/memory.c sim/hip/pointer.c \
	sim/hip/pool.c sim/hip/props.c sim/hip/stream.c sim/hip/stubs.c sim/hip/vmm.c
sim_hip_cflags = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
sim_hip_ldflags = $(AM_LDFLAGS) -shared $(MS_NO_UNDEFINED) -Wl,-Bsymbolic -Wl,-z,nodelete

# The nodes of each version, as a script for the linker: everything that is not in it stays hidden.
sim_hip_maps = sim/hip/nodes_5.map sim/hip/nodes_6.map sim/hip/nodes_7.map
CLEANFILES += $(sim_hip_maps)
EXTRA_DIST += sim/hip/make-exports
$(sim_hip_maps): sim/hip/exports.def sim/hip/make-exports
	$(AM_V_GEN)$(MKDIR_P) $(@D) && version=$@ && version=$${version%.map} && \
	sh $(srcdir)/sim/hip/make-exports $${version##*_} $(srcdir)/sim/hip/exports.def >$@.tmp && mv $@.tmp $@

libamdhip64_so_5_SOURCES = $(sim_hip_sources)
libamdhip64_so_5_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_HIP=5
libamdhip64_so_5_CFLAGS = $(sim_hip_cflags)
libamdhip64_so_5_LDFLAGS = $(sim_hip_ldflags) -Wl,-soname,libamdhip64.so.5 -Wl,--version-script=sim/hip/nodes_5.map
libamdhip64_so_5_LDADD = $(sim_cuda_front)
EXTRA_libamdhip64_so_5_DEPENDENCIES = sim/hip/nodes_5.map

libamdhip64_so_6_SOURCES = $(sim_hip_sources)
libamdhip64_so_6_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_HIP=6
libamdhip64_so_6_CFLAGS = $(sim_hip_cflags)
libamdhip64_so_6_LDFLAGS = $(sim_hip_ldflags) -Wl,-soname,libamdhip64.so.6 -Wl,--version-script=sim/hip/nodes_6.map
libamdhip64_so_6_LDADD = $(sim_cuda_front)
EXTRA_libamdhip64_so_6_DEPENDENCIES = sim/hip/nodes_6.map

libamdhip64_so_7_SOURCES = $(sim_hip_sources)
libamdhip64_so_7_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_HIP=7
libamdhip64_so_7_CFLAGS = $(sim_hip_cflags)
libamdhip64_so_7_LDFLAGS = $(sim_hip_ldflags) -Wl,-soname,libamdhip64.so.7 -Wl,--version-script=sim/hip/nodes_7.map
libamdhip64_so_7_LDADD = $(sim_cuda_front)
EXTRA_libamdhip64_so_7_DEPENDENCIES = sim/hip/nodes_7.map
