# tests/upgrade: what earlier versions wrote
EXTRA_DIST += tests/upgrade/report.json.xz tests/upgrade/run.trace.xz tests/upgrade/killed.ledger.xz
if BUILD_CLI
dist_check_SCRIPTS += tests/upgrade/upgrade.py
endif
