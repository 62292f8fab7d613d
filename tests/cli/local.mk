# tests/cli: the memshim command, one file per verb.
EXTRA_DIST += tests/cli/helpers.bash tests/cli/data/train.json
dist_check_SCRIPTS += tests/cli/usage.bats tests/cli/summary.bats tests/cli/leaks.bats tests/cli/frag.bats tests/cli/frag_then.bats tests/cli/damaged.bats \
	tests/cli/env.bats tests/cli/run.bats tests/cli/validate.bats tests/cli/symbolize.bats tests/cli/doctor.bats tests/cli/docs.bats \
	tests/cli/whole.bats tests/cli/shared.bats tests/cli/hostile.bats tests/cli/displace.bats tests/cli/see_through.bats tests/cli/view.bats tests/cli/fold.bats tests/cli/owners.bats tests/cli/peak.bats tests/cli/findings.bats tests/cli/pictures.bats tests/cli/html.bats
EXTRA_DIST += tests/html/reports.py tests/html/page_format.py tests/html/browser.py
if BUILD_CLI
dist_check_SCRIPTS += tests/html/quick.sh tests/html/at_once.py
endif

# Always with debug information and inlining, whatever the build's flags are: that is what it is about.
check_PROGRAMS += tests/cli/self_report
tests_cli_self_report_CFLAGS = $(AM_CFLAGS) -g -O2

# Stands in for libmemshim.so where `memshim run` itself is tested; never sanitized, since it is loaded into any program.
check_PROGRAMS += tests/cli/fake_shim.so
tests_cli_fake_shim_so_CFLAGS = -std=gnu11 $(MS_WARNINGS) -fPIC
tests_cli_fake_shim_so_LDFLAGS = -shared

check_PROGRAMS += tests/cli/fake_nvml.so
tests_cli_fake_nvml_so_CFLAGS = -std=gnu11 -I$(top_srcdir)/src $(MS_WARNINGS) -fPIC
tests_cli_fake_nvml_so_LDFLAGS = -shared

# Counts what the command asks libdwfl for.
if BUILD_CLI
check_PROGRAMS += tests/cli/count_symbols.so
tests_cli_count_symbols_so_CFLAGS = -std=gnu11 $(MS_WARNINGS) -fPIC $(LIBDW_CFLAGS) $(JANSSON_CFLAGS)
tests_cli_count_symbols_so_LDFLAGS = -shared
endif

# A made-up wheel: a runtime under a name of its own, a module that finds it by DT_RPATH, and what opens the module. Never sanitized, as wheels are not.
EXTRA_DIST += tests/cli/wheel_runtime.map
check_PROGRAMS += tests/cli/wheel_runtime.so tests/cli/wheel_module.so tests/cli/wheel_opener
tests_cli_wheel_runtime_so_CFLAGS = -std=gnu11 $(MS_WARNINGS) -fPIC
tests_cli_wheel_runtime_so_LDFLAGS = -shared -Wl,-soname,libcudart-53d54daa.so.12.6.68 \
	-Wl,--version-script=$(srcdir)/tests/cli/wheel_runtime.map
tests_cli_wheel_module_so_CFLAGS = -std=gnu11 $(MS_WARNINGS) -fPIC
tests_cli_wheel_module_so_LDFLAGS = -shared -Wl,--disable-new-dtags '-Wl,-rpath,$$ORIGIN/libs'
tests_cli_wheel_module_so_LDADD = tests/cli/wheel_runtime.so -ldl
tests_cli_wheel_opener_CFLAGS = -std=gnu11 $(MS_WARNINGS)
tests_cli_wheel_opener_LDFLAGS =

# A driver program as any other, with the simulator's library for the linker's sake.
check_PROGRAMS += tests/cli/leaker
tests_cli_leaker_CFLAGS = $(AM_CFLAGS) -g -O1
tests_cli_leaker_LDADD = libcuda.so.1

if BUILD_CLI
ms_test_programs += tests/cli/test_text tests/cli/test_parse
tests_cli_test_parse_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(YAJL_CFLAGS)
tests_cli_test_parse_LDADD = $(ms_command_libs)
tests_cli_test_text_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(YAJL_CFLAGS)
tests_cli_test_text_LDADD = $(ms_command_libs)
endif
