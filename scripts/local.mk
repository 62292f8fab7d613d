# scripts: see docs/architecture.md
