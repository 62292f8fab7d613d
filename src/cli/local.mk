# src/cli: see docs/architecture.md
