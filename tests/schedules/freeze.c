/* freeze.c - what all schedules share is put back: the program's variables, and what was allocated.
 *
 * The pages are mapped from a file that has them as they were when frozen, privately: those that were written
 * are dropped, and read as before. What must outlive a schedule lies in memory of its own. */
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine.h"
#include "real.h"

enum { PAGE = 4096, TLS_MOST = 64 << 10, PAGES_AT_ONCE = 4096 };
#define ARENA       ((char *)0x2000000000) /* the same in every run, so that hashes of addresses are */
#define ARENA_BYTES ((size_t)32 << 30)

static struct frozen {
    struct span variables, arena, tls;
    size_t arena_used, arena_kept;
    char first_tls[TLS_MOST];
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
    if (frozen->tls.bytes > TLS_MOST)
        abort();
}

struct span freeze_arena(void)
{
    return (struct span){ARENA, ARENA_BYTES};
}

void *freeze_alloc(size_t bytes, size_t align)
{
    frozen->arena_used = (frozen->arena_used + align - 1) & ~(align - 1);
    void *memory = ARENA + frozen->arena_used;
    if (bytes > ARENA_BYTES - frozen->arena_used)
        abort();
    frozen->arena_used += bytes;
    return memory;
}

/* Into a file that has holes where memory was never touched. */
static void take_pages(struct span span, int file, size_t done)
{
    unsigned char touched[PAGES_AT_ONCE];
    size_t pages = (span.bytes - done) / PAGE;
    pages = pages < PAGES_AT_ONCE ? pages : PAGES_AT_ONCE;
    if (mincore(span.at + done, pages * PAGE, touched) != 0)
        abort();
    for (size_t i = 0; i < pages; i++) {
        if (touched[i] & 1)
            real_write(file, span.at + done + i * PAGE, PAGE, done + i * PAGE);
    }
}

/* Nothing of this is ever swapped out: it was written a moment ago. */
static void take(struct span span)
{
    int file = memfd_create("frozen", MFD_CLOEXEC);
    if (file < 0)
        abort();
    real_truncate(file, span.bytes);
    for (size_t done = 0; done < span.bytes; done += (size_t)PAGES_AT_ONCE * PAGE)
        take_pages(span, file, done);
    real_map_file(span.at, span.bytes, file);
    real_close(file);
}

void freeze_take(void)
{
    frozen->arena_kept = (frozen->arena_used + PAGE - 1) & ~(size_t)(PAGE - 1);
    frozen->arena_used = frozen->arena_kept;
    memcpy(frozen->first_tls, frozen->tls.at, frozen->tls.bytes);
    if (frozen->arena_kept)
        take((struct span){ARENA, frozen->arena_kept});
    take(frozen->variables);
}

void freeze_put_back(void)
{
    real_drop(frozen->variables.at, frozen->variables.bytes);
    if (frozen->arena_used)
        real_drop(ARENA, (frozen->arena_used + PAGE - 1) & ~(size_t)(PAGE - 1));
    frozen->arena_used = frozen->arena_kept;
    memcpy(frozen->tls.at, frozen->first_tls, frozen->tls.bytes);
}

struct span freeze_tls(void)
{
    return frozen->tls;
}

const char *freeze_first_tls(void)
{
    return frozen->first_tls;
}
