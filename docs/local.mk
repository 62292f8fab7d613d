# docs: see docs/architecture.md
EXTRA_DIST += docs/architecture.md docs/contract.md docs/testing.md
