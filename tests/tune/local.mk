# tests/tune: `memshim tune`, and what it stands on
if BUILD_CLI
ms_test_programs += tests/tune/test_course tests/tune/test_torch tests/tune/test_policy tests/tune/test_replay
tests_tune_test_course_LDADD = $(ms_command_libs)
check_PROGRAMS += tests/tune/torch_model
tests_tune_test_torch_LDADD = $(ms_command_libs)
tests_tune_torch_model_LDADD = $(ms_command_libs)
tests_tune_test_policy_LDADD = $(ms_command_libs)
tests_tune_test_replay_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_tune_test_replay_LDADD = $(ms_command_libs)
dist_check_SCRIPTS += tests/tune/tune.py tests/tune/fit.py
EXTRA_DIST += tests/tune/told.py tests/tune/recorded/README.md tests/tune/recorded/reserved.json tests/tune/recorded/record.py \
	tests/tune/recorded/gpt.py tests/tune/recorded/vision.py tests/tune/recorded/decode.py tests/tune/recorded/fields.py \
	tests/tune/recorded/batches.py tests/tune/recorded/gpt.trace.xz tests/tune/recorded/vision.trace.xz \
	tests/tune/recorded/decode.trace.xz tests/tune/recorded/fields.trace.xz tests/tune/recorded/batches.trace.xz
endif
