# hooks: floor 3, what is intercepted; and libmemshim.so, which floors 0 to 4 make up
ROWS = hooks/families.def hooks/rows.def hooks/twins.h hooks/cuda_driver.def hooks/cuda_status.def hooks/cuda_runtime.def hooks/nccl.def hooks/cupti.def hooks/hip.def hooks/acl.def hooks/roctx.def hooks/cuda_uses.def
HOOKS_SOURCES = hooks/hook.h $(ROWS) hooks/wrap.h hooks/cuda_driver.c hooks/cuda_status.c hooks/no_memory.h hooks/no_memory.c \
	hooks/cuda_runtime.c hooks/nccl.c hooks/cupti.c hooks/hip.c hooks/acl.c hooks/rows.c hooks/resolve.h hooks/libraries.c hooks/bind.c hooks/slots.c hooks/resolve.c \
	hooks/buffers.h hooks/buffers.c hooks/buffer_holds.c hooks/communicators.h hooks/communicators.c hooks/serve.h hooks/serve.c hooks/serve_context.c hooks/serve_policy.c hooks/serve_call.h hooks/serve_stream.c hooks/serve_mempool.c hooks/serve_oom.c hooks/serve_mapped.c hooks/answer.h \
	hooks/answer.c hooks/watch.h hooks/watch.c hooks/graphs.c hooks/graph_memory.h hooks/graph_memory.c hooks/memops.c hooks/section.h hooks/dispatch.h hooks/dispatch.c hooks/misfree.h hooks/misfree.c hooks/takers.h hooks/takers.c hooks/balance.h hooks/balance.c hooks/oom_fit.h hooks/oom_fit.c hooks/handles.c hooks/imports.c hooks/init.h hooks/init.c hooks/ends.c hooks/entry.h
HOOKS_SOURCES += hooks/phases.h hooks/phases.c hooks/nvtx.c hooks/mstx.c hooks/roctx.c hooks/cuda_uses.c hooks/uses.h hooks/uses.c hooks/graph_uses.h hooks/graph_uses.c hooks/graph_nodes.h hooks/graph_nodes.c hooks/graph_owed.h hooks/graph_owed.c hooks/layouts.c
HOOKS_SOURCES += hooks/serve_handles.h hooks/serve_handles.c hooks/serve_wait.c
HOOKS_SOURCES += hooks/name.h hooks/direct.h hooks/direct.c hooks/direct_stream.c hooks/listeners.h hooks/listeners.c hooks/unseen.h hooks/unseen.c
HOOKS_SOURCES += hooks/ipc.h hooks/ipc_export.c hooks/ipc_import.c hooks/ipc_transport.c
include_HEADERS = include/memshim.h
EXTRA_DIST += hooks/libmemshim.map hooks/entry_x86_64.S hooks/entry_aarch64.S hooks/ways_x86_64.S hooks/ways_aarch64.S

# What runs before a sanitizer in the host is ready is built without one; it comes first, so that its elf.c is the one that is linked.
noinst_LIBRARIES += hooks/libearly.a
hooks_libearly_a_SOURCES = hooks/early.c hooks/loader.c src/base/elf.h src/base/elf.c
hooks_libearly_a_CFLAGS = $(MS_PLAIN_CFLAGS) $(MS_PIC_CFLAGS) $(MS_STACK_CFLAGS)

shim_PROGRAMS += libmemshim.so
libmemshim_so_SOURCES = $(HOOKS_SOURCES) $(REPORT_EXIT_SOURCES)
if ENTRY_X86_64
libmemshim_so_SOURCES += hooks/entry_x86_64.S hooks/ways_x86_64.S
endif
if ENTRY_AARCH64
libmemshim_so_SOURCES += hooks/entry_aarch64.S hooks/ways_aarch64.S
endif
libmemshim_so_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS) $(MS_STACK_CFLAGS)
libmemshim_so_CPPFLAGS = $(AM_CPPFLAGS) $(LIBUNWIND_CPPFLAGS)
# The unwinder and jansson come from their archives and stay hidden: the library needs libc alone and exports hooked names only.
libmemshim_so_LDFLAGS = $(AM_LDFLAGS) -shared -static-libgcc -Wl,-soname,libmemshim.so $(MS_EXCLUDE_LIBS) \
	-Wl,--version-script=$(srcdir)/hooks/libmemshim.map $(MS_NO_UNDEFINED) -Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete
libmemshim_so_LDADD = hooks/libearly.a $(ms_floors) $(LIBUNWIND_LIBS)
if HAVE_STATIC_JANSSON
libmemshim_so_LDADD += $(JANSSON_STATIC_LIBS)
endif

# What libmemshim.so does not export: the functions that MEMSHIM_USES hooks, by their names (companion.c).
shim_PROGRAMS += libmemshim-uses.so
libmemshim_uses_so_SOURCES = hooks/companion.c $(ROWS)
libmemshim_uses_so_CFLAGS = $(MS_PLAIN_CFLAGS) $(MS_PIC_CFLAGS)
libmemshim_uses_so_LDFLAGS = -shared -Wl,-soname,libmemshim-uses.so -nostdlib -Wl,-rpath,'$$ORIGIN' -Wl,-z,relro -Wl,-z,now
libmemshim_uses_so_LDADD = libmemshim.so

# Prints the rows, for docs/hooks.md and for tests.
noinst_PROGRAMS += hooks/list_rows
hooks_list_rows_SOURCES = hooks/list_rows.c $(ROWS)
TESTS += hooks/docs_hooks.sh
dist_check_SCRIPTS += hooks/docs_hooks.sh
EXTRA_DIST += scripts/gen-docs docs/hooks.md
