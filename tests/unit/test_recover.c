/* test_recover.c - what recovering makes of a process that was killed between two stores: the child writes
 * its record as far as the killed one would have, and ends. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/options/options.h"
#include "record/file/journal.h"
#include "record/reader/recover.h"
#include "tests/unit/ledger_fixture.h"

enum { SITES = 3 };

static void at(unsigned milliseconds)
{
    ms_events_freeze((uint64_t)milliseconds << MS_SPAN_SHIFT_START);
}

static void take(uint64_t key, ms_stack_id stack)
{
    struct ms_block block = make_block(key, 64, stack, 0);
    ms_ledger_alloc(&block);
}

/* The row of a site, or NULL; there is one shard's only. */
static struct ms_site *row_of(ms_stack_id stack)
{
    for (uint32_t i = 0; i < ms_site_count(); i++) {
        if (ms_site_at(i)->stack == stack)
            return ms_site_at(i);
    }
    return NULL;
}

/* Whose latest events only the sites know of: what accounts say is from before them. */
static void forget_since(uint64_t now_ns)
{
    for (uint64_t i = 0; i < ms_table_reserved(MS_TABLE_ACCOUNTS); i++) {
        struct ms_account *row = &MS_ROWS(ACCOUNTS, struct ms_account)[i];
        row->last_ns = row->last_ns < now_ns ? row->last_ns : now_ns;
    }
}

static void begin(unsigned milliseconds)
{
    at(1);
    for (uint32_t i = 1; i <= SITES; i++)
        take(i << 16, i);
    at(milliseconds);
    take(1 << 20, 1);
}

static void in_the_next_span(void)
{
    begin(10);
    at(11);
    take(2 << 20, 2);
    row_of(2)->last_ns = 0; /* a free writes none */
    forget_since(UINT64_C(10) << MS_SPAN_SHIFT_START);
}

static void behind_longer_spans(void)
{
    begin(15);
    at(16);
    take(2 << 20, 2);
    row_of(2)->span_last = 7; /* widened, and not brought up to date */
    row_of(2)->last_ns = 0;
    forget_since(UINT64_C(15) << MS_SPAN_SHIFT_START);
}

static void amid_widening(void)
{
    begin(20);
    row_of(2)->span_shift = MS_SPAN_SHIFT_NONE;
}

static void with_damage(void)
{
    begin(20);
    row_of(1)->span_last = MS_SPANS;
    row_of(2)->span_shift = 255;
    row_of(3)->span_shift = 1;
}

/* The record that `play` leaves, recovered and looked at. */
static void recover(void (*play)(void))
{
    char error[256] = "", path[4096];
    int pipes[2];
    if (pipe(pipes) != 0)
        bail("pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        ms_options_load(environ, NULL, NULL);
        start();
        ms_ledger_touch();
        play();
        if (write(pipes[1], ms_journal_path(), strlen(ms_journal_path())) < 0)
            _exit(1);
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
    close(pipes[1]);
    ssize_t length = read(pipes[0], path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    close(pipes[0]);
    int fd = open(path, O_RDONLY);
    is_int(ms_ledger_load(fd, false, error, sizeof error), 0, "the ledger is read %s", error);
    close(fd);
    unlink(path);
    look();
}

/* Of how many sites marks are known, and whether each is of a moment of the run. */
static unsigned known(bool *told_p)
{
    unsigned count = 0, shift = ms_span_shift(snapshot.now_ns);
    *told_p = true;
    for (uint32_t i = 0; i < snapshot.site_count; i++) {
        const struct ms_site *site = &snapshot.sites[i].site;
        bool is_known = site->span_shift == shift;
        count += is_known;
        *told_p &= is_known ? site->span_last <= snapshot.now_ns >> shift : !site->span_last;
    }
    return count;
}

static void test(void (*play)(void), unsigned milliseconds, unsigned sites, const char *what)
{
    bool told;
    recover(play);
    is_u64(snapshot.now_ns >> MS_SPAN_SHIFT_START, milliseconds, "%s: the record's end", what);
    is_u64(snapshot.site_count, SITES, "%s: all sites are there", what);
    is_u64(known(&told), sites, "%s: of which sites marks are known", what);
    ok(told, "%s: no mark is of a moment behind the end", what);
}

int main(void)
{
    plan(0);
    setenv("MEMSHIM_DIR", getenv("TEST_TMP"), 1);
    test(in_the_next_span, 11, SITES, "killed with a mark of the next span");
    /* Its stack is not in the record. */
    is_u64(snapshot.sites[1].site.marks[10], 64, "what it held at the end of the span before");
    is_u64(device(0)->live_bytes, 5 * 64, "what is live is what its blocks say");
    is_u64(site_of(0)->live_count, 2, "a site whose stack is not in the record has none");
    test(behind_longer_spans, 16, SITES, "killed behind longer spans");
    test(amid_widening, 20, SITES - 1, "killed while marks moved");
    test(with_damage, 20, 0, "spans that cannot be");
    return done();
}
