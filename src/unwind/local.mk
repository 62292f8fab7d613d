# src/unwind: floor 1, see docs/internals/architecture.md
STACK_SOURCES = src/unwind/stack.h src/unwind/frame.h src/unwind/python/python.h src/unwind/native/walk.c \
	src/unwind/native/unwind.h src/unwind/native/memory.h src/unwind/native/memory.c \
	src/unwind/native/rules.h src/unwind/native/recall.h src/unwind/native/latest_stack.h \
	src/unwind/sample.c src/unwind/tree.h src/unwind/tree.c src/unwind/nodes.c \
	src/unwind/python/codes.c src/unwind/python/merge.h src/unwind/python/merge.c \
	src/unwind/python/pair.h src/unwind/python/pair.c
STACK_SOURCES += src/unwind/python/python.c src/unwind/python/python_find.h src/unwind/python/python_find.c \
	src/unwind/python/python_layout.h src/unwind/python/python_layout.c src/unwind/python/python_read.h \
	src/unwind/python/python_read.c src/unwind/python/python_text.h src/unwind/python/python_text.c \
	src/unwind/python/python_codes.h src/unwind/python/python_codes.c \
	src/unwind/python/python_life.h src/unwind/python/python_life.c \
	src/unwind/python/python_thread.h src/unwind/python/python_thread.c \
	src/unwind/python/python_print.c src/unwind/python/python_same.c src/unwind/python/python_walk.c
if HAVE_LIBUNWIND
STACK_SOURCES += src/unwind/native/rules.c src/unwind/native/walk_rules.c
else
STACK_SOURCES += src/unwind/native/walk_libgcc.c
endif
EXTRA_DIST += NOTICE scripts/build-libunwind src/unwind/native/rules.c src/unwind/native/walk_rules.c src/unwind/native/walk_libgcc.c
