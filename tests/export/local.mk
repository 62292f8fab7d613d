# tests/export: what memshim export writes; scripts/test-exports opens it in the tools themselves
dist_check_SCRIPTS += tests/export/formats.py
EXTRA_DIST += tests/export/readers.py tests/export/opened.py tests/export/browser.py scripts/test-exports \
	tests/clients/requirements/exports.txt tests/clients/requirements/exports.sources
