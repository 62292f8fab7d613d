/*
 * tap.h: what a C test needs to speak TAP, and nothing more. Header only, for programs under tests/ alone.
 *
 * A test calls plan() first, then ok() or one of its kin once per fact, and returns done() from main. Threads
 * may report facts at the same time; a child made by fork() must leave by _exit() and let its parent report.
 * Each macro evaluates its arguments once.
 */
#ifndef MS_TESTS_TAP_H
#define MS_TESTS_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tap_state {
    int planned; /* 0: "as many as come", the plan is printed last */
    atomic_int run;
    atomic_int failed;
};

__attribute__((unused)) static struct tap_state tap;

/** Announces how many facts will come; 0 if that is only known at the end. Every test calls it first. */
__attribute__((unused)) static void plan(int count)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* a crash must not swallow what was reported before it */
    tap.planned = count;
    if (count > 0)
        printf("1..%d\n", count);
}

/** A line for the reader of the log. */
__attribute__((unused, format(printf, 1, 2))) static void diag(const char *format, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    printf("# %s\n", text);
}

__attribute__((format(printf, 5, 6))) static bool tap_result(bool passed, const char *file, int line,
                                                             const char *directive, const char *format, ...)
{
    char name[512];
    va_list ap;
    int number = atomic_fetch_add(&tap.run, 1) + 1;

    va_start(ap, format);
    vsnprintf(name, sizeof name, format, ap);
    va_end(ap);
    for (char *c = name; *c; c++)
        if (*c == '#' || *c == '\n')
            *c = ' '; /* either would change the meaning of the line */
    if (passed) {
        printf("ok %d - %s%s\n", number, name, directive);
    } else {
        atomic_fetch_add(&tap.failed, 1);
        printf("not ok %d - %s%s\n# at %s:%d\n", number, name, directive, file, line);
    }
    return passed;
}

/** One fact: ok(condition, "what holds", ...). Yields the condition. */
#define ok(condition, ...) tap_result((condition) ? true : false, __FILE__, __LINE__, "", __VA_ARGS__)

/** The two unsigned numbers are equal; prints both when they are not. */
#define is_u64(got, want, ...) tap_is_u64((uint64_t)(got), (uint64_t)(want), __FILE__, __LINE__, __VA_ARGS__)
#define tap_is_u64(got, want, file, line, ...)                                                               \
    __extension__({                                                                                          \
        uint64_t tap_got = (got), tap_want = (want);                                                         \
        bool tap_same = tap_result(tap_got == tap_want, file, line, "", __VA_ARGS__);                        \
        if (!tap_same)                                                                                       \
            diag("got %" PRIu64 " (%#" PRIx64 "), want %" PRIu64 " (%#" PRIx64 ")", tap_got, tap_got,        \
                 tap_want, tap_want);                                                                        \
        tap_same;                                                                                            \
    })

/** The two signed numbers are equal: status codes above all. */
#define is_int(got, want, ...)                                                                               \
    __extension__({                                                                                          \
        int64_t tap_got = (int64_t)(got), tap_want = (int64_t)(want);                                        \
        bool tap_same = tap_result(tap_got == tap_want, __FILE__, __LINE__, "", __VA_ARGS__);                \
        if (!tap_same)                                                                                       \
            diag("got %" PRId64 ", want %" PRId64, tap_got, tap_want);                                       \
        tap_same;                                                                                            \
    })

/** The two pointers are equal. */
#define is_ptr(got, want, ...)                                                                               \
    __extension__({                                                                                          \
        const void *tap_got = (const void *)(got), *tap_want = (const void *)(want);                         \
        bool tap_same = tap_result(tap_got == tap_want, __FILE__, __LINE__, "", __VA_ARGS__);                \
        if (!tap_same)                                                                                       \
            diag("got %p, want %p", tap_got, tap_want);                                                      \
        tap_same;                                                                                            \
    })

/** The two strings are equal; NULL equals only NULL. */
#define is_str(got, want, ...)                                                                               \
    __extension__({                                                                                          \
        const char *tap_got = (got), *tap_want = (want);                                                     \
        bool tap_same = tap_got && tap_want ? strcmp(tap_got, tap_want) == 0 : tap_got == tap_want;          \
        tap_result(tap_same, __FILE__, __LINE__, "", __VA_ARGS__);                                           \
        if (!tap_same)                                                                                       \
            diag("got \"%s\", want \"%s\"", tap_got ? tap_got : "(null)", tap_want ? tap_want : "(null)");   \
        tap_same;                                                                                            \
    })

/** Facts that cannot be looked at here; the reason names what is missing. They count as skipped. */
__attribute__((unused)) static void skip(int count, const char *reason)
{
    char directive[512];

    snprintf(directive, sizeof directive, " # SKIP %s", reason);
    for (int i = 0; i < count; i++)
        tap_result(true, "", 0, directive, "not looked at");
}

/** The whole program has nothing to test on here. Call instead of plan(). Does not return. */
__attribute__((unused, noreturn)) static void skip_all(const char *reason)
{
    printf("1..0 # SKIP %s\n", reason);
    exit(0);
}

/** Nothing after this point can work. Does not return. */
__attribute__((unused, noreturn, format(printf, 1, 2))) static void bail(const char *format, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    printf("Bail out! %s\n", text);
    exit(1);
}

/** The value for main to return. */
__attribute__((unused)) static int done(void)
{
    if (tap.planned == 0)
        printf("1..%d\n", atomic_load(&tap.run));
    fflush(stdout);
    if (tap.planned > 0 && tap.planned != atomic_load(&tap.run))
        return 1;
    return atomic_load(&tap.failed) > 0;
}

#endif
