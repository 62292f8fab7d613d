# tests: see docs/architecture.md
