# hooks: floor 3, what is intercepted; and libmemshim.so, which floors 0 to 4 make up
ROWS = hooks/table/families.def hooks/table/classes.def hooks/table/rows.def hooks/table/twins.h hooks/table/cuda_driver.def \
	hooks/table/cuda_status.def hooks/table/cuda_runtime.def hooks/table/nccl.def hooks/table/cupti.def \
	hooks/table/hip.def hooks/table/acl.def hooks/table/roctx.def hooks/table/nvml.def hooks/table/pytorch.def hooks/table/cuda_uses.def
HOOKS_SOURCES = hooks/hook.h $(ROWS) hooks/table/wrap.h hooks/table/cuda_driver.c hooks/table/cuda_status.c \
	hooks/follow/no_memory.h hooks/follow/no_memory.c hooks/table/cuda_runtime.c hooks/table/nccl.c \
	hooks/table/cupti.c hooks/table/hip.c hooks/table/acl.c hooks/table/rows.c hooks/lookup/resolve.h \
	hooks/lookup/libraries.c hooks/lookup/bind.c hooks/lookup/resolve.c \
	hooks/follow/buffers.h hooks/follow/buffers.c hooks/follow/buffer_holds.c \
	hooks/follow/communicators.h hooks/follow/communicators.c hooks/serve/serve.h hooks/serve/serve.c \
	hooks/serve/serve_context.c hooks/serve/serve_policy.c hooks/serve/serve_call.h \
	hooks/serve/serve_stream.c hooks/serve/serve_mempool.c hooks/serve/serve_oom.c \
	hooks/serve/serve_mapped.c hooks/serve/answer.h hooks/serve/answer.c hooks/follow/watch.h \
	hooks/follow/watch.c hooks/follow/graphs.h hooks/follow/graphs.c hooks/follow/graph_memory.h hooks/follow/graph_memory.c \
	hooks/serve/memops.c hooks/hook_scope.h hooks/dispatch.h hooks/dispatch.c \
	hooks/observe/invalid_free.h hooks/observe/invalid_free.c hooks/follow/footprints.h \
	hooks/follow/footprints.c hooks/follow/balance.h hooks/follow/balance.c hooks/serve/oom_fit.h \
	hooks/serve/oom_fit.c hooks/follow/handles.c hooks/follow/imports.c hooks/init.h hooks/init.c \
	hooks/observe/ends.c hooks/lookup/entry.h
HOOKS_SOURCES += hooks/observe/phases.h hooks/observe/phases.c hooks/observe/nvtx.h hooks/observe/nvtx.c hooks/observe/nvtx_memory.c hooks/observe/mstx.c \
	hooks/table/roctx.c hooks/table/pytorch.c hooks/observe/inner.h hooks/observe/inner.c hooks/table/cuda_uses.c hooks/follow/uses.h hooks/follow/uses.c \
	hooks/follow/graph_execs.h hooks/follow/graph_execs.c hooks/follow/layouts.c
HOOKS_SOURCES += hooks/serve/serve_handles.h hooks/serve/serve_handles.c hooks/serve/serve_wait.c \
	hooks/serve/limit.h hooks/serve/limit.c hooks/serve/totals.c hooks/table/nvml.c hooks/serve/neighbours.h \
	hooks/serve/neighbours.c hooks/serve/host_floor.h hooks/serve/host_floor.c
HOOKS_SOURCES += hooks/table/name.h hooks/serve/hits.h hooks/serve/hits.c hooks/serve/runtime.h hooks/serve/runtime.c \
	hooks/lookup/listeners.h hooks/lookup/listeners.c hooks/lookup/unknown.h hooks/lookup/unknown.c
HOOKS_SOURCES += hooks/follow/ipc.h hooks/follow/ipc_export.c hooks/follow/ipc_import.c \
	hooks/follow/ipc_transport.c
include_HEADERS = include/memshim.h
EXTRA_DIST += hooks/libmemshim.map hooks/lookup/entry_x86_64.S hooks/lookup/entry_aarch64.S hooks/lookup/trampolines_x86_64.S hooks/lookup/trampolines_aarch64.S

# What runs before a sanitizer in the host is ready is built without one; it comes first, so that its elf.c is the one that is linked.
noinst_LIBRARIES += hooks/libearly.a
hooks_libearly_a_SOURCES = hooks/lookup/early.c hooks/lookup/loader.c src/base/objects/elf.h \
	src/base/objects/elf.c
hooks_libearly_a_CFLAGS = $(MS_PLAIN_CFLAGS) $(MS_SHIM_CFLAGS)

shim_PROGRAMS += libmemshim.so
libmemshim_so_SOURCES = $(HOOKS_SOURCES) $(REPORT_EXIT_SOURCES)
if ENTRY_X86_64
libmemshim_so_SOURCES += hooks/lookup/entry_x86_64.S hooks/lookup/trampolines_x86_64.S
endif
if ENTRY_AARCH64
libmemshim_so_SOURCES += hooks/lookup/entry_aarch64.S hooks/lookup/trampolines_aarch64.S
endif
libmemshim_so_CFLAGS = $(AM_CFLAGS) $(MS_SHIM_CFLAGS)
libmemshim_so_CPPFLAGS = $(AM_CPPFLAGS) $(LIBUNWIND_CPPFLAGS)
# The unwinder and jansson come from their archives and stay hidden: the library needs libc alone and exports hooked names only.
libmemshim_so_LDFLAGS = $(MS_SANITIZE) -shared -static-libgcc -Wl,-soname,libmemshim.so $(MS_EXCLUDE_LIBS) \
	-Wl,--version-script=$(srcdir)/hooks/libmemshim.map $(MS_NO_UNDEFINED) -Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete
libmemshim_so_LDADD = hooks/libearly.a $(ms_floors) $(LIBUNWIND_LIBS)
if HAVE_STATIC_JANSSON
libmemshim_so_LDADD += $(JANSSON_STATIC_LIBS)
endif

# What libmemshim.so does not export: the functions that MEMSHIM_USES hooks, by their names (companion.c).
shim_PROGRAMS += libmemshim-uses.so
libmemshim_uses_so_SOURCES = hooks/table/companion.c $(ROWS)
libmemshim_uses_so_CFLAGS = $(MS_PLAIN_CFLAGS) $(MS_PIC_CFLAGS)
libmemshim_uses_so_LDFLAGS = -shared -Wl,-soname,libmemshim-uses.so -nostdlib -Wl,-rpath,'$$ORIGIN' -Wl,-z,relro -Wl,-z,now
libmemshim_uses_so_LDADD = libmemshim.so

# Prints the rows, for docs/user/hooks.md and for tests.
noinst_PROGRAMS += hooks/list_rows
hooks_list_rows_SOURCES = hooks/table/list_rows.c $(ROWS)
hooks_list_rows_LDADD =
dist_check_SCRIPTS += hooks/table/docs_hooks.sh
