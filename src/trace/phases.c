/* phases.c - the phases of a trace: their names, and which are open.
 *
 * Floor 3.5. */
#include <stdlib.h>
#include <string.h>

#include "record/phases/phases.h"
#include "trace/internal.h"

static char *copy_of(const char *text, size_t count)
{
    char *copy = malloc(count + 1);

    if (copy) {
        memcpy(copy, text, count);
        copy[count] = '\0';
    }
    return copy;
}

bool ms_trace_name_phase(struct ms_trace_reader *reader, uint64_t number, uint64_t source, const char *domain,
                         size_t domain_bytes, const char *name, size_t name_bytes)
{
    struct ms_trace_phase_name *phase;

    if (number >= MS_TRACE_PHASES || source >= MS_PHASE_SOURCES)
        return false;
    phase = &reader->phases[number];
    if (phase->name)
        return true;
    phase->source = (uint8_t)source;
    phase->domain = copy_of(domain, domain_bytes);
    phase->name = copy_of(name, name_bytes);
    return phase->domain && phase->name;
}

const struct ms_trace_phase_name *ms_trace_phase(const struct ms_trace_reader *reader, unsigned number)
{
    static const struct ms_trace_phase_name none = {.domain = "", .name = "?"};

    return number < MS_TRACE_PHASES && reader->phases[number].name ? &reader->phases[number] : &none;
}

bool ms_trace_phase_begins(struct ms_trace_reader *reader, const struct ms_trace_event *event, bool *is_new_p)
{
    *is_new_p = event->id && !ms_trace_live_find(&reader->open, event->id);
    return !*is_new_p || ms_trace_live_add(&reader->open, event);
}

bool ms_trace_phase_ends(struct ms_trace_reader *reader, struct ms_trace_event *event)
{
    const struct ms_trace_event *open = event->id ? ms_trace_live_find(&reader->open, event->id) : NULL;

    if (!open)
        return false;
    event->phase = open->phase;
    event->is_nested = open->is_nested;
    ms_trace_live_remove(&reader->open, event->id);
    return true;
}

void ms_trace_phases_close(struct ms_trace_reader *reader)
{
    for (size_t i = 0; i < MS_TRACE_PHASES; i++) {
        free((char *)reader->phases[i].domain);
        free((char *)reader->phases[i].name);
    }
    free(reader->open.places);
}
