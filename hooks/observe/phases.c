/* phases.c - the functions of include/memshim.h, and what the other interfaces share.
 *
 * Floor 3. Any thread, from signal handlers too. No lock, no allocation. */
#include "hooks/observe/phases.h"

#include <link.h>
#include <gnu/libc-version.h>

MS_EXPORT int memshim_phase_push(const char *name);
MS_EXPORT int memshim_phase_pop(void);
MS_EXPORT uint64_t memshim_phase_begin(const char *name);
MS_EXPORT void memshim_phase_end(uint64_t phase);
MS_EXPORT void memshim_phase_mark(const char *name);

int memshim_phase_push(const char *name)
{
    int level = -1;
    MS_PHASES_WITHIN level = ms_phase_push(MS_PHASE_MEMSHIM, 0, ms_phase_text(name));
    return level;
}

int memshim_phase_pop(void)
{
    int level = -1;
    MS_PHASES_WITHIN level = ms_phase_pop(MS_PHASE_MEMSHIM, 0);
    return level;
}

uint64_t memshim_phase_begin(const char *name)
{
    uint64_t phase = 0;
    MS_PHASES_WITHIN phase = ms_phase_begin(MS_PHASE_MEMSHIM, 0, ms_phase_text(name));
    return phase;
}

void memshim_phase_end(uint64_t phase)
{
    MS_PHASES_WITHIN ms_phase_end(phase);
}

void memshim_phase_mark(const char *name)
{
    MS_PHASES_WITHIN ms_phase_mark(MS_PHASE_MEMSHIM, 0, ms_phase_text(name));
}

/* Which of the two comes first among the loaded objects. */
static int look_for_first(struct dl_phdr_info *info, size_t bytes, void *is_before_p)
{
    (void)bytes;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end_of = begin + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        if ((uintptr_t)look_for_first >= begin && (uintptr_t)look_for_first < end_of)
            return *(bool *)is_before_p = true;
        if ((uintptr_t)gnu_get_libc_version >= begin && (uintptr_t)gnu_get_libc_version < end_of)
            return 1;
    }
    return 0;
}

bool ms_phases_is_preloaded(void)
{
    bool is_before = false;
    dl_iterate_phdr(look_for_first, &is_before);
    return is_before;
}

void ms_phase_number_keep(struct ms_phase_number *numbers, uint64_t theirs, uint64_t phase)
{
    struct ms_phase_number *number = &numbers[phase % MS_PHASE_OPENS];
    if (!phase)
        return;
    atomic_store_explicit(&number->phase, phase, memory_order_relaxed);
    atomic_store_explicit(&number->theirs, theirs, memory_order_release);
}

uint64_t ms_phase_number_take(struct ms_phase_number *numbers, uint64_t theirs)
{
    for (unsigned i = 0; i < MS_PHASE_OPENS; i++) {
        uint64_t held = atomic_load_explicit(&numbers[i].theirs, memory_order_acquire);
        uint64_t phase = atomic_load_explicit(&numbers[i].phase, memory_order_relaxed);
        if (held == theirs && atomic_compare_exchange_strong(&numbers[i].theirs, &held, 0))
            return phase;
    }
    return 0;
}
