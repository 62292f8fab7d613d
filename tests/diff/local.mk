# tests/diff: memshim diff, of two builds of one program
dist_check_SCRIPTS += tests/diff/diff.bats
EXTRA_DIST += tests/diff/diff_user.c tests/diff/diff_part.h
