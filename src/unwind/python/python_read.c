/* python_read.c - guarded copies of the interpreter's memory.
 *
 * Floor 1. No lock, no allocation. A page is asked for once and then known for a while: what is reached from
 * live frames is live, and stays while the thread stands in our code; only a pointer that is garbage can lead
 * into a page that was given back since. */
#include <string.h>

#include "unwind/python/python_read.h"

/* Pages are forgotten after so many were asked for, so that what was learned long ago is not believed for
 * ever; asking for all anew costs some 20 us. */
enum { ASKED_MAX = 4096 };

static bool python_read_learn(struct ms_python_reader *reader, uintptr_t at)
{
    uintptr_t number = at / MS_PAGE_BYTES;
    if (!ms_memory_readable(number * MS_PAGE_BYTES))
        return false;
    if (++reader->asked > ASKED_MAX) {
        memset(reader->pages, 0, sizeof reader->pages);
        reader->asked = 0;
    }
    reader->pages[number % MS_PYTHON_PAGES] = number;
    return true;
}

static MS_RAW void python_read_load(uintptr_t at, unsigned char *into, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        into[i] = *(const volatile unsigned char *)(at + i);
}

static MS_RAW void load_words(uintptr_t at, uint64_t *into, size_t words)
{
    for (size_t i = 0; i < words; i++)
        into[i] = ms_python_word(at + i * sizeof *into);
}

bool ms_python_read_slowly(struct ms_python_reader *reader, uintptr_t at, void *into, size_t bytes)
{
    if (at < MS_PAGE_BYTES || at + bytes < at)
        return false;
    if (reader->is_copying)
        return ms_memory_copy(at, into, bytes);
    for (uintptr_t page = at & ~(uintptr_t)(MS_PAGE_BYTES - 1); page < at + bytes; page += MS_PAGE_BYTES) {
        if (!ms_python_knows(reader, page) && !python_read_learn(reader, page))
            return false;
    }
    if (at % sizeof(uint64_t) == 0 && bytes % sizeof(uint64_t) == 0 &&
        (uintptr_t)into % sizeof(uint64_t) == 0)
        load_words(at, into, bytes / sizeof(uint64_t));
    else
        python_read_load(at, into, bytes);
    return true;
}
