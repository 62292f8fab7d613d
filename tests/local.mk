# tests: the harness. Every test speaks TAP and runs under automake's TAP driver; docs/internals/testing.md says how to add one.
TEST_EXTENSIONS = .sh .bats .py
# TEST_ENTER comes before each: scripts/test-arm64 has them run in a tree of another machine.
ms_tap_driver = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh --merge
ms_run_test = $(TEST_ENTER) $(SHELL) $(top_srcdir)/tests/helpers/run-test
LOG_DRIVER = $(ms_tap_driver)
LOG_COMPILER = $(ms_run_test)
SH_LOG_DRIVER = $(ms_tap_driver)
SH_LOG_COMPILER = $(ms_run_test) sh
BATS_LOG_DRIVER = $(ms_tap_driver)
BATS_LOG_COMPILER = $(ms_run_test) bats
PY_LOG_DRIVER = $(ms_tap_driver)
PY_LOG_COMPILER = $(ms_run_test) python3
AM_TESTS_ENVIRONMENT = \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	TEST_CC='$(CC)'; export TEST_CC; \
	TEST_SANITIZE='$(MS_SANITIZE)'; export TEST_SANITIZE; \
	TEST_CUDA_HOME='$(CUDA_HOME)'; export TEST_CUDA_HOME;

EXTRA_DIST += tests/helpers/run-test tests/helpers/enter-tree tests/helpers/patient.py tests/helpers/common.bash tests/helpers/report.py tests/helpers/results.sh tests/helpers/tap.sh tests/helpers/valid tests/clock.h tests/program.h tests/tap.h

# A test is a program of this list, or a script. A program is made of the C file of its name, and of the floors 0 to 2 it takes what it uses,
# unless its _SOURCES and _LDADD say otherwise.
ms_test_programs =
check_PROGRAMS += $(ms_test_programs)
TESTS += $(ms_test_programs) $(dist_check_SCRIPTS)
LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS) -ldl
check_LIBRARIES =

include tests/unit/local.mk
include tests/stack/local.mk
include tests/pool/local.mk
include tests/sim/driver.mk
include tests/sim/runtime.mk
include tests/sim/nccl.mk
include tests/sim/nvml.mk
include tests/sim/cublas.mk
include tests/hip/local.mk
include tests/nccl/local.mk
include tests/systems/local.mk
include tests/hooks/local.mk
include tests/abi/local.mk
include tests/acl/local.mk
include tests/limit/local.mk
include tests/lookups/local.mk
include tests/cli/local.mk
include tests/containers/local.mk
include tests/thirdparty/local.mk
include tests/clients/local.mk
include tests/programs/local.mk
include tests/ledger/local.mk
include tests/fuzz/local.mk
include tests/upgrade/local.mk
include tests/ipc/local.mk
include tests/bench/local.mk
include tests/gpu/local.mk
include tests/stream/local.mk
include tests/captures/local.mk
include tests/traps/local.mk
include tests/hazards/local.mk
include tests/limbo/local.mk
include tests/schedules/local.mk
include tests/nohang/local.mk
include tests/faults/local.mk
include tests/phases/local.mk
include tests/inner/local.mk
include tests/startup/local.mk
include tests/cases/local.mk
include tests/balance/local.mk
include tests/oom/local.mk
include tests/findings/local.mk
include tests/export/local.mk
include tests/check/local.mk
include tests/diff/local.mk
include tests/wheel/local.mk
include tests/merge/local.mk
include tests/tune/local.mk
include tests/share/local.mk
include tests/python/local.mk

# The harness itself: that what it promises to tests holds.
check_PROGRAMS += tests/helpers/tap_selftest
dist_check_SCRIPTS += tests/helpers/harness.sh

# The names of all tests, for scripts/test; those of scripts/test --quick, and the programs that these need. Left out there is what takes
# more than three seconds of processor time, or whose programs take long to compile (docs/internals/testing.md); what is new is quick until it is not.
ms_long_rooms = acl balance bench captures clients faults findings fuzz gpu hazards hip html ipc limbo lookups merge nccl nohang phases python \
	schedules stream systems thirdparty traps
ms_long = $(ms_long_rooms:%=tests/%/%) scripts/checks/headers scripts/checks/cppcheck scripts/checks/clang-tidy tests/cli/doctor.% tests/cli/fold.% tests/cli/hostile.% tests/cli/view.% \
	tests/hooks/differential.% tests/hooks/nothing.% tests/hooks/neighbours.% tests/hooks/threads.% tests/pool/test_streams tests/pool/test_vmm_long \
	tests/programs/questions.% tests/programs/screens.% tests/containers/%
# What quick tests use of other rooms.
ms_quick_others = tests/gpu/conformance tests/ipc/libmpi.so.40 tests/phases/phases_user
print-programs:
	@echo $(check_PROGRAMS)
print-tests:
	@echo $(TESTS)
print-quick-tests:
	@echo $(filter-out $(ms_long),$(TESTS))
print-quick-programs:
	@echo $(filter-out $(ms_long),$(check_PROGRAMS)) $(ms_quick_others)
.PHONY: print-programs print-tests print-quick-tests print-quick-programs
