# hooks: see docs/architecture.md
