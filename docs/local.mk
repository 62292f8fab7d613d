# docs: see docs/architecture.md
