# tests/wheel: what is in the wheels that scripts/wheel makes, and that they run (docs/user/install.md)
EXTRA_DIST += scripts/wheel scripts/test-arm64 packaging/wheel/NOTICE.md packaging/wheel/dependencies packaging/wheel/fetch \
	packaging/wheel/make-wheels packaging/wheel/sim-metadata.txt packaging/wheel/sources.tsv packaging/wheel/toolchain \
	packaging/wheel/tools.txt packaging/wheel/zig.txt tests/wheel/emulate.sh tests/wheel/foreign.sh tests/wheel/inside tests/wheel/lines.py tests/wheel/trees
dist_check_SCRIPTS += tests/wheel/elves.py
