# src/stack: see docs/architecture.md
