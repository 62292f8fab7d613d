# src/stack: floor 1, see docs/architecture.md
STACK_SOURCES = src/stack/stack.h src/stack/frame.h src/stack/python.h src/stack/walk.c src/stack/unwind.h src/stack/memory.h src/stack/memory.c \
	src/stack/rules.h src/stack/recall.h src/stack/again.h src/stack/sample.c src/stack/tree.h src/stack/tree.c src/stack/nodes.c src/stack/codes.c src/stack/merge.h src/stack/merge.c src/stack/pair.h src/stack/pair.c
STACK_SOURCES += src/stack/python.c src/stack/python_find.h src/stack/python_find.c src/stack/python_layout.h src/stack/python_layout.c \
	src/stack/python_read.h src/stack/python_read.c src/stack/python_text.h src/stack/python_text.c src/stack/python_codes.h \
	src/stack/python_codes.c src/stack/python_deaths.h src/stack/python_deaths.c src/stack/python_life.h src/stack/python_life.c src/stack/python_thread.h src/stack/python_thread.c src/stack/python_print.c \
	src/stack/python_same.c src/stack/python_walk.c
if HAVE_LIBUNWIND
STACK_SOURCES += src/stack/rules.c src/stack/walk_rules.c
else
STACK_SOURCES += src/stack/walk_libgcc.c
endif
EXTRA_DIST += NOTICE scripts/build-libunwind src/stack/rules.c src/stack/walk_rules.c src/stack/walk_libgcc.c
