/* crash.c - the record of a process that is killed after any of its stores into the ledger.
 *
 * The programs are those of the ledger, over the objects of src/libmsfloor.a: those of the shipped library,
 * in whose order the stores come. The parts of the file that are mapped are not writable; a store there
 * raises SIGSEGV, is let through, and stops behind itself (the trap flag), so that every instruction that
 * stores is seen. There a child of fork() is what the killed process would leave: every task's stores up to
 * there, and no more. The child reads the file as `memshim recover` does and asks the book whether that is
 * true. And there another task may go on. Calls that write to the file are looked at in the same way.
 *
 * usage: crash --list
 *        crash PROGRAM POINTS [SEED [SHARE [DIRECTORY]]]
 * Seeds follow each other until there were so many points; one of SHARE is looked at. With DIRECTORY, the
 * file of one of KEPT_ONE_OF points looked at is kept there. The last line is PROGRAM: POINTS points of
 * SCHEDULES runs, LOADED reports, EMPTY before there was any, SECONDS s: nothing | found
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/thread/bias.h"
#include "book_rows.h"
#include "deaths.h"
#include "engine.h"
#include "files.h"
#include "record/reader/recover.h"
#include "programs.h"
#include "real.h"

enum {
    PAGE = 4096,
    TRAP_FLAG = 0x100,
    FRAME_PAGES = 3,
    RED_ZONE = 128,
    OPENED_MOST = 4,
    SECONDS_MOST = 60,
    KEPT_ONE_OF = 25,
    SKIPPED = 77,
    WHY = 200
};
enum verdict { LOADED = 1, EMPTY, WRONG_REPORT }; /* what a child ends with */

/* All that outlives a schedule; `why` is shared with the children. */
static struct keep {
    const struct program *program;
    struct outcome outcome;
    char *why, *opened[OPENED_MOST];
    unsigned opened_count;
    uint64_t points, wanted, seen, share, seed, loaded, empty, random;
    const char *directory, *page;
    bool watches, found, is_watched;
} * keep;

static const struct program *const lists[] = {ledger_programs, inner_programs, run_programs};

/* Programs that keep no book are left out: they say what must hold at their own ends. */
static const struct program *find(const char *name)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const struct program *p = lists[i]; p->name; p++) {
            if (p->check != lists[i]->check)
                continue;
            if (!name)
                printf("%s\t%s\n", p->name, p->text);
            else if (strcmp(p->name, name) == 0)
                return p;
        }
    }
    return NULL;
}

/* --- what a killed process leaves -------------------------------------------------------------------------
 */

/* Lines that docs/internals/ledger-format.md promises, of a file that has no record yet. */
static bool says_nothing_yet(const char *error)
{
    return strncmp(error, "is not a ledger", strlen("is not a ledger")) == 0 ||
           strncmp(error, "is the beginning of a ledger", strlen("is the beginning of a ledger")) == 0;
}

static int judge(char *why)
{
    char error[WHY];
    int fd = open(book_path(), O_RDONLY);
    if (!book_exports_hold(why, WHY))
        return WRONG_REPORT;
    if (fd >= 0 && ms_ledger_load(fd, false, error, sizeof error) == 0)
        return book_holds(why, WHY) && book_trace_holds(why, WHY) ? LOADED : WRONG_REPORT;
    snprintf(why, WHY, "%s", fd < 0 ? "there is no file" : error);
    return !book_is_open() && (fd < 0 || says_nothing_yet(error)) ? EMPTY : WRONG_REPORT;
}

static void protect(void *at, size_t bytes)
{
    real_protect(at, bytes, false);
}

static int look(void)
{
    signal(SIGSEGV, SIG_DFL);
    signal(SIGTRAP, SIG_DFL);
    alarm(SECONDS_MOST);
    keep->watches = false;
    files_changed = NULL;
    files_mapped = NULL;
    freeze_end();
    engine_leave();
    ms_bias_reset(); /* the reader is another process: it is in no lock */
    if (keep->directory && keep->seen % KEPT_ONE_OF == 0) {
        char path[300];
        snprintf(path, sizeof path, "%s/%s-%llu.ledger", keep->directory, keep->program->name,
                 (unsigned long long)keep->seen);
        files_keep(book_path(), path);
    }
    return judge(keep->why);
}

static void examine(void)
{
    struct keep *k = keep;
    int status = 0;
    k->seen++;
    strcpy(k->why, "it crashed");
    pid_t child = fork();
    if (child == 0)
        _exit(look());
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == LOADED)
        k->loaded++;
    else if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == EMPTY)
        k->empty++;
    else if (!k->found) {
        k->found = true;
        printf("found at point %llu, by seed %llu: %s\n", (unsigned long long)k->points,
               (unsigned long long)k->seed, child < 0 ? strerror(errno) : k->why);
        engine_fail("the record is wrong");
    }
}

/* xorshift: which points are looked at does not change who goes on. */
static bool is_chosen(void)
{
    struct keep *k = keep;
    k->random ^= k->random << 13;
    k->random ^= k->random >> 7;
    k->random ^= k->random << 17;
    return k->random % k->share == 0;
}

static void point(const void *pc)
{
    struct keep *k = keep;
    if (!k->watches || k->found || k->points >= k->wanted)
        return;
    k->points++;
    if (is_chosen())
        examine();
    engine_point(pc);
}

/* --- every store ------------------------------------------------------------------------------------------
 */

#if defined(__x86_64__)
static void look_in(void *at, size_t bytes)
{
    keep->is_watched |= (uintptr_t)keep->page - (uintptr_t)at < bytes;
}

/* Whether the page stands for a part of the file. */
static bool is_watched(const char *page)
{
    keep->page = page;
    keep->is_watched = false;
    files_each_mapped(look_in);
    return keep->watches && keep->is_watched;
}

static char *page_of(long long at)
{
    return (char *)(at & ~(long long)(PAGE - 1));
}

static void on_store(int signal_number, siginfo_t *info, void *context)
{
    struct keep *k = keep;
    ucontext_t *at = context;
    char *page = page_of((long long)info->si_addr);
    if (k->opened_count == OPENED_MOST || !freeze_open(page)) {
        death_by(signal_number, info, context);
        return;
    }
    if (!is_watched(page))
        return;
    k->opened[k->opened_count++] = page;
    for (int i = 0; i < FRAME_PAGES; i++) /* of the next signal, which comes on the task's own stack */
        freeze_open(page_of(at->uc_mcontext.gregs[REG_RSP] - RED_ZONE - i * PAGE));
    at->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_stored(int signal_number, siginfo_t *info, void *context)
{
    struct keep *k = keep;
    ucontext_t *at = context;
    (void)signal_number, (void)info;
    at->uc_mcontext.gregs[REG_EFL] &= ~(long long)TRAP_FLAG;
    while (k->opened_count)
        protect(k->opened[--k->opened_count], PAGE);
    point((const void *)at->uc_mcontext.gregs[REG_RIP]);
}

static void watch_stores(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    action.sa_sigaction = on_store;
    sigaction(SIGSEGV, &action, NULL);
    action.sa_flags &= ~SA_ONSTACK;
    action.sa_sigaction = on_stored;
    sigaction(SIGTRAP, &action, NULL);
}
#else
static void watch_stores(void)
{
    printf("# without a trap flag stores are not seen one by one on this processor\n");
    exit(SKIPPED);
}
#endif

static void on_call(void)
{
    point(__builtin_return_address(0));
}

/* --- runs -------------------------------------------------------------------------------------------------
 */

static void start(void)
{
    files_changed = on_call;
    files_mapped = protect;
    files_each_mapped(protect);
    keep->watches = true;
    keep->program->start();
}

static void check(void)
{
    keep->watches = false;
    if (!keep->found && keep->points < keep->wanted)
        keep->program->check();
}

/* Stores alone are points: the code is not instrumented. */
static uint64_t run_seeds(void)
{
    struct keep *k = keep;
    uint64_t runs = 0;
    while (!k->found && k->points < k->wanted) {
        struct schedule schedule = {.rule = RULE_RANDOM, .seed = k->seed};
        engine_run(&schedule, start, check, &k->outcome);
        k->watches = false;
        runs++;
        if (k->outcome.failed && !k->found) {
            k->found = true;
            printf("found by seed %llu: %s\n", (unsigned long long)k->seed, k->outcome.why);
        }
        k->seed++;
    }
    return runs;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        find(NULL);
        return 0;
    }
    const struct program *program = argc > 2 ? find(argv[1]) : NULL;
    if (!program) {
        fprintf(stderr, "usage: crash --list | PROGRAM POINTS [SEED [SHARE [DIRECTORY]]]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    program->prepare();
    struct keep *k = keep = real_map(NULL, sizeof *keep);
    k->program = program;
    k->why = real_map_shared(PAGE);
    k->wanted = strtoull(argv[2], NULL, 0);
    k->seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
    k->share = argc > 4 ? strtoull(argv[4], NULL, 0) : 1;
    k->directory = argc > 5 ? argv[5] : NULL;
    k->share += !k->share;
    k->random = k->seed * 0x9e3779b97f4a7c15u | 1;
    engine_freeze();
    watch_stores();
    uint64_t begin = real_clock_ns(), runs = run_seeds();
    printf("%s: %llu points of %llu runs, %llu reports, %llu before there was any, %.2f s: %s\n",
           program->name, (unsigned long long)k->seen, (unsigned long long)runs,
           (unsigned long long)k->loaded, (unsigned long long)k->empty,
           (double)(real_clock_ns() - begin) / 1e9, k->found ? "found" : "nothing");
    return k->found;
}
