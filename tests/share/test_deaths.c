/* test_deaths.c - a process is killed behind each of its stores into the page: whatever it leaves, others
 * come by what it had, and nobody waits. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "tests/share/share.h"

/* The parent is in the first row, the child in the second. */
enum { STEPS_MOST = 2000000, COMPARED = 3 * sizeof(struct ms_share_row) + sizeof(struct ms_share_head) };

static const char *directory;
static struct ms_admission *self; /* the parent's place */

/* A part of its life begins, which the parent may step through. */
static void part_begins(void)
{
    raise(SIGSTOP);
}

/* It joins, takes, is refused, gives back and hears. */
static void live(void)
{
    struct ms_share_wish wish = share_wish(directory, 200);
    char why[400];
    uint64_t missing;
    uint32_t asks;
    ms_at_fork_run(MS_FORK_SERVICE);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    part_begins();
    if (ms_share_join(&wish, why, sizeof why) != MS_SHARE_JOINED)
        _exit(1);
    part_begins();
    ms_admission_take(ms_share_of(0), 300, &missing);
    ms_admission_take(ms_share_of(0), TOTAL, &missing);
    ms_admission_take(ms_share_of(0), TOTAL - 299, &missing);
    part_begins();
    ms_admission_give(ms_share_of(0), 300);
    ms_asks_hear(ms_share_of(0), &asks);
    ms_asks_answered(ms_share_of(0), asks, 0);
    _exit(0);
}

/* Lets the child go on until it has changed the page for the `store`-th time. False: the part has ended. */
static bool go_on(pid_t child, unsigned store)
{
    static struct ms_share_page before;
    int status;
    memcpy((void *)&before, (void *)self->page, sizeof before);
    for (unsigned steps = 0, stores = 0; steps < STEPS_MOST; steps++) {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 || waitpid(child, &status, 0) != child ||
            !WIFSTOPPED(status) || WSTOPSIG(status) == SIGSTOP)
            return false;
        if (memcmp((void *)&before, (void *)self->page, COMPARED) == 0)
            continue;
        if (++stores == store)
            return true;
        memcpy((void *)&before, (void *)self->page, sizeof before);
    }
    return false;
}

/* Returns whether the part has such a store. */
static bool try_store(unsigned part, unsigned store, bool *sound_p)
{
    uint64_t missing;
    pid_t child = fork();
    if (child == 0)
        live();
    waitpid(child, NULL, 0);
    for (unsigned i = 0; i < part; i++) {
        ptrace(PTRACE_CONT, child, NULL, NULL);
        waitpid(child, NULL, 0);
    }
    bool found = go_on(child, store);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    *sound_p = ms_admission_take(self, TOTAL, &missing);
    if (*sound_p)
        ms_admission_give(self, TOTAL);
    return found;
}

static bool can_step(void)
{
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(child, NULL, WUNTRACED);
    bool can = ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return can;
}

int main(void)
{
    static const char *const parts[] = {"joining", "taking", "giving back"};
    struct ms_share_wish wish;
    char why[400];
    unsigned all = 0;
    bool sound = true;
    if (!can_step())
        skip_all("this machine lets no process be stepped");
    plan(0);
    directory = share_directory("deaths");
    wish = share_wish(directory, 0);
    if (ms_share_join(&wish, why, sizeof why) != MS_SHARE_JOINED)
        bail("%s", why);
    self = ms_share_of(0);
    for (unsigned part = 0; part < sizeof parts / sizeof *parts; part++) {
        for (unsigned store = 1; sound && try_store(part, store, &sound); store++, all++)
            ok(sound, "killed behind store %u of %s: all that it had is there", store, parts[part]);
        ok(sound, "and behind the last of them");
    }
    ok(all > 20, "%u stores", all);
    return done();
}
