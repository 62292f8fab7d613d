# src/cli: floor 5, the memshim command. It takes the reading half of src/report and of src/base what it needs;
# never the hooks.
CLI_READ_SOURCES = src/report/read.h src/report/read.c src/report/parse.h src/report/parse.c src/report/sites.h src/report/sites.c src/report/slabs.h src/report/slabs.c src/report/text.h src/report/text.c src/report/utf8.h src/report/wide.h src/report/wide.c \
	src/report/symtab.h src/report/symtab.c src/report/scopes.h src/report/scopes.c src/report/resolver.h src/report/resolver.c src/report/name_cache.h src/report/name_cache.c src/report/symbols.h src/report/symbols.c src/report/pylines.h src/report/pylines.c src/report/pyframes.h src/report/pyframes.c \
	src/report/fold.h src/report/fold.c src/report/fold.def src/report/cxx.h src/report/cxx.c src/report/view.h src/report/view.c src/report/frameworks.def \
	src/report/owners.h src/report/owners.c src/report/owners_nccl.h src/report/owners_nccl.c src/report/findings.def src/report/findings.h src/report/findings.c src/report/findings_rules.c src/report/findings_oom.c src/report/findings_contexts.c src/report/findings_uses.c src/report/findings_left.c src/report/callers.h src/report/callers.c src/report/leak_class.h src/report/leak_class.c src/report/contexts_told.h src/report/contexts_told.c src/report/told.h src/report/told.c \
	src/report/consistent.h src/report/consistent.c
CLI_SOURCES = src/cli/cli.h src/cli/cmds.def src/cli/nearest.h src/cli/nearest.c src/cli/args.c src/cli/output.c \
	src/cli/load.h src/cli/load.c src/cli/reading.c src/cli/many.h src/cli/many.c src/cli/leaks.h src/cli/leaks.c src/cli/closing.h src/cli/closing.c src/cli/calls.h src/cli/calls.c src/cli/wrap.h src/cli/wrap.c src/cli/next.h src/cli/next.c src/cli/summary.h src/cli/summary_screen.c src/cli/summary_waste.c src/cli/summary_job.c src/cli/summary_text.c src/cli/summary_oom.c \
	src/cli/child.h src/cli/child.c src/cli/displaced.h src/cli/displaced.c src/cli/rundir.h src/cli/rundir.c src/cli/preload.h src/cli/preload.c src/cli/see_through.h src/cli/see_through.c src/cli/see_through.def src/cli/outcome.h src/cli/outcome.c \
	src/cli/elf.h src/cli/elf.c src/cli/closure.h src/cli/closure.c \
	src/cli/doctor.h src/cli/doctor_machine.c src/cli/doctor_program.c src/cli/doctor_run.c src/cli/doctor_text.c \
	src/cli/cmd_doctor.c src/cli/cmd_run.c src/cli/cmd_symbolize.c src/cli/cmd_validate.c src/cli/cmd_env.c src/cli/cmd_version.c src/cli/cmd_help.c src/cli/cmd_summary.c src/cli/cmd_leaks.c \
	src/cli/ledgers.h src/cli/ledgers.c src/cli/suppress.h src/cli/suppress.c src/cli/cmd_recover.c src/cli/stale_text.h src/cli/stale_text.c src/cli/cmd_clean.c src/cli/frag.h src/cli/frag.c src/cli/frag_then.c src/cli/frag_text.c src/cli/cmd_frag.c src/cli/cmd_phases.c src/cli/balance_text.h src/cli/balance_text.c src/cli/cmd_owners.c src/cli/cmd_peak.c src/cli/cmd_findings.c
CLI_SOURCES += src/cli/cmd_export.c src/cli/cmd_tree.c src/cli/cmd_flamegraph.c src/cli/cmd_timeline.c
CLI_SOURCES += src/cli/cmd_contexts.c src/cli/cmd_oom.c
CLI_SOURCES += src/cli/cmd_html.c
CLI_SOURCES += src/cli/check.h src/cli/check.c src/cli/check_measure.c src/cli/check_job.c src/cli/check_hold.c src/cli/check_baseline.c src/cli/check_text.c src/cli/check_junit.c src/cli/check_sarif.c \
	src/cli/cmd_check.c src/cli/cmd_suppress.c
CLI_SOURCES += src/cli/diff.h src/cli/diff_pair.c src/cli/diff.c src/cli/diff_text.c src/cli/cmd_diff.c
CLI_SOURCES += src/cli/job.h src/cli/job.c src/cli/job_take.c src/cli/job_measured.c src/cli/job_read.c src/cli/job_finish.c src/cli/job_groups.c src/cli/job_write.c src/cli/job_text.c src/cli/merge_tree.c src/cli/merge.h src/cli/merge_files.c src/cli/node.h src/cli/node.c src/cli/cmd_merge.c
CLI_SOURCES += src/cli/cmd_snapshot.c
CLI_SOURCES += src/cli/grow.h src/cli/grow.c
CLI_SOURCES += src/cli/living.h src/cli/living.c
CLI_SOURCES += src/cli/top.h src/cli/top_sample.c src/cli/top_sites.c src/cli/top_text.c src/cli/top_screen.c src/cli/cmd_top.c
CLI_SOURCES += src/cli/metrics.h src/cli/metrics.c src/cli/metrics_http.c src/cli/metrics_serve.c src/cli/cmd_metrics.c
if BUILD_CLI
bin_PROGRAMS += memshim
# All but main, for the fuzz targets as well.
noinst_LIBRARIES += src/cli/libmscommand.a
# The record of another process is read and reported by the objects that do so at exit (src/libmsreport.a, src/libmsfloor.a).
CLI_LEDGER_SOURCES = src/base/store_load.c src/ledger/recover.h src/ledger/recover.c src/ledger/recover_pools.c src/ledger/recover_clean.h src/ledger/recover_events.c
if !HAVE_STATIC_JANSSON
CLI_LEDGER_SOURCES += $(REPORT_JSON_SOURCES)
endif
src_cli_libmscommand_a_SOURCES = $(CLI_SOURCES) $(CLI_READ_SOURCES) $(CLI_EXPORT_SOURCES) $(CLI_HTML_SOURCES) $(CLI_LEDGER_SOURCES)
nodist_src_cli_libmscommand_a_SOURCES = src/report/report_schema.c src/html/page_sources.c
src_cli_libmscommand_a_CPPFLAGS = $(AM_CPPFLAGS) -DMS_LIBDIR='"$(libdir)"'
src_cli_libmscommand_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(YAJL_CFLAGS) $(NCURSES_CFLAGS) $(LIBDW_CFLAGS) $(ZLIB_CFLAGS)
ms_command_libs = src/cli/libmscommand.a src/libmsreport.a src/libmsfloor.a -lm $(JANSSON_LIBS) $(YAJL_LIBS) $(LIBDW_LIBS) $(ZLIB_LIBS) $(NCURSES_LIBS) $(DEMANGLE_LIBS)
memshim_SOURCES = src/cli/main.c
memshim_LDADD = $(ms_command_libs)
# A program of its own: only this one needs an MPI library.
if BUILD_MPI
bin_PROGRAMS += memshim-merge-mpi
nodist_man1_MANS += docs/man/memshim-merge-mpi.1
memshim_merge_mpi_SOURCES = src/cli/merge_mpi.c
memshim_merge_mpi_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
memshim_merge_mpi_LDADD = $(ms_command_libs) $(MPI_LIBS)
endif
endif

# The manual pages and the completion, from cmds.def. The tarball is the same whatever is built.
EXTRA_DIST += src/cli/cmds.awk docs/man/variables.man $(cli_pages:=.in) docs/man/memshim-merge-mpi.1
cli_pages = docs/man/memshim.1 docs/man/memshim-run.1 docs/man/memshim-summary.1 docs/man/memshim-leaks.1 docs/man/memshim-frag.1 docs/man/memshim-phases.1 docs/man/memshim-owners.1 docs/man/memshim-peak.1 docs/man/memshim-findings.1 \
	docs/man/memshim-recover.1 docs/man/memshim-clean.1 docs/man/memshim-symbolize.1 docs/man/memshim-validate.1 docs/man/memshim-env.1 docs/man/memshim-doctor.1
cli_pages += docs/man/memshim-export.1 docs/man/memshim-tree.1 docs/man/memshim-flamegraph.1 docs/man/memshim-timeline.1
cli_pages += docs/man/memshim-contexts.1 docs/man/memshim-oom.1
cli_pages += docs/man/memshim-html.1
cli_pages += docs/man/memshim-check.1 docs/man/memshim-suppress.1 docs/man/memshim-diff.1 docs/man/memshim-merge.1 docs/man/memshim-snapshot.1 docs/man/memshim-metrics.1 docs/man/memshim-top.1
cli_rows = $(srcdir)/src/cli/cmds.def
if BUILD_CLI
nodist_man1_MANS += $(cli_pages)
completiondir = $(datadir)/bash-completion/completions
nodist_completion_DATA = src/cli/completion/memshim
endif
CLEANFILES += $(cli_pages) src/cli/completion/memshim

$(cli_pages): src/cli/cmds.awk src/cli/cmds.def docs/man/variables.man
SUFFIXES = .1.in .1
.1.in.1:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && verb=`basename $@ .1 | sed 's/^memshim-*//'` && \
	$(AWK) -f $(srcdir)/src/cli/cmds.awk -v what=man -v verb="$$verb" -v version='$(PACKAGE_VERSION)' \
		-v variables=$(srcdir)/docs/man/variables.man $(cli_rows) $< >$@.tmp && mv $@.tmp $@
src/cli/completion/memshim: src/cli/cmds.awk src/cli/cmds.def
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) -f $(srcdir)/src/cli/cmds.awk -v what=completion $(cli_rows) >$@.tmp && \
	mv $@.tmp $@

# The schema as bytes, so that the command needs no file at run time.
CLEANFILES += src/report/report_schema.c
src/report/report_schema.c: $(srcdir)/src/report/report.schema.json src/report/$(am__dirstamp)
	$(AM_V_GEN){ echo '/* Made from report.schema.json. */' && echo '#include "report/consistent.h"' && \
	echo 'const char ms_report_schema[] = {' && \
	LC_ALL=C od -An -v -tx1 $(srcdir)/src/report/report.schema.json | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g' && \
	echo '0};'; } >$@.tmp && mv $@.tmp $@
