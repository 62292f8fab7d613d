# tests/phases: what programs name of their own time
check_PROGRAMS += tests/phases/phases_user tests/phases/nvtx_texts
tests_phases_nvtx_texts_LDADD = libcudart.so.13 -ldl
tests_phases_phases_user_LDADD = libcudart.so.13 -ldl
dist_check_SCRIPTS += tests/phases/phases.py tests/phases/packages.py

# ROCTX and MSTX: stand-ins of their libraries, a profiler that MSTX calls, and a program that links with both or opens them.
check_PROGRAMS += tests/phases/libroctx64.so.4 tests/phases/libms_tools_ext.so tests/phases/libmstx_tool.so \
	tests/phases/markers_user tests/phases/markers_linked
tests_phases_libroctx64_so_4_SOURCES = tests/phases/roctx.c
tests_phases_libroctx64_so_4_CFLAGS = $(ms_module_cflags)
tests_phases_libroctx64_so_4_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libroctx64.so.4 \
	-Wl,--version-script=$(srcdir)/tests/phases/roctx.map
tests_phases_libroctx64_so_4_DEPENDENCIES = tests/phases/roctx.map
tests_phases_libms_tools_ext_so_SOURCES = tests/phases/mstx.c tests/phases/mstx_object.h
tests_phases_libms_tools_ext_so_CFLAGS = $(ms_module_cflags)
tests_phases_libms_tools_ext_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libms_tools_ext.so
tests_phases_libmstx_tool_so_SOURCES = tests/phases/mstx_tool.c
tests_phases_libmstx_tool_so_CFLAGS = $(ms_module_cflags)
tests_phases_libmstx_tool_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libmstx_tool.so
tests_phases_markers_user_LDADD = libcudart.so.13 -ldl
tests_phases_markers_linked_SOURCES = tests/phases/markers_user.c tests/phases/mstx_object.h tests/program.h
tests_phases_markers_linked_CPPFLAGS = $(AM_CPPFLAGS) -DLINKED
tests_phases_markers_linked_LDADD = tests/phases/libroctx64.so.4 tests/phases/libms_tools_ext.so libcudart.so.13 -ldl
dist_check_SCRIPTS += tests/phases/markers.py
EXTRA_DIST += tests/phases/roctx.map tests/phases/nvtx_object.h
