# tests/cli: the memshim command, one file per verb.
EXTRA_DIST += tests/cli/helpers.bash tests/cli/data/train.json $(ms_cli_tests)
ms_cli_tests = tests/cli/usage.bats tests/cli/summary.bats tests/cli/leaks.bats tests/cli/frag.bats tests/cli/frag_then.bats tests/cli/damaged.bats \
	tests/cli/env.bats tests/cli/run.bats tests/cli/validate.bats tests/cli/symbolize.bats tests/cli/doctor.bats tests/cli/docs.bats \
	tests/cli/whole.bats tests/cli/shared.bats tests/cli/hostile.bats tests/cli/displace.bats tests/cli/see_through.bats tests/cli/view.bats tests/cli/fold.bats tests/cli/owners.bats tests/cli/peak.bats tests/cli/findings.bats
ms_cli_tests += tests/cli/pictures.bats
ms_cli_tests += tests/cli/html.bats
EXTRA_DIST += tests/html/reports.py tests/html/page_format.py tests/html/browser.py
if BUILD_CLI
dist_check_SCRIPTS += tests/html/quick.sh tests/html/at_once.py
TESTS += tests/html/quick.sh tests/html/at_once.py
endif
TESTS += $(ms_cli_tests)

# Always with debug information and inlining, whatever the build's flags are: that is what it is about.
check_PROGRAMS += tests/cli/self_report
tests_cli_self_report_SOURCES = tests/cli/self_report.c
tests_cli_self_report_CFLAGS = $(AM_CFLAGS) -g -O2

# Stands in for libmemshim.so where `memshim run` itself is tested; never sanitized, since it is loaded into any program.
check_PROGRAMS += tests/cli/fake_shim.so
tests_cli_fake_shim_so_SOURCES = tests/cli/fake_shim.c
tests_cli_fake_shim_so_CFLAGS = -std=gnu11 $(MS_WARNINGS) -fPIC
tests_cli_fake_shim_so_LDFLAGS = -shared

# Counts what the command asks libdwfl for.
if BUILD_CLI
check_PROGRAMS += tests/cli/count_symbols.so
tests_cli_count_symbols_so_SOURCES = tests/cli/count_symbols.c
tests_cli_count_symbols_so_CFLAGS = -std=gnu11 $(MS_WARNINGS) -fPIC $(LIBDW_CFLAGS) $(JANSSON_CFLAGS)
tests_cli_count_symbols_so_LDFLAGS = -shared
tests_cli_count_symbols_so_LDADD = -ldl
endif

# A made-up wheel: a runtime under a name of its own, a module that finds it by DT_RPATH, and what opens the module. Never sanitized, as wheels are not.
EXTRA_DIST += tests/cli/wheel_runtime.map
check_PROGRAMS += tests/cli/wheel_runtime.so tests/cli/wheel_module.so tests/cli/wheel_opener
tests_cli_wheel_runtime_so_SOURCES = tests/cli/wheel_runtime.c
tests_cli_wheel_runtime_so_CFLAGS = -std=gnu11 $(MS_WARNINGS) -fPIC
tests_cli_wheel_runtime_so_LDFLAGS = -shared -Wl,-soname,libcudart-53d54daa.so.12.6.68 \
	-Wl,--version-script=$(srcdir)/tests/cli/wheel_runtime.map
tests_cli_wheel_module_so_SOURCES = tests/cli/wheel_module.c
tests_cli_wheel_module_so_CFLAGS = -std=gnu11 $(MS_WARNINGS) -fPIC
tests_cli_wheel_module_so_LDFLAGS = -shared -Wl,--disable-new-dtags '-Wl,-rpath,$$ORIGIN/libs'
tests_cli_wheel_module_so_LDADD = tests/cli/wheel_runtime.so -ldl
tests_cli_wheel_opener_SOURCES = tests/cli/wheel_opener.c
tests_cli_wheel_opener_CFLAGS = -std=gnu11 $(MS_WARNINGS)
tests_cli_wheel_opener_LDFLAGS =
tests_cli_wheel_opener_LDADD = -ldl

# A driver program as any other, with the simulator's library for the linker's sake.
check_PROGRAMS += tests/cli/leaker
tests_cli_leaker_SOURCES = tests/cli/leaker.c
tests_cli_leaker_CFLAGS = $(AM_CFLAGS) -g -O1
tests_cli_leaker_LDADD = libcuda.so.1

if BUILD_CLI
check_PROGRAMS += tests/cli/test_text tests/cli/test_parse
TESTS += tests/cli/test_text tests/cli/test_parse
tests_cli_test_parse_SOURCES = tests/cli/test_parse.c tests/tap.h src/report/read/parse.h \
	src/report/read/parse.c src/report/read/slabs.h src/report/read/slabs.c
tests_cli_test_parse_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(YAJL_CFLAGS)
tests_cli_test_parse_LDADD = $(JANSSON_LIBS) $(YAJL_LIBS)
tests_cli_test_text_SOURCES = tests/cli/test_text.c tests/tap.h src/report/read/read.h \
	src/report/read/read.c src/report/read/parse.h src/report/read/parse.c src/report/read/slabs.h \
	src/report/read/slabs.c src/report/text/text.h src/report/text/text.c src/report/analyse/callers.h \
	src/report/analyse/callers.c src/report/read/sites.h src/report/read/sites.c \
	src/report/analyse/fold.h src/report/analyse/fold.c src/report/analyse/fold.def \
	src/report/symbols/cxx.h src/report/symbols/cxx.c src/report/text/utf8.h \
	src/report/text/display_width.h src/report/text/display_width.c src/base/size.h src/base/size.c \
	src/base/files.h src/base/files.c src/base/options/options.h src/base/libc.h src/base/libc.c \
	src/base/options/options.c src/base/options/options_value.h src/base/options/options_value.c \
	src/base/thread/aux_stack.h src/base/thread/aux_stack.c
tests_cli_test_text_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(YAJL_CFLAGS)
tests_cli_test_text_LDADD = $(JANSSON_LIBS) $(YAJL_LIBS)
endif
