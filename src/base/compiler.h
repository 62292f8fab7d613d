/* compiler.h - attributes and the spelling of thread-local storage.
 *
 * Floor 0: includes nothing of ours. */
#ifndef MS_BASE_COMPILER_H
#define MS_BASE_COMPILER_H

#define MS_EXPORT             __attribute__((visibility("default")))
#define MS_LIKELY(x)          __builtin_expect(!!(x), 1)
#define MS_UNLIKELY(x)        __builtin_expect(!!(x), 0)
#define MS_PRINTF(fmt, first) __attribute__((__format__(__printf__, fmt, first)))
#define MS_NOINLINE           __attribute__((noinline))
/* On the way of every call, where a compiler that counts what it copies would rather not. */
#define MS_INLINE inline __attribute__((always_inline))
/* For what is read on purpose while it may change, and checked afterwards. Under tests/schedules, where the
 * instrumentation of ThreadSanitizer says where a thread may be interrupted, it is instrumented like all, and
 * known by its section. */
#if defined(MS_SCHEDULES) && defined(__clang__)
#define MS_UNSYNCHRONIZED __attribute__((noinline, section("ms_unsynchronized")))
#elif defined(MS_SCHEDULES) /* noipa: what it reads is not read by its callers for it */
#define MS_UNSYNCHRONIZED __attribute__((noipa, section("ms_unsynchronized")))
#else
#define MS_UNSYNCHRONIZED __attribute__((no_sanitize("thread")))
#endif
/* As MS_UNSYNCHRONIZED, for what is compiled into its callers where those are not instrumented. */
#if defined(MS_SCHEDULES) || defined(__SANITIZE_THREAD__)
#define MS_UNSYNCHRONIZED_INLINE MS_UNSYNCHRONIZED
#elif defined(__clang__)
#if __has_feature(thread_sanitizer)
#define MS_UNSYNCHRONIZED_INLINE MS_UNSYNCHRONIZED
#endif
#endif
#ifndef MS_UNSYNCHRONIZED_INLINE
#define MS_UNSYNCHRONIZED_INLINE MS_INLINE
#endif
/* For code that reads words of stacks as they lie: a sanitizer would take them for accesses to the variables
 * there. */
#define MS_RAW __attribute__((no_sanitize("address", "thread", "undefined")))
/* For the declaration of a variable that every call reads: without it the address is taken from the linker's
 * table each time, wherever the variable is defined. */
#define MS_HIDDEN __attribute__((visibility("hidden")))
/* A pointer is kept, where the compiler would rather compute it anew at every use. */
#define MS_KEEP(pointer) __asm__("" : "+r"(pointer))
#define MS_CACHELINE     __attribute__((aligned(64)))
#define MS_ARRAY_LEN(a)  (sizeof(a) / sizeof((a)[0]))

/* Initial-exec: the first touch of a variable in a new thread must not allocate (a global-dynamic
 * variable calls malloc there, and the caller may be malloc). */
#define MS_TLS __thread __attribute__((tls_model("initial-exec")))

#endif
