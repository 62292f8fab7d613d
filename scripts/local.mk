# scripts: what people and continuous integration run; nothing is installed from here
EXTRA_DIST += .ci/run .clang-format .editorconfig scripts/install-deps scripts/fetch scripts/lib.sh scripts/results.sh scripts/test scripts/quickstart scripts/fuzz \
	scripts/dist-time scripts/reproducible scripts/bench scripts/browser scripts/schedules scripts/check-format scripts/coverage

ms_checks = scripts/check-headers scripts/check-layers scripts/check-text scripts/check-docs scripts/check-scripts scripts/check-vendor-calls scripts/check-memory-order
# Longer than the others: a minute and a half of processor time, when nothing was kept.
ms_checks += scripts/check-c
dist_check_SCRIPTS += $(ms_checks)
TESTS += $(ms_checks)
