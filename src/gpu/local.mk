# src/gpu: see docs/architecture.md
