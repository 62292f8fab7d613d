# src/quota: floor 1.5, see docs/internals/architecture.md
QUOTA_SOURCES = src/quota/quota.h src/quota/quota.c src/quota/host.h src/quota/host.c
