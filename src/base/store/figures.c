/* figures.c - see figures.h. */
#include <string.h>

#include "base/compiler.h"
#include "base/store/figures.h"

#define ROW(type, member, text, how, to, counts)                                                             \
    {.key = (text),                                                                                          \
     .at = offsetof(struct type, member),                                                                    \
     .adds = MS_FIGURE_##how,                                                                                \
     .told = MS_FIGURE_##to,                                                                                 \
     .is_count = (counts)},
#define HITS(type)                                                                                           \
    ROW(type, hits[MS_TIER_SLAB], "slab", SUM, TIER, true)                                                   \
    ROW(type, hits[MS_TIER_EXTENT], "run", SUM, TIER, true)                                                  \
    ROW(type, hits[MS_TIER_DEDICATED], "single", SUM, TIER, true)

static const struct ms_figure parts[] = {
#define MS_PART(name, key, meaning) ROW(ms_parts, name, key, SUM, POOL, false)
#include "base/store/figures.def"
};
static const struct ms_figure pool[] = {
#define MS_HITS()                            HITS(ms_pool_figures)
#define MS_COUNT(name, told, meaning)        ROW(ms_pool_figures, name, #name, SUM, told, true)
#define MS_FIGURE(name, adds, told, meaning) ROW(ms_pool_figures, name, #name, adds, told, false)
#include "base/store/figures.def"
};
static const struct ms_figure stream[] = {
#define MS_STREAM_HITS()                            HITS(ms_stream_figures)
#define MS_STREAM_COUNT(name, told, meaning)        ROW(ms_stream_figures, name, #name, SUM, told, true)
#define MS_STREAM_FIGURE(name, adds, told, meaning) ROW(ms_stream_figures, name, #name, adds, told, false)
#include "base/store/figures.def"
};
_Static_assert(MS_ARRAY_LEN(stream) == MS_STREAM_FIGURES, "members and list");

const struct ms_figure_list ms_figure_parts = {parts, MS_ARRAY_LEN(parts)};
const struct ms_figure_list ms_figure_pool = {pool, MS_ARRAY_LEN(pool)};
const struct ms_figure_list ms_figure_stream = {stream, MS_ARRAY_LEN(stream)};

void ms_figure_add(const struct ms_figure_list *list, void *sum, const void *more)
{
    for (unsigned i = 0; i < list->count; i++) {
        uint64_t *to = ms_figure_of(&list->rows[i], sum), from = ms_figure_in(&list->rows[i], more);
        if (list->rows[i].adds == MS_FIGURE_SUM)
            *to += from;
        else if (*to < from)
            *to = from;
    }
}

void ms_figure_less(const struct ms_figure_list *list, void *sum, const struct ms_figure_list *part_list,
                    const void *part)
{
    for (unsigned i = 0; i < list->count; i++) {
        for (unsigned k = 0; list->rows[i].is_count && k < part_list->count; k++) {
            uint64_t *from = ms_figure_of(&list->rows[i], sum),
                     less = ms_figure_in(&part_list->rows[k], part);
            if (!strcmp(list->rows[i].key, part_list->rows[k].key))
                *from = *from > less ? *from - less : 0;
        }
    }
}

uint64_t ms_figure_bound(const struct ms_figure_list *list, void *structure, uint64_t most)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < list->count; i++) {
        uint64_t *figure = ms_figure_of(&list->rows[i], structure);
        *figure = *figure < most ? *figure : most;
        sum += *figure;
    }
    return sum;
}
