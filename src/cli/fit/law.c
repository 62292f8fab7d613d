/* law.c - see law.h.
 *
 * Floor 5. */
#include "cli/fit/law.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITES_MOST = 8192 }; /* as many are matched by what they do; beyond, by number */
#define MIB (UINT64_C(1) << 20)

/* The allocations of one site in one run. */
struct site {
    uint32_t number; /* as the trace has it */
    uint32_t first;  /* event */
    uint32_t count;
    uint32_t partner; /* place in the sites of the other run; UINT32_MAX: none */
    uint64_t name;    /* the same in all runs; 0 */
    uint16_t stream;
    uint8_t kind;
};

struct sites {
    struct site *rows; /* in the order of their first allocations */
    uint32_t count;
    uint32_t *of_block; /* place, by block of the course */
    uint32_t *nth;      /* which of its site's a block is, by block */
    uint32_t *begin;    /* by place: where its blocks begin in `blocks` */
    uint32_t *blocks;   /* of all sites, one after the other */
};

/* --- sites of a run --- */

static void sites_close(struct sites *sites)
{
    free(sites->rows);
    free(sites->of_block);
    free(sites->nth);
    free(sites->begin);
    free(sites->blocks);
}

/* The place of a site, by its number: numbers are small, but nobody promised it. */
static uint32_t site_place(struct sites *sites, uint32_t **places_p, uint32_t *room_p, uint32_t number)
{
    uint32_t at = number == MS_COURSE_NO_SITE ? 0 : number + 1;

    if (at >= *room_p) {
        uint32_t room = at < UINT32_MAX / 2 ? 2 * at + 64 : UINT32_MAX;
        uint32_t *places = realloc(*places_p, (size_t)room * sizeof(*places));

        if (!places)
            return UINT32_MAX;
        memset(places + *room_p, 0xff, (size_t)(room - *room_p) * sizeof(*places));
        *places_p = places;
        *room_p = room;
    }
    if ((*places_p)[at] == UINT32_MAX) {
        struct site *rows = realloc(sites->rows, ((size_t)sites->count + 1) * sizeof(*rows));

        if (!rows)
            return UINT32_MAX;
        sites->rows = rows;
        (*places_p)[at] = sites->count;
        rows[sites->count++] = (struct site){.number = number, .partner = UINT32_MAX};
    }
    return (*places_p)[at];
}

static bool sites_count(struct sites *sites, const struct ms_sized_run *run)
{
    const struct ms_course *course = run->course;
    uint32_t *places = NULL, room = 0, place = 0;

    for (size_t i = 0; i < course->count && place != UINT32_MAX; i++) {
        const struct ms_course_event *event = &course->events[i];
        struct site *site;

        if (!event->bytes)
            continue;
        place = site_place(sites, &places, &room, event->site);
        if (place == UINT32_MAX)
            break;
        site = &sites->rows[place];
        if (!site->count++) {
            site->first = (uint32_t)i;
            site->stream = event->stream;
            site->kind = event->kind;
            site->name = event->site < run->site_count && run->site_names ? run->site_names[event->site] : 0;
        }
        sites->of_block[event->block] = place;
        sites->nth[event->block] = site->count - 1;
    }
    free(places);
    return place != UINT32_MAX;
}

static int sites_open(struct sites *sites, const struct ms_sized_run *run)
{
    size_t blocks = (size_t)run->course->block_count + 1;

    *sites = (struct sites){.of_block = calloc(blocks, sizeof(uint32_t)),
                            .nth = calloc(blocks, sizeof(uint32_t)),
                            .blocks = calloc(blocks, sizeof(uint32_t))};
    if (!sites->of_block || !sites->nth || !sites->blocks || !sites_count(sites, run))
        return -1;
    sites->begin = calloc((size_t)sites->count + 1, sizeof(uint32_t));
    if (!sites->begin)
        return -1;
    for (uint32_t i = 0; i < sites->count; i++)
        sites->begin[i + 1] = sites->begin[i] + sites->rows[i].count;
    for (uint32_t block = 0; block < run->course->block_count; block++)
        sites->blocks[sites->begin[sites->of_block[block]] + sites->nth[block]] = block;
    return 0;
}

/* --- which site of one run is which of another --- */

static bool is_same_site(const struct site *a, const struct site *b)
{
    if (a->name || b->name)
        return a->name == b->name;
    return a->count == b->count && a->stream == b->stream && a->kind == b->kind;
}

/* Sites have the numbers in which they were met; one that is met in one run alone shifts all behind it. So
 * the longest common sequence of sites that do the same is what both runs have. */
static int sites_match(struct sites *base, const struct sites *other)
{
    size_t wide = (size_t)other->count + 1, cells = ((size_t)base->count + 1) * wide;
    uint16_t *length;
    uint32_t i = 0, j = 0;

    for (i = 0; i < base->count; i++)
        base->rows[i].partner = UINT32_MAX;
    if (base->count > SITES_MOST || other->count > SITES_MOST) {
        for (i = 0; i < base->count && i < other->count; i++)
            base->rows[i].partner = is_same_site(&base->rows[i], &other->rows[i]) ? i : UINT32_MAX;
        return 0;
    }
    length = calloc(cells, sizeof(*length));
    if (!length)
        return -1;
    for (i = base->count; i-- > 0;)
        for (j = other->count; j-- > 0;) {
            uint16_t below = length[(i + 1) * wide + j], beside = length[i * wide + j + 1];

            length[i * wide + j] = is_same_site(&base->rows[i], &other->rows[j])
                                       ? (uint16_t)(length[(i + 1) * wide + j + 1] + 1)
                                   : below > beside ? below
                                                    : beside;
        }
    for (i = j = 0; i < base->count && j < other->count;) {
        if (is_same_site(&base->rows[i], &other->rows[j]))
            base->rows[i++].partner = j++;
        else if (length[(i + 1) * wide + j] >= length[i * wide + j + 1])
            i++;
        else
            j++;
    }
    free(length);
    return 0;
}

/* --- laws --- */

/* A block that an allocator made is longer than what was asked of it: PyTorch's are multiples of 512 bytes,
 * and large ones keep a rest of up to 1 MiB that it does not split off. So laws are tried with such slacks,
 * the least first. */
enum slack { SLACK_NONE, SLACK_ROUNDED, SLACK_UNSPLIT, SLACKS };

static double slack_bytes(enum slack slack, double bytes)
{
    if (slack == SLACK_UNSPLIT && bytes > (double)MIB)
        return (double)MIB;
    return slack == SLACK_NONE ? 0 : 511;
}

/* The largest factor with which factor * size[i] ^ power explains all bytes; negative: none does. */
static double factor_of(enum slack slack, const double *sizes, const double *bytes, size_t count, int power)
{
    double low = 0, high = INFINITY;

    for (size_t i = 0; i < count; i++) {
        double scale = pow(sizes[i], power), spare = slack_bytes(slack, bytes[i]);

        low = fmax(low, (bytes[i] - spare) / scale);
        high = fmin(high, bytes[i] / scale);
    }
    return low <= high * (1 + 1e-12) ? high : -1;
}

/* Two runs have a line; three or more the parabola through the first, the middle and the last, if the line
 * through the outer ones misses the middle. `sizes` rise. */
static struct ms_law mixed_law(const struct ms_course *course, const double *sizes, const double *bytes,
                               size_t count)
{
    size_t last = count - 1, middle = count / 2;
    double slope = (bytes[last] - bytes[0]) / (sizes[last] - sizes[0]);
    struct ms_law law = {.constant = bytes[0] - slope * sizes[0], .linear = slope, .is_followed = true};
    double missed, x0 = sizes[0], x1 = sizes[middle], x2 = sizes[last];

    if (count < 3)
        return law;
    missed = bytes[middle] - (law.constant + slope * x1);
    if (fabs(missed) <= slack_bytes(course->inner ? SLACK_UNSPLIT : SLACK_NONE, bytes[middle]))
        return law;
    law.quadratic = missed / ((x1 - x0) * (x1 - x2));
    law.linear -= law.quadratic * (x0 + x2);
    law.constant += law.quadratic * x0 * x2;
    return law;
}

static struct ms_law law_of_power(double factor, int power)
{
    if (power == 0)
        return (struct ms_law){.constant = factor, .is_followed = true};
    if (power == 1)
        return (struct ms_law){.linear = factor, .is_followed = true};
    return (struct ms_law){.quadratic = factor, .is_followed = true};
}

/* Blocks that differ by a rest alone are rather of a tensor that grows: a constant one has the same block in
 * most runs, so that is looked for last. */
static struct ms_law law_of(const struct ms_course *course, const double *sizes, const double *bytes,
                            size_t count)
{
    static const int powers[SLACKS][3] = {{0, 1, 2}, {0, 1, 2}, {1, 2, 0}};
    enum slack most = course->inner ? SLACK_UNSPLIT : SLACK_NONE;

    for (unsigned slack = SLACK_NONE; slack <= most; slack++)
        for (unsigned i = 0; i < 3; i++) {
            double factor = factor_of(slack, sizes, bytes, count, powers[slack][i]);

            if (factor >= 0)
                return law_of_power(factor, powers[slack][i]);
        }
    return mixed_law(course, sizes, bytes, count);
}

static double law_bytes(const struct ms_law *law, double size)
{
    return law->constant + law->linear * size + law->quadratic * size * size;
}

/* The bytes of each block of the base in each of the runs. */
struct table {
    double *bytes; /* block * runs + run; 0: not known */
    double *sizes; /* by run, rising */
    size_t runs;
};

static int compare_runs(const void *a, const void *b)
{
    double x = (*(const struct ms_sized_run *const *)a)->size,
           y = (*(const struct ms_sized_run *const *)b)->size;

    return (x > y) - (x < y);
}

static void bytes_of_blocks(const struct ms_course *course, double *bytes, size_t step,
                            const uint32_t *block_of)
{
    for (size_t i = 0; i < course->count; i++) {
        const struct ms_course_event *event = &course->events[i];
        uint32_t block = event->bytes && block_of ? block_of[event->block] : event->block;

        if (event->bytes && block != UINT32_MAX)
            bytes[(size_t)block * step] = (double)event->bytes;
    }
}

/* For each block of the other run the base's; UINT32_MAX. */
static uint32_t *partners(const struct sites *base, const struct sites *other, size_t blocks)
{
    uint32_t *block_of = malloc((blocks + 1) * sizeof(*block_of));

    if (!block_of)
        return NULL;
    memset(block_of, 0xff, (blocks + 1) * sizeof(*block_of));
    for (uint32_t i = 0; i < base->count; i++) {
        uint32_t j = base->rows[i].partner;

        if (j == UINT32_MAX || base->rows[i].count != other->rows[j].count)
            continue;
        for (uint32_t n = 0; n < base->rows[i].count; n++)
            block_of[other->blocks[other->begin[j] + n]] = base->blocks[base->begin[i] + n];
    }
    return block_of;
}

static int table_fill(struct table *table, const struct ms_sized_run *const *runs)
{
    struct sites base, other = {0};
    int result = sites_open(&base, runs[table->runs - 1]);

    bytes_of_blocks(runs[table->runs - 1]->course, table->bytes + table->runs - 1, table->runs, NULL);
    for (size_t i = 0; result == 0 && i < table->runs - 1; i++) {
        uint32_t *block_of = NULL;

        result = sites_open(&other, runs[i]);
        if (result == 0 && (result = sites_match(&base, &other)) == 0)
            block_of = partners(&base, &other, runs[i]->course->block_count);
        if (block_of)
            bytes_of_blocks(runs[i]->course, table->bytes + i, table->runs, block_of);
        else
            result = -1;
        free(block_of);
        sites_close(&other);
    }
    sites_close(&base);
    return result;
}

static void laws_fill(struct ms_laws *laws, const struct table *table)
{
    for (uint32_t block = 0; block < laws->base->block_count; block++) {
        const double *bytes = &table->bytes[(size_t)block * table->runs];
        bool is_known = true;

        for (size_t i = 0; i < table->runs; i++)
            is_known = is_known && bytes[i] > 0;
        if (is_known)
            laws->laws[block] = law_of(laws->base, table->sizes, bytes, table->runs);
        else
            laws->laws[block] = (struct ms_law){.constant = bytes[table->runs - 1]};
    }
}

int ms_laws_find(const struct ms_sized_run *runs, size_t count, struct ms_laws *laws, char *error,
                 size_t error_bytes)
{
    const struct ms_sized_run **order = calloc(count, sizeof(*order));
    struct table table = {.runs = count, .sizes = calloc(count, sizeof(double))};
    int result = -1;

    *laws = (struct ms_laws){0};
    snprintf(error, error_bytes, "there is no memory to compare the runs");
    for (size_t i = 0; order && i < count; i++)
        order[i] = &runs[i];
    if (order && table.sizes) {
        qsort(order, count, sizeof(*order), compare_runs);
        for (size_t i = 0; i < count; i++)
            table.sizes[i] = order[i]->size;
        laws->base = order[count - 1]->course;
        laws->laws = calloc((size_t)laws->base->block_count + 1, sizeof(*laws->laws));
        table.bytes = calloc(((size_t)laws->base->block_count + 1) * count, sizeof(*table.bytes));
        if (laws->laws && table.bytes && table_fill(&table, order) == 0) {
            laws_fill(laws, &table);
            result = 0;
        }
    }
    free(table.bytes);
    free(table.sizes);
    free(order);
    return result;
}

void ms_laws_close(struct ms_laws *laws)
{
    free(laws->laws);
    laws->laws = NULL;
}

/* --- a run at another size --- */

void ms_laws_course_close(struct ms_course *course)
{
    free(course->events);
    course->events = NULL;
}

int ms_laws_course(const struct ms_laws *laws, double size, struct ms_course *course)
{
    uint64_t step = laws->base->inner ? 512 : 1, live = 0;
    uint64_t *blocks = calloc((size_t)laws->base->block_count + 1, sizeof(*blocks)); /* bytes */

    *course = *laws->base;
    course->events = malloc((course->count + 1) * sizeof(*course->events));
    if (!course->events || !blocks) {
        free(blocks);
        ms_laws_course_close(course);
        return -1;
    }
    course->live_peak = 0;
    memcpy(course->events, laws->base->events, course->count * sizeof(*course->events));
    for (size_t i = 0; i < course->count; i++) {
        struct ms_course_event *event = &course->events[i];
        double bytes = event->bytes ? law_bytes(&laws->laws[event->block], size) : 0;

        if (event->bytes)
            blocks[event->block] = event->bytes =
                bytes > 1 ? ((uint64_t)(bytes + 0.5) + step - 1) / step * step : step;
        live = event->bytes ? live + event->bytes : live - blocks[event->block];
        if (live > course->live_peak) {
            course->live_peak = live;
            course->live_peak_event = i;
        }
    }
    free(blocks);
    return 0;
}

static int compare_shares(const void *a, const void *b)
{
    const struct ms_law_share *x = a, *y = b;

    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void share_add(struct ms_law_share *share, const struct ms_law *law, double size, uint64_t bytes,
                      int sign)
{
    double parts[] = {law->constant, law->linear * size, law->quadratic * size * size};
    double whole = parts[0] + parts[1] + parts[2];
    uint64_t linear = whole > 0 ? (uint64_t)fmax(0, parts[1] / whole * (double)bytes) : 0;
    uint64_t quadratic = whole > 0 ? (uint64_t)fmax(0, parts[2] / whole * (double)bytes) : 0;

    linear = linear < bytes ? linear : bytes;
    quadratic = quadratic < bytes - linear ? quadratic : bytes - linear;
    share->is_followed = share->is_followed && law->is_followed;
    share->bytes += sign > 0 ? bytes : -bytes;
    share->linear += sign > 0 ? linear : -linear;
    share->quadratic += sign > 0 ? quadratic : -quadratic;
    share->constant = share->bytes - share->linear - share->quadratic;
}

long ms_laws_shares(const struct ms_laws *laws, const struct ms_course *course, double size,
                    struct ms_law_share **shares_p)
{
    struct sites sites;
    struct ms_sized_run run = {.course = course};
    uint64_t *bytes = calloc((size_t)course->block_count + 1, sizeof(*bytes));
    struct ms_law_share *shares = NULL;
    long count = -1;

    if (sites_open(&sites, &run) == 0 && bytes)
        shares = calloc((size_t)sites.count + 1, sizeof(*shares));
    if (shares) {
        for (size_t i = 0; i < course->count; i++)
            if (course->events[i].bytes)
                bytes[course->events[i].block] = course->events[i].bytes;
        for (uint32_t i = 0; i < sites.count; i++)
            shares[i] = (struct ms_law_share){.site = sites.rows[i].number, .is_followed = true};
        for (size_t i = 0; course->count && i <= course->live_peak_event; i++) {
            const struct ms_course_event *event = &course->events[i];

            share_add(&shares[sites.of_block[event->block]], &laws->laws[event->block], size,
                      bytes[event->block], event->bytes ? 1 : -1);
        }
        count = (long)sites.count;
        qsort(shares, sites.count, sizeof(*shares), compare_shares);
    }
    *shares_p = shares;
    sites_close(&sites);
    free(bytes);
    return count;
}
