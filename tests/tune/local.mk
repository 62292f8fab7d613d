# tests/tune: `memshim tune`, and what it stands on
if BUILD_CLI
ms_test_programs += tests/tune/test_course
tests_tune_test_course_LDADD = $(ms_command_libs)
endif
