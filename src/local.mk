# What goes into the shim besides the hooks, compiled once: the shim and the tests of its floors link the same objects.
noinst_LIBRARIES += src/libmsfloor.a src/libmspool.a src/libmsreport.a
src_libmsfloor_a_SOURCES = $(BASE_SOURCES) $(STACK_SOURCES) $(QUOTA_SOURCES) $(LEDGER_SOURCES) \
	$(SHARE_SOURCES)
src_libmsfloor_a_CFLAGS = $(AM_CFLAGS) $(MS_SHIM_CFLAGS)
src_libmsfloor_a_CPPFLAGS = $(AM_CPPFLAGS) $(LIBUNWIND_CPPFLAGS)
FASTPATH_SOURCES = src/fastpath/fastpath.h src/fastpath/inside.h src/fastpath/streams.h \
	src/fastpath/alloc.c src/fastpath/free.c src/fastpath/learn.c
src_libmspool_a_SOURCES = $(GPU_SOURCES) $(POOL_SOURCES) $(FASTPATH_SOURCES)
src_libmspool_a_CFLAGS = $(AM_CFLAGS) $(MS_SHIM_CFLAGS)
src_libmsreport_a_SOURCES = $(REPORT_WRITER_SOURCES)
src_libmsreport_a_CFLAGS = $(AM_CFLAGS) $(MS_SHIM_CFLAGS)

# In the order in which each needs the next.
ms_floors = src/libmsreport.a src/libmspool.a src/libmsfloor.a
