# tests/stack: the walk of the stack, against libgcc's unwinder and gdb
#
# Functions of many shapes, compiled without frame pointers whatever the rest of the tests is compiled with.
check_LIBRARIES += tests/stack/libframes.a
tests_stack_libframes_a_SOURCES = tests/stack/frames.c tests/stack/snap.h
tests_stack_libframes_a_CFLAGS = -std=gnu11 $(MS_WARNINGS) $(MS_SANITIZE) -O2 -fomit-frame-pointer -Wno-vla

ms_stack_libs = tests/stack/libframes.a src/libmsfloor.a $(LIBUNWIND_LIBS)
ms_test_programs += tests/stack/test_walk tests/stack/test_signals tests/stack/test_reload tests/stack/test_garbage \
	tests/stack/test_harm tests/stack/test_recall tests/stack/test_sample
check_PROGRAMS += tests/stack/show
dist_check_SCRIPTS += tests/stack/gdb.sh
tests_stack_test_walk_LDADD = $(ms_stack_libs)
tests_stack_test_signals_LDADD = $(ms_stack_libs)
tests_stack_test_reload_LDADD = $(ms_stack_libs)
tests_stack_test_garbage_LDADD = $(ms_stack_libs)
tests_stack_test_harm_LDADD = $(ms_stack_libs)
tests_stack_test_recall_CFLAGS = $(AM_CFLAGS) -fomit-frame-pointer
tests_stack_test_recall_LDADD = $(ms_stack_libs)
tests_stack_test_sample_LDADD = $(ms_stack_libs) -lm
tests_stack_show_SOURCES = tests/stack/show.c tests/stack/show.h tests/stack/show_stack.c tests/stack/snap.h
tests_stack_show_LDADD = $(ms_stack_libs)
# The C++ compiler may be of another make than the C compiler, and then so are their sanitizers.
if HAVE_CXX
if !SANITIZED
check_PROGRAMS += tests/stack/show_cxx
endif
endif
tests_stack_show_cxx_SOURCES = tests/stack/show_cxx.cc tests/stack/show.h tests/stack/show_stack.c tests/stack/snap.h
tests_stack_show_cxx_CXXFLAGS = -std=c++14 -O2 -fomit-frame-pointer
tests_stack_show_cxx_LDADD = $(ms_stack_libs)

# Libraries that tests load. Both plugins are made of the same instructions.
ms_plugin_cflags = -std=gnu11 $(MS_WARNINGS) -fPIC -fvisibility=hidden -O2 -fomit-frame-pointer
check_PROGRAMS += tests/stack/plugin_small.so tests/stack/plugin_large.so tests/stack/joiner.so
tests_stack_plugin_small_so_SOURCES = tests/stack/plugin.c
tests_stack_plugin_small_so_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_FRAME_BYTES=40000
tests_stack_plugin_small_so_CFLAGS = $(ms_plugin_cflags)
tests_stack_plugin_small_so_LDFLAGS = -shared
tests_stack_plugin_large_so_SOURCES = tests/stack/plugin.c
tests_stack_plugin_large_so_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_FRAME_BYTES=72000
tests_stack_plugin_large_so_CFLAGS = $(ms_plugin_cflags)
tests_stack_plugin_large_so_LDFLAGS = -shared
tests_stack_joiner_so_CFLAGS = $(ms_plugin_cflags)
tests_stack_joiner_so_LDFLAGS = -shared

# Measures and prints; nobody runs it by itself.
check_PROGRAMS += tests/bench/stack

# Through the whole library.
check_PROGRAMS += tests/stack/many_blocks
tests_stack_many_blocks_LDADD = tests/stack/libframes.a libcudart.so.13
dist_check_SCRIPTS += tests/stack/modes.sh
