/* phases.c - the functions of include/memshim.h.
 *
 * Floor 3. Any thread, from signal handlers too. */
#include "hooks/phases.h"

MS_EXPORT int memshim_phase_push(const char *name);
MS_EXPORT int memshim_phase_pop(void);
MS_EXPORT uint64_t memshim_phase_begin(const char *name);
MS_EXPORT void memshim_phase_end(uint64_t phase);
MS_EXPORT void memshim_phase_mark(const char *name);

int memshim_phase_push(const char *name)
{
    struct ms_section section;
    int level = -1;
    if (!ms_phases_enter(&section))
        return level;
    level = ms_phase_push(MS_PHASE_MEMSHIM, 0, ms_phase_text(name));
    ms_section_leave(&section);
    return level;
}

int memshim_phase_pop(void)
{
    struct ms_section section;
    int level = -1;
    if (!ms_phases_enter(&section))
        return level;
    level = ms_phase_pop(MS_PHASE_MEMSHIM, 0);
    ms_section_leave(&section);
    return level;
}

uint64_t memshim_phase_begin(const char *name)
{
    struct ms_section section;
    uint64_t phase = 0;
    if (!ms_phases_enter(&section))
        return phase;
    phase = ms_phase_begin(MS_PHASE_MEMSHIM, 0, ms_phase_text(name));
    ms_section_leave(&section);
    return phase;
}

void memshim_phase_end(uint64_t phase)
{
    struct ms_section section;
    if (!ms_phases_enter(&section))
        return;
    ms_phase_end(phase);
    ms_section_leave(&section);
}

void memshim_phase_mark(const char *name)
{
    struct ms_section section;
    if (!ms_phases_enter(&section))
        return;
    ms_phase_mark(MS_PHASE_MEMSHIM, 0, ms_phase_text(name));
    ms_section_leave(&section);
}
