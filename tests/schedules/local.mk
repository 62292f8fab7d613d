# tests/schedules: the pool and the locks under a scheduler that decides at every atomic operation who goes on
if !SANITIZED
check_LIBRARIES += tests/schedules/libsubject.a tests/schedules/libprograms.a
tests_schedules_libsubject_a_SOURCES = tests/schedules/subject.h $(GPU_SOURCES) $(POOL_SOURCES) src/base/lock.c src/base/bias.c src/base/arena.c src/base/clock.c src/base/guard.c
tests_schedules_libsubject_a_CPPFLAGS = $(AM_CPPFLAGS) -include $(top_srcdir)/tests/schedules/subject.h
tests_schedules_libsubject_a_CFLAGS = $(AM_CFLAGS) -fsanitize=thread
tests_schedules_libprograms_a_SOURCES = tests/schedules/programs.h tests/schedules/programs_wrong.c tests/schedules/programs_locks.c \
	tests/schedules/programs_streams.c tests/schedules/programs_litmus.c
tests_schedules_libprograms_a_CPPFLAGS = $(tests_schedules_libsubject_a_CPPFLAGS) -I$(top_srcdir)/tests/pool
tests_schedules_libprograms_a_CFLAGS = $(tests_schedules_libsubject_a_CFLAGS)
check_PROGRAMS += tests/schedules/schedules
TESTS += tests/schedules/schedules.py
endif
# What world.c puts in the place of the C library's.
ms_wrapped = mmap munmap mprotect madvise malloc calloc realloc free syscall gettid clock_gettime nanosleep clock_nanosleep sched_yield
tests_schedules_schedules_SOURCES = tests/schedules/engine.h tests/schedules/engine.c tests/schedules/freeze.c tests/schedules/real.h tests/schedules/world.c \
	tests/schedules/atomics.c tests/schedules/accesses.c tests/schedules/weak.h tests/schedules/weak.c tests/schedules/main.c tests/pool/streams.h tests/pool/streams_types.h tests/pool/streams.c
tests_schedules_schedules_CPPFLAGS = $(AM_CPPFLAGS) -DMS_SCHEDULES -I$(top_srcdir)/tests/pool
tests_schedules_schedules_LDFLAGS = $(AM_LDFLAGS) -no-pie $(ms_wrapped:%=-Wl,--wrap=%)
tests_schedules_schedules_LDADD = tests/schedules/libprograms.a tests/schedules/libsubject.a src/libmsfloor.a
dist_check_SCRIPTS += tests/schedules/schedules.py
EXTRA_DIST += tests/schedules/mutants.py
