# src/stack: floor 1, see docs/architecture.md
STACK_SOURCES = src/stack/stack.h src/stack/walk.c src/stack/tree.c
