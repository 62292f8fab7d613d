# scripts: what people and continuous integration run; nothing is installed from here
EXTRA_DIST += .ci/run .clang-format .clang-tidy .editorconfig scripts/install-deps scripts/fetch scripts/lib.sh scripts/test scripts/quickstart scripts/fuzz \
	scripts/dist-time scripts/reproducible scripts/bench scripts/test-browser scripts/schedules scripts/check scripts/checks/format scripts/coverage \
	scripts/generate

dist_check_SCRIPTS += scripts/checks/headers scripts/checks/layers scripts/checks/text scripts/checks/docs scripts/checks/scripts scripts/checks/vendor-calls \
	scripts/checks/memory-order scripts/checks/cppcheck scripts/checks/clang-tidy
