# src/cli: floor 5, the memshim command. It takes the reading half of src/report and of src/base what it needs;
# never the hooks.
CLI_READ_SOURCES = src/report/read.h src/report/read.c src/report/text.h src/report/text.c \
	src/report/resolver.h src/report/resolver.c src/report/symbols.h src/report/symbols.c \
	src/report/schema.h src/report/schema.c src/report/schema_rules.h src/report/schema_rules.c \
	src/report/consistent.h src/report/consistent.c
CLI_SOURCES = src/cli/cli.h src/cli/cmds.def src/cli/main.c src/cli/args.c src/cli/output.c \
	src/cli/load.h src/cli/load.c src/cli/summary.h src/cli/summary_text.c \
	src/cli/child.h src/cli/child.c src/cli/preload.h src/cli/preload.c src/cli/outcome.h src/cli/outcome.c \
	src/cli/elf.h src/cli/elf.c src/cli/closure.h src/cli/closure.c \
	src/cli/doctor.h src/cli/doctor_machine.c src/cli/doctor_program.c src/cli/doctor_run.c src/cli/doctor_text.c \
	src/cli/cmd_doctor.c src/cli/cmd_run.c src/cli/cmd_symbolize.c src/cli/cmd_validate.c src/cli/cmd_env.c src/cli/cmd_version.c src/cli/cmd_help.c src/cli/cmd_summary.c src/cli/cmd_leaks.c
if BUILD_CLI
bin_PROGRAMS += memshim
# What the command needs of floor 0, compiled without the hooks' flags.
CLI_BASE_SOURCES = src/base/compiler.h src/base/options.h src/base/options.def src/base/options.c \
	src/base/options_value.h src/base/options_value.c
memshim_SOURCES = $(CLI_SOURCES) $(CLI_READ_SOURCES) $(CLI_BASE_SOURCES)
nodist_memshim_SOURCES = src/report/report_schema.c
memshim_CPPFLAGS = $(AM_CPPFLAGS) -DMS_LIBDIR='"$(libdir)"'
memshim_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(LIBDW_CFLAGS)
memshim_LDADD = -lm $(JANSSON_LIBS) $(LIBDW_LIBS) $(DEMANGLE_LIBS)
endif

# The schema as bytes, so that the command needs no file at run time.
CLEANFILES += src/report/report_schema.c
src/report/report_schema.c: $(srcdir)/src/report/report.schema.json src/report/$(am__dirstamp)
	$(AM_V_GEN){ echo '/* Made from report.schema.json. */' && echo '#include "report/schema.h"' && \
	echo 'const char ms_report_schema[] = {' && \
	LC_ALL=C od -An -v -tx1 $(srcdir)/src/report/report.schema.json | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g' && \
	echo '0};'; } >$@.tmp && mv $@.tmp $@
