# src/base: see docs/architecture.md
