# tests/cases: small programs shaped after public reports or found in use, and what each must print (cases.py)
ms_cases = tests/cases/after_free tests/cases/asked tests/cases/crossed tests/cases/followed tests/cases/graph_owed tests/cases/kept \
	tests/cases/limited tests/cases/loaded tests/cases/many tests/cases/neighbour tests/cases/opened tests/cases/reset_free
check_PROGRAMS += $(ms_cases) tests/cases/audit.so
ms_case_libs = libcudart.so.13 libcuda.so.1 -ldl
tests_cases_after_free_LDADD = $(ms_case_libs)
tests_cases_asked_LDADD = $(ms_case_libs)
tests_cases_crossed_LDADD = $(ms_case_libs)
tests_cases_followed_LDADD = $(ms_case_libs)
tests_cases_graph_owed_CFLAGS = $(AM_CFLAGS) -g
tests_cases_graph_owed_LDADD = $(ms_case_libs)
tests_cases_kept_LDADD = $(ms_case_libs)
tests_cases_limited_LDADD = $(ms_case_libs)
tests_cases_loaded_LDADD = $(ms_case_libs)
tests_cases_many_LDADD = libcudart.so.13 -ldl
tests_cases_neighbour_LDADD = libcudart.so.13 -ldl
tests_cases_opened_CFLAGS = $(AM_CFLAGS) -g
tests_cases_opened_LDADD = $(ms_case_libs)
tests_cases_reset_free_LDADD = $(ms_case_libs)
tests_cases_audit_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_cases_audit_so_LDFLAGS = -shared
dist_check_SCRIPTS += tests/cases/cases.py
EXTRA_DIST += tests/cases/case.h

# What the command says of such programs.
if BUILD_CLI
check_PROGRAMS += tests/cases/helper tests/cases/policy tests/cases/wanting
tests_cases_helper_CFLAGS = $(AM_CFLAGS) -g -O1
tests_cases_helper_LDADD = $(ms_case_libs)
tests_cases_policy_CFLAGS = $(AM_CFLAGS) -g -O1
tests_cases_policy_LDADD = $(ms_case_libs)
tests_cases_wanting_CFLAGS = $(AM_CFLAGS) -g -O1
tests_cases_wanting_LDADD = $(ms_case_libs)
dist_check_SCRIPTS += tests/cases/told.py
endif
