/* freeze.c - what all schedules share is put back: the program's variables, and what was allocated.
 *
 * Both are mapped so that they cannot be written to. The first store into a page raises SIGSEGV: what the
 * page had is kept, and it can be written to from then on, by all schedules that follow. Each of those pages,
 * and no other, is copied back before the next schedule, without a call of the kernel's: their number soon
 * stays as it is. What must outlive a schedule lies in memory of its own.
 *
 * Calls of the kernel that write into such a page would fail with EFAULT; there are none (world.c). */
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "deaths.h"
#include "engine.h"
#include "order.h"
#include "real.h"

/* PAGES_MOST: the longest program touches some hundreds. */
enum { PAGE = 4096, TLS_MOST = 64 << 10, PAGES_MOST = 1 << 16, HANDLER_BYTES = 64 << 10 };
#define ARENA       ((char *)0x2000000000) /* the same in every run, so that hashes of addresses are */
#define ARENA_BYTES ((size_t)32 << 30)

/* A page that was written to; `first` is what it had, NULL: zeroes. */
struct touched {
    char *at;
    const char *first;
};

static struct frozen {
    struct span variables, tls;
    size_t arena_used, arena_kept;
    char first_tls[TLS_MOST], new_tls[TLS_MOST];
    char *kept; /* PAGES_MOST pages */
    size_t kept_count, touched_count;
    uint64_t is_touched[(ARENA_BYTES / PAGE) / 64], is_touched_variable[PAGES_MOST / 64];
    struct touched touched[PAGES_MOST];
} * frozen;

/* Of the program itself, which comes first: its thread-local variables, and the writable part behind what the
 * loader has made read-only again. */
static int find_program(struct dl_phdr_info *info, size_t size, void *arg)
{
    uintptr_t sealed = 0;
    (void)size, (void)arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_TLS)
            frozen->tls = (struct span){info->dlpi_tls_data, p->p_memsz};
        if (p->p_type == PT_GNU_RELRO)
            sealed = at + p->p_memsz;
        if (p->p_type == PT_LOAD && p->p_flags & PF_W)
            frozen->variables = (struct span){(char *)at, p->p_memsz};
    }
    uintptr_t lo = (uintptr_t)frozen->variables.at, hi = lo + frozen->variables.bytes;
    lo = sealed > lo ? sealed : lo;
    lo = (lo + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    hi = (hi + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    frozen->variables = (struct span){(char *)lo, hi - lo};
    return 1;
}

void freeze_begin(void)
{
    frozen = real_map(NULL, sizeof *frozen);
    if (real_map_at(ARENA, ARENA_BYTES) != ARENA)
        abort();
    dl_iterate_phdr(find_program, NULL);
    if (frozen->tls.bytes > TLS_MOST || frozen->variables.bytes > (size_t)PAGE * PAGES_MOST)
        abort();
    memcpy(frozen->new_tls, frozen->tls.at, frozen->tls.bytes);
}

void *freeze_alloc(size_t bytes, size_t align)
{
    order_world();
    frozen->arena_used = (frozen->arena_used + align - 1) & ~(align - 1);
    void *memory = ARENA + frozen->arena_used;
    if (bytes > ARENA_BYTES - frozen->arena_used)
        abort();
    frozen->arena_used += bytes;
    return memory;
}

/* The bit of a page that schedules share; NULL: of another one. */
static uint64_t *bit_of(const char *page, uint64_t *mask_p)
{
    size_t in_arena = (uintptr_t)page - (uintptr_t)ARENA,
           in_variables = (uintptr_t)page - (uintptr_t)frozen->variables.at;
    bool is_arena = in_arena < ARENA_BYTES;
    size_t number = (is_arena ? in_arena : in_variables) / PAGE;
    if (!is_arena && in_variables >= frozen->variables.bytes)
        return NULL;
    *mask_p = (uint64_t)1 << number % 64;
    return &(is_arena ? frozen->is_touched : frozen->is_touched_variable)[number / 64];
}

static bool has_zeroes_only(const char *page)
{
    return !*page && memcmp(page, page + 1, PAGE - 1) == 0;
}

bool freeze_open(void *page)
{
    uint64_t mask, *bits = bit_of(page, &mask);
    if (!bits)
        return false;
    if (!(*bits & mask)) {
        if (frozen->touched_count == PAGES_MOST)
            abort();
        char *first = has_zeroes_only(page) ? NULL : frozen->kept + PAGE * frozen->kept_count++;
        if (first)
            memcpy(first, page, PAGE);
        *bits |= mask;
        frozen->touched[frozen->touched_count++] = (struct touched){page, first};
    }
    real_protect(page, PAGE, true);
    return true;
}

static void on_store(int signal_number, siginfo_t *info, void *context)
{
    if (!freeze_open((void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1))))
        death_by(signal_number, info, context);
}

void freeze_take(void)
{
    /* A task may be on a stack that was never written to. */
    stack_t handlers = {.ss_sp = real_map(NULL, HANDLER_BYTES), .ss_size = HANDLER_BYTES};
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    action.sa_sigaction = on_store;
    sigaltstack(&handlers, NULL);
    sigaction(SIGSEGV, &action, NULL);
    frozen->arena_kept = (frozen->arena_used + PAGE - 1) & ~(size_t)(PAGE - 1);
    frozen->arena_used = frozen->arena_kept;
    frozen->kept = real_map(NULL, (size_t)PAGE * PAGES_MOST);
    memcpy(frozen->first_tls, frozen->tls.at, frozen->tls.bytes);
    real_protect(ARENA, ARENA_BYTES, false);
    real_protect(frozen->variables.at, frozen->variables.bytes, false);
}

void freeze_put_back(void)
{
    for (size_t i = 0; i < frozen->touched_count; i++) {
        struct touched *page = &frozen->touched[i];
        if (page->first)
            memcpy(page->at, page->first, PAGE);
        else
            memset(page->at, 0, PAGE);
    }
    frozen->arena_used = frozen->arena_kept;
    memcpy(frozen->tls.at, frozen->first_tls, frozen->tls.bytes);
}

/* Of what differs: what lies beside it may be addresses of this run of the program's. */
static uint64_t hash_page(const struct touched *page)
{
    static const uint64_t zeroes[PAGE / sizeof(uint64_t)];
    const uint64_t *now = (const uint64_t *)page->at,
                   *first = page->first ? (const uint64_t *)page->first : zeroes;
    uint64_t hash = (uintptr_t)page->at;
    if (memcmp(now, first, PAGE) == 0)
        return 0;
    for (size_t i = 0; i < PAGE / sizeof *now; i++) {
        if (now[i] != first[i])
            hash = ((hash ^ i) * 0x9e3779b97f4a7c15u ^ now[i]) * 0x100000001b3u;
    }
    return hash ^ hash >> 32;
}

/* Pages come in the order in which they were touched, by whichever schedule. */
uint64_t freeze_hash(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < frozen->touched_count; i++)
        sum += hash_page(&frozen->touched[i]);
    return sum;
}

void freeze_end(void)
{
    real_protect(ARENA, ARENA_BYTES, true);
    real_protect(frozen->variables.at, frozen->variables.bytes, true);
}

struct span freeze_tls(void)
{
    return frozen->tls;
}

const char *freeze_first_tls(void)
{
    return frozen->first_tls;
}

const char *freeze_new_tls(void)
{
    return frozen->new_tls;
}
