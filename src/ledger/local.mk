# src/ledger: see docs/architecture.md
