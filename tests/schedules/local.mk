# tests/schedules: the pool, the ledger, the stacks and the locks under a scheduler that decides at every atomic operation who goes on
if !SANITIZED
check_LIBRARIES += tests/schedules/libsubject.a tests/schedules/libprograms.a tests/schedules/libchecks.a
# What is asked when all tasks have ended, and is no step of theirs.
tests_schedules_libchecks_a_SOURCES = tests/pool/checks.h tests/pool/check.c
tests_schedules_libsubject_a_SOURCES = tests/schedules/subject.h $(GPU_SOURCES) $(POOL_SOURCES) $(FASTPATH_SOURCES) \
	$(QUOTA_SOURCES) $(LEDGER_SOURCES) src/share/admission.c src/share/asks.c \
	src/base/lock.c src/base/thread/bias.c src/base/arena.c src/base/clock.c \
	src/base/thread/guard.c src/base/thread/thread_own.c src/base/log.c src/base/store/store.c \
	src/base/objects/objects.c src/base/objects/objects_scan.c src/base/objects/objects_since.c \
	src/base/objects/objects_index.c src/base/records.c src/base/thread/aux_stack.c \
	src/base/thread/slow_path.c src/base/signals.c src/unwind/tree.c src/unwind/nodes.c \
	src/unwind/python/codes.c src/unwind/sample.c src/unwind/python/python_codes.c \
	src/unwind/python/python_text.c src/unwind/python/python_read.c
tests_schedules_libsubject_a_CPPFLAGS = $(AM_CPPFLAGS) -include $(top_srcdir)/tests/schedules/subject.h
tests_schedules_libsubject_a_CFLAGS = $(AM_CFLAGS) $(MS_ACCESSES_CFLAGS)
tests_schedules_libprograms_a_SOURCES = tests/schedules/programs.h tests/schedules/programs_wrong.c \
	tests/schedules/programs_locks.c tests/schedules/programs_streams.c \
	tests/schedules/programs_litmus.c tests/schedules/programs_ledger.c tests/schedules/programs_inner.c \
	tests/schedules/programs_stacks.c tests/schedules/programs_share.c tests/schedules/programs_quota.c tests/schedules/programs_run.c tests/schedules/touch.c \
	tests/schedules/programs_heap.c tests/schedules/programs_parts.c tests/schedules/programs_small.c \
	tests/schedules/programs_small_record.c tests/schedules/programs_small_streams.c \
	tests/schedules/programs_hits.c tests/schedules/programs_fences.c tests/schedules/programs_fences_hip.c tests/schedules/programs_wholes.c \
	hooks/serve/serve_handles.c tests/schedules/recorded.h tests/schedules/recorded.c \
	tests/schedules/calls.h tests/schedules/calls.c tests/pool/trim.c
tests_schedules_libprograms_a_CPPFLAGS = $(tests_schedules_libsubject_a_CPPFLAGS) -I$(top_srcdir)/tests/pool
tests_schedules_libprograms_a_CFLAGS = $(tests_schedules_libsubject_a_CFLAGS)
check_PROGRAMS += tests/schedules/schedules tests/schedules/crash
dist_check_SCRIPTS += tests/schedules/schedules.py tests/schedules/crash.py
endif
# The vendor and the book: each call is a step that depends on all others of theirs (order.h).
if !SANITIZED
check_LIBRARIES += tests/schedules/libvendor.a
endif
tests_schedules_libvendor_a_SOURCES = tests/pool/streams.h tests/pool/streams_types.h tests/pool/streams.c \
	tests/schedules/book.h tests/schedules/book_rows.h tests/schedules/book.c \
	tests/schedules/book_check.c tests/schedules/book_texts.c tests/pool/fake.h tests/pool/fake.c \
	tests/pool/fake_vmm.c
tests_schedules_libvendor_a_CPPFLAGS = $(AM_CPPFLAGS) -DMS_SCHEDULES -I$(top_srcdir)/tests/pool
tests_schedules_libvendor_a_CFLAGS = $(AM_CFLAGS) -finstrument-functions
# What world.c puts in the place of the C library's.
ms_wrapped = mmap munmap mprotect madvise malloc calloc realloc free syscall getpid clock_gettime nanosleep clock_nanosleep sched_yield pthread_mutex_lock pthread_mutex_unlock pthread_rwlock_wrlock pthread_rwlock_rdlock pthread_rwlock_unlock \
	open openat close fstat fstatat stat fstatfs fchmod unlink unlinkat renameat posix_fallocate pread read pwrite ftruncate \
	geteuid getrlimit readlink getcwd gethostname prctl pthread_sigmask sigpending sigtimedwait getrandom
tests_schedules_schedules_SOURCES = tests/schedules/engine.h tests/schedules/engine.c \
	tests/schedules/freeze.c tests/schedules/real.h tests/schedules/locks.h tests/schedules/locks.c \
	tests/schedules/world.c tests/schedules/files.h tests/schedules/files.c tests/schedules/atomics.c \
	tests/schedules/accesses.c tests/schedules/deaths.h tests/schedules/deaths.c tests/schedules/weak.h \
	tests/schedules/weak.c tests/schedules/order.h tests/schedules/order.c tests/schedules/every.h \
	tests/schedules/every.c tests/schedules/main.c
tests_schedules_schedules_LDFLAGS = $(AM_LDFLAGS) -no-pie -Wl,-z,now $(ms_wrapped:%=-Wl,--wrap=%)
tests_schedules_schedules_LDADD = tests/schedules/libprograms.a tests/schedules/libvendor.a tests/schedules/libprograms.a tests/schedules/libchecks.a tests/schedules/libsubject.a src/libmsfloor.a $(LIBUNWIND_LIBS)
# The ledger's programs again, over the objects of the library, killed after each store.
tests_schedules_crash_SOURCES = tests/schedules/crash.c tests/schedules/engine.h tests/schedules/engine.c \
	tests/schedules/freeze.c tests/schedules/deaths.h tests/schedules/deaths.c tests/schedules/real.h \
	tests/schedules/locks.h tests/schedules/locks.c tests/schedules/world.c tests/schedules/files.h \
	tests/schedules/files.c tests/schedules/weak.h tests/schedules/weak.c tests/schedules/order.h \
	tests/schedules/order.c tests/schedules/book.h tests/schedules/book_rows.h tests/schedules/book.c \
	tests/schedules/book_check.c tests/schedules/book_texts.c tests/schedules/programs.h \
	tests/schedules/programs_ledger.c tests/schedules/programs_inner.c tests/schedules/programs_run.c tests/schedules/touch.c \
	src/base/store/store_load.c src/record/reader/recover.c src/record/reader/recover_pools.c \
	src/record/reader/recover_events.c
tests_schedules_crash_LDFLAGS = $(tests_schedules_schedules_LDFLAGS)
EXTRA_DIST += tests/schedules/mutants.py tests/schedules/mutants_ledger.py tests/schedules/mutate.py tests/schedules/complete.py tests/schedules/complete.md \
	tests/schedules/mutants.md
