# src/stack: floor 1, see docs/architecture.md
STACK_SOURCES = src/stack/stack.h src/stack/frame.h src/stack/python.h src/stack/walk.c src/stack/unwind.h src/stack/memory.h src/stack/memory.c \
	src/stack/rules.h src/stack/recall.h src/stack/sample.c src/stack/tree.h src/stack/tree.c src/stack/nodes.c src/stack/codes.c src/stack/merge.h
if HAVE_LIBUNWIND
STACK_SOURCES += src/stack/rules.c src/stack/walk_rules.c
else
STACK_SOURCES += src/stack/walk_libgcc.c
endif
EXTRA_DIST += NOTICE scripts/build-libunwind src/stack/rules.c src/stack/walk_rules.c src/stack/walk_libgcc.c
