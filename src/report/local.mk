# src/report: see docs/architecture.md
