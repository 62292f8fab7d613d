# src/cli: floor 5, the memshim command. It takes the reading half of src/report and of src/base what it needs;
# never the hooks.
CLI_READ_SOURCES = src/report/read/read.h src/report/read/read.c src/report/read/parse.h \
	src/report/read/parse.c src/report/read/sites.h src/report/read/sites.c src/report/read/layer.h src/report/read/layer.c src/report/read/slabs.h \
	src/report/read/slabs.c src/report/text/text.h src/report/text/text.c src/report/text/utf8.h \
	src/report/text/display_width.h src/report/text/display_width.c src/report/symbols/symtab.h \
	src/report/symbols/symtab.c src/report/symbols/scopes.h src/report/symbols/scopes.c src/report/symbols/resolver.h \
	src/report/symbols/resolver.c src/report/symbols/name_cache.h src/report/symbols/name_cache.c \
	src/report/symbols/cache_directory.h src/report/symbols/cache_directory.c \
	src/report/symbols/symbols.h src/report/symbols/symbols.c src/report/symbols/pylines.h \
	src/report/symbols/pylines.c src/report/symbols/pyframes.h src/report/symbols/pyframes.c \
	src/report/analyse/fold.h src/report/analyse/fold.c src/report/analyse/fold.def \
	src/report/symbols/cxx.h src/report/symbols/cxx.c src/report/analyse/view.h \
	src/report/analyse/categories.def src/report/analyse/categories.h src/report/analyse/categories.c src/report/analyse/view.c src/report/analyse/frameworks.def src/report/analyse/owners.h \
	src/report/analyse/owners.c src/report/analyse/owners_nccl.h src/report/analyse/owners_nccl.c \
	src/report/findings/findings.def src/report/findings/findings.h src/report/findings/findings.c \
	src/report/findings/findings_rules.c src/report/findings/findings_oom.c \
	src/report/findings/findings_contexts.c src/report/findings/findings_uses.c src/report/findings/findings_tensors.c \
	src/report/findings/findings_piles.c src/report/analyse/tensor_lines.h src/report/analyse/tensor_lines.c \
	src/report/findings/findings_left.c src/report/analyse/callers.h src/report/analyse/callers.c \
	src/report/analyse/leak_class.h src/report/analyse/leak_class.c \
	src/report/analyse/contexts_others.h src/report/analyse/contexts_others.c \
	src/report/analyse/analyse.h src/report/analyse/analyse.c src/report/analyse/consistent.h \
	src/report/analyse/consistent.c src/report/analyse/consistent_inner.c src/report/analyse/inquiry.h \
	src/report/analyse/inquiry.c
CLI_SOURCES = src/cli/cli.h src/cli/cmds.def src/cli/nearest.h src/cli/nearest.c src/cli/args.c \
	src/cli/output.c src/cli/load.h src/cli/load.c src/cli/reading.c src/cli/screens/multi_report.h \
	src/cli/screens/multi_report.c src/cli/screens/leaks.h src/cli/screens/leaks.c \
	src/cli/run/run_summary.h src/cli/run/run_summary.c src/cli/screens/calls.h src/cli/screens/calls.c \
	src/cli/wrap.h src/cli/wrap.c src/cli/screens/next.h src/cli/screens/next.c \
	src/cli/screens/summary.h src/cli/screens/summary_screen.c src/cli/screens/summary_waste.c \
	src/cli/screens/summary_job.c src/cli/screens/summary_text.c src/cli/screens/summary_oom.c \
	src/cli/run/child.h src/cli/run/child.c src/cli/run/displaced.h src/cli/run/displaced.c \
	src/cli/run/rundir.h src/cli/run/rundir.c src/cli/run/preload.h src/cli/run/preload.c \
	src/cli/run/see_through.h src/cli/run/see_through.c \
	src/cli/run/run_reports.h src/cli/run/run_reports.c src/cli/doctor/elf_program.h \
	src/cli/doctor/elf_program.c src/cli/doctor/closure.h src/cli/doctor/closure.c \
	src/cli/doctor/doctor.h src/cli/doctor/doctor_devices.c src/cli/doctor/doctor_machine.c src/cli/doctor/doctor_program.c \
	src/cli/doctor/doctor_run.c src/cli/doctor/doctor_text.c src/cli/verbs/cmd_doctor.c \
	src/cli/verbs/cmd_run.c src/cli/verbs/cmd_symbolize.c src/cli/verbs/cmd_validate.c \
	src/cli/verbs/cmd_env.c src/cli/verbs/cmd_version.c src/cli/verbs/cmd_help.c \
	src/cli/verbs/cmd_summary.c src/cli/verbs/cmd_leaks.c src/cli/live/ledgers.h src/cli/live/ledgers.c \
	src/cli/live/job_ledgers.h src/cli/live/job_ledgers.c \
	src/cli/screens/suppress.h src/cli/screens/suppress.c src/cli/verbs/cmd_recover.c \
	src/cli/live/stale_text.h src/cli/live/stale_text.c src/cli/verbs/cmd_clean.c \
	src/cli/screens/frag.h src/cli/screens/frag.c src/cli/screens/trace_replay.c \
	src/cli/screens/frag_text.c src/cli/verbs/cmd_frag.c src/cli/verbs/cmd_phases.c \
	src/cli/screens/balance_text.h src/cli/screens/balance_text.c \
	src/cli/screens/device_line.h src/cli/screens/device_line.c src/cli/verbs/cmd_owners.c \
	src/cli/verbs/cmd_peak.c src/cli/verbs/cmd_findings.c
CLI_SOURCES += src/cli/verbs/cmd_export.c src/cli/verbs/cmd_tree.c src/cli/verbs/cmd_flamegraph.c \
	src/cli/verbs/cmd_timeline.c
CLI_SOURCES += src/cli/verbs/cmd_contexts.c src/cli/verbs/cmd_oom.c
CLI_SOURCES += src/cli/verbs/cmd_html.c
CLI_SOURCES += src/cli/check/check.h src/cli/check/check.c src/cli/check/check_measure.c \
	src/cli/check/check_job.c src/cli/check/check_hold.c src/cli/check/check_baseline.c \
	src/cli/check/check_text.c src/cli/check/check_junit.c src/cli/check/check_sarif.c \
	src/cli/verbs/cmd_check.c src/cli/verbs/cmd_suppress.c
CLI_SOURCES += src/cli/screens/diff.h src/cli/screens/diff_pair.c src/cli/screens/diff.c \
	src/cli/screens/diff_text.c src/cli/verbs/cmd_diff.c
CLI_SOURCES += src/cli/job/job.h src/cli/job/job.c src/cli/job/job_take.c src/cli/job/job_measured.c \
	src/cli/job/job_read.c src/cli/job/job_finish.c src/cli/job/job_groups.c src/cli/job/job_write.c \
	src/cli/job/job_text.c src/cli/job/merge_tree.c src/cli/job/merge.h src/cli/job/merge_files.c \
	src/cli/run/host.h src/cli/run/host.c src/cli/verbs/cmd_merge.c
CLI_SOURCES += src/cli/verbs/cmd_snapshot.c src/cli/verbs/cmd_trace.c
CLI_SOURCES += src/cli/array.h src/cli/progress.h src/cli/progress.c
CLI_SOURCES += src/cli/tune/course.h src/cli/tune/course.c src/cli/tune/pieces.h src/cli/tune/pieces.c
CLI_SOURCES += src/cli/torch/torch.h src/cli/torch/torch.c src/cli/torch/torch_model.h src/cli/torch/torch_blocks.c \
	src/cli/torch/torch_device.c src/cli/torch/torch_settings.c src/cli/torch/tries.h src/cli/torch/tries.c src/cli/torch/tries.def \
	src/cli/torch/what_if.h src/cli/torch/what_if.c src/cli/torch/measured.h src/cli/torch/measured.c
CLI_SOURCES += src/cli/tune/replay_form.h \
	src/cli/tune/costs.def src/cli/tune/replay_run.h src/cli/tune/replay_run.c src/cli/tune/steps.h \
	src/cli/tune/steps.c src/cli/tune/policy.h src/cli/tune/policy.c src/cli/tune/policy.def src/cli/tune/kept.h \
	src/cli/tune/kept.c src/cli/tune/trial.h src/cli/tune/trial.c src/cli/tune/search.h src/cli/tune/search.c src/cli/tune/search_torch.c \
	src/cli/tune/tune.h src/cli/tune/tune_text.c src/cli/tune/tune_program.c src/cli/tune/cmd_tune.c
CLI_SOURCES += src/cli/fit/law.h src/cli/fit/law.c src/cli/fit/fit.h src/cli/fit/fit_run.c src/cli/fit/fit_try.c \
	src/cli/fit/fit_text.h src/cli/fit/fit_text.c src/cli/fit/cmd_fit.c
CLI_SOURCES += src/cli/live/live_ledgers.h src/cli/live/live_ledgers.c
CLI_SOURCES += src/cli/live/top.h src/cli/live/top_sample.c src/cli/live/top_sites.c \
	src/cli/live/top_text.c src/cli/live/top_screen.c src/cli/live/cmd_top.c \
	src/cli/live/shares.h src/cli/live/shares.c
CLI_SOURCES += src/cli/live/metrics.h src/cli/live/metrics.c src/cli/live/metrics_http.c \
	src/cli/live/metrics_serve.c src/cli/live/cmd_metrics.c
if BUILD_CLI
bin_PROGRAMS += memshim
# All but main, for the fuzz targets as well.
noinst_LIBRARIES += src/cli/libmscommand.a
# The record of another process is read and reported by the objects that do so at exit (src/libmsreport.a, src/libmsfloor.a).
CLI_LEDGER_SOURCES = src/base/store/store_load.c src/record/reader/recover.h src/record/reader/recover.c \
	src/record/reader/recover_pools.c src/record/reader/recover_clean.h \
	src/record/reader/recover_events.c
if !HAVE_STATIC_JANSSON
CLI_LEDGER_SOURCES += $(REPORT_JSON_SOURCES)
endif
src_cli_libmscommand_a_SOURCES = $(CLI_SOURCES) $(CLI_READ_SOURCES) $(CLI_TRACE_SOURCES) $(CLI_EXPORT_SOURCES) \
	$(CLI_HTML_SOURCES) $(CLI_LEDGER_SOURCES)
nodist_src_cli_libmscommand_a_SOURCES = src/report/report_schema.c src/html/page_sources.c
src_cli_libmscommand_a_CPPFLAGS = $(AM_CPPFLAGS) -DMS_LIBDIR='"$(libdir)"'
src_cli_libmscommand_a_CFLAGS = $(AM_CFLAGS) $(MS_COVERAGE) $(JANSSON_CFLAGS) $(YAJL_CFLAGS) $(NCURSES_CFLAGS) \
	$(LIBDW_CFLAGS) $(ZLIB_CFLAGS) $(ZSTD_CFLAGS)
ms_command_libs = src/cli/libmscommand.a src/libmsreport.a src/libmsfloor.a -lm $(JANSSON_LIBS) $(YAJL_LIBS) $(LIBDW_LIBS) $(ZLIB_LIBS) $(ZSTD_LIBS) $(NCURSES_LIBS) $(DEMANGLE_LIBS)
memshim_SOURCES = src/cli/main.c
memshim_LDADD = $(ms_command_libs)
# What memshim tune runs: it is of use with the simulated GPU alone, and lies beside it.
sim_PROGRAMS += memshim-replayer
memshim_replayer_SOURCES = src/cli/tune/replayer.c src/cli/tune/replay_form.h
memshim_replayer_LDADD = -ldl -lpthread
# A program of its own: only this one needs an MPI library.
if BUILD_MPI
bin_PROGRAMS += memshim-merge-mpi
nodist_man1_MANS += docs/man/memshim-merge-mpi.1
memshim_merge_mpi_SOURCES = src/cli/job/merge_mpi.c
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
cli_pages += docs/man/memshim-tune.1 docs/man/memshim-fit.1 docs/man/memshim-trace.1
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
	$(AM_V_GEN){ echo '/* Made from report.schema.json. */' && echo '#include "report/analyse/consistent.h"' && \
	echo 'const char ms_report_schema[] = {' && \
	LC_ALL=C od -An -v -tx1 $(srcdir)/src/report/report.schema.json | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g' && \
	echo '0};'; } >$@.tmp && mv $@.tmp $@
