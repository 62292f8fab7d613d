/* uses_replay.c - see uses_replay.h. */
#include <string.h>
#include <sys/mman.h>

#include "report/findings/uses_replay.h"

/* A life begins or ends. */
struct event {
    uint64_t number; /* of the sequence; * 2, + 1 of an end, so that what is used last is there until then */
    uint32_t life;
    uint32_t begins;
};

/* The idle memory that a site held at the peak. */
struct held {
    uint64_t bytes[MS_IDLES];
};

struct course {
    const struct ms_snapshot *snapshot;
    const struct ms_lives_told *told;
    struct event *events, *changed; /* all, in order; those of one site, as they might have been */
    uint64_t event_count;
    struct held *held;    /* of each site */
    uint64_t peak_number; /* of the device that is looked at */
    uint64_t peak_bytes;
    int device;
};

static uint64_t begin_number(uint64_t number)
{
    return number * 2;
}

static uint64_t end_number(uint64_t number)
{
    return number * 2 + 1;
}

static bool comes_later(const struct event *a, const struct event *b)
{
    return a->number > b->number;
}

/* A heap, and not qsort: that allocates. */
static void sift_down(struct event *events, uint64_t count, uint64_t i)
{
    for (uint64_t child; (child = 2 * i + 1) < count; i = child) {
        struct event old = events[i];
        if (child + 1 < count && comes_later(&events[child + 1], &events[child]))
            child++;
        if (!comes_later(&events[child], &events[i]))
            return;
        events[i] = events[child];
        events[child] = old;
    }
}

static void replay_sort(struct event *events, uint64_t count)
{
    for (uint64_t i = count / 2; i-- > 0;)
        sift_down(events, count, i);
    for (uint64_t left = count; left > 1; left--) {
        struct event last = events[left - 1];
        events[left - 1] = events[0];
        events[0] = last;
        sift_down(events, left - 1, 0);
    }
}

static uint32_t replay_place_of(const struct course *course, const struct ms_lifetime *life)
{
    return ms_snapshot_layer_place(course->snapshot, MS_LAYER_OUTER, life->site);
}

static bool is_of_device(const struct ms_lifetime *life, int device)
{
    return life->device == device && ms_kind_is_device(life->kind);
}

/* True if the program could have the memory later, or give it back earlier: host code uses managed memory
 * unseen, and what graphs, arrays and handles have is used by other names. */
static bool can_move(const struct ms_lifetime *life)
{
    return (life->kind == MS_KIND_DEVICE || life->kind == MS_KIND_ASYNC) &&
           !(life->flags & (MS_LIFETIME_SHARED | MS_LIFETIME_UNMAPPED));
}

/* Which idle it is at the peak; MS_IDLES if none. */
static enum ms_idle idle_at_peak(const struct course *course, const struct ms_lifetime *life)
{
    uint64_t peak = course->peak_number, first = life->first, last = life->last, ended = life->ended;
    if (!can_move(life) || begin_number(life->born) > peak || (ended && end_number(ended) < peak))
        return MS_IDLES;
    if (!first)
        return MS_IDLE_NEVER;
    if (begin_number(first) > peak)
        return MS_IDLE_EARLY;
    return end_number(last) < peak ? MS_IDLE_LATE : MS_IDLES;
}

/* Of the events of one device: `changed` in the place of those of the lives that `is_out` says. Returns the
 * most that was live, and when. */
static uint64_t highest(const struct course *course, uint64_t changed_count, const uint32_t *site,
                        enum ms_idle idle, uint64_t *number_p)
{
    uint64_t live = 0, most = 0, i = 0, k = 0;
    while (i < course->event_count || k < changed_count) {
        bool is_changed = i >= course->event_count ||
                          (k < changed_count && course->changed[k].number < course->events[i].number);
        const struct event *event = is_changed ? &course->changed[k++] : &course->events[i++];
        const struct ms_lifetime *life = &course->told->lives[event->life];
        bool is_replaced = !is_changed && site && replay_place_of(course, life) == *site && can_move(life) &&
                           (idle != MS_IDLE_NEVER || !life->first);
        if (is_replaced || !is_of_device(life, course->device))
            continue;
        live = event->begins ? live + life->bytes : live - life->bytes;
        if (live > most) {
            most = live;
            *number_p = event->number;
        }
    }
    return most;
}

/* How the lives of a site might have been; those without a use only come into it if they are meant. */
static uint64_t replay_change(const struct course *course, uint32_t site, enum ms_idle idle)
{
    uint64_t count = 0;
    if (idle == MS_IDLE_NEVER)
        return 0;
    for (uint64_t i = 0; i < course->told->count; i++) {
        const struct ms_lifetime *life = &course->told->lives[i];
        uint64_t begins = life->born, ends = life->ended;
        if (!is_of_device(life, course->device) || replay_place_of(course, life) != site || !can_move(life))
            continue;
        if (idle == MS_IDLE_EARLY && life->first)
            begins = life->first;
        if (idle == MS_IDLE_LATE && life->first)
            ends = life->last;
        course->changed[count++] = (struct event){begin_number(begins), (uint32_t)i, true};
        if (ends)
            course->changed[count++] = (struct event){end_number(ends), (uint32_t)i, false};
    }
    replay_sort(course->changed, count);
    return count;
}

static void replay_describe(const struct course *course, struct ms_idle_site *told)
{
    uint64_t now = course->told->all.last_launch;
    told->exact = true;
    for (uint64_t i = 0; i < course->told->count; i++) {
        const struct ms_lifetime *life = &course->told->lives[i];
        uint64_t from = life->born, to = life->ended ? life->ended : now;
        if (!is_of_device(life, course->device) || replay_place_of(course, life) != told->site ||
            idle_at_peak(course, life) != told->idle)
            continue;
        if (told->idle == MS_IDLE_LATE)
            from = life->last;
        if (told->idle == MS_IDLE_EARLY)
            to = life->first;
        told->bytes += life->bytes;
        told->count++;
        told->exact = told->exact && !(life->flags & MS_LIFETIME_UNREAD);
        if (to > from && life->bytes <= (INT64_MAX - told->byte_events) / (to - from))
            told->byte_events += life->bytes * (to - from);
    }
}

/* The site that holds most idle memory of all that were not looked at yet. */
static bool next(struct course *course, uint32_t *site_p, enum ms_idle *idle_p)
{
    uint64_t most = 0;
    for (uint32_t site = 0; site < course->snapshot->site_count; site++) {
        for (unsigned idle = 0; idle < MS_IDLES; idle++) {
            if (course->held[site].bytes[idle] <= most)
                continue;
            most = course->held[site].bytes[idle];
            *site_p = site;
            *idle_p = idle;
        }
    }
    if (most)
        course->held[*site_p].bytes[*idle_p] = 0;
    return most != 0;
}

static void look_at_site(struct course *course, uint32_t site, enum ms_idle idle, struct ms_replay *replay)
{
    struct ms_idle_site told = {.site = site, .device = (int16_t)course->device, .idle = (uint8_t)idle};
    uint64_t number, most = highest(course, replay_change(course, site, idle), &site, idle, &number);
    if (most >= course->peak_bytes || replay->site_count == MS_IDLE_SITES_MAX)
        return;
    told.falls_bytes = course->peak_bytes - most;
    replay_describe(course, &told);
    replay->sites[replay->site_count++] = told;
}

enum { LOOKS = 24 }; /* sites of a device that are gone through: what less than these hold lowers no peak */

static void look_at_device(struct course *course, struct ms_replay *replay)
{
    enum ms_idle idle = MS_IDLES;
    uint32_t site = 0;
    course->peak_bytes = highest(course, 0, NULL, MS_IDLES, &course->peak_number);
    memset(course->held, 0, course->snapshot->site_count * sizeof *course->held);
    for (uint64_t i = 0; i < course->told->count; i++) {
        const struct ms_lifetime *life = &course->told->lives[i];
        site = replay_place_of(course, life);
        idle = is_of_device(life, course->device) ? idle_at_peak(course, life) : MS_IDLES;
        if (idle < MS_IDLES && site < course->snapshot->site_count)
            course->held[site].bytes[idle] += life->bytes;
    }
    for (unsigned looks = 0; looks < LOOKS && next(course, &site, &idle); looks++)
        look_at_site(course, site, idle, replay);
}

static struct ms_idle_pinned *pinned_of(struct ms_replay *replay, uint32_t site)
{
    for (uint32_t i = 0; i < replay->pinned_count; i++) {
        if (replay->pinned[i].site == site)
            return &replay->pinned[i];
    }
    if (replay->pinned_count == MS_IDLE_PINNED_MAX)
        return NULL;
    replay->pinned[replay->pinned_count] = (struct ms_idle_pinned){.site = site, .exact = true};
    return &replay->pinned[replay->pinned_count++];
}

static void look_at_pinned(const struct course *course, struct ms_replay *replay)
{
    for (uint64_t i = 0; i < course->told->count; i++) {
        const struct ms_lifetime *life = &course->told->lives[i];
        uint32_t site = replay_place_of(course, life);
        struct ms_idle_pinned *row = life->kind == MS_KIND_PINNED && site < course->snapshot->site_count
                                         ? pinned_of(replay, site)
                                         : NULL;
        bool is_whole = life->flags & (MS_LIFETIME_SHARED | MS_LIFETIME_UNMAPPED | MS_LIFETIME_HELD);
        if (!row)
            continue;
        row->count++;
        row->bytes += life->bytes;
        row->reach_bytes += is_whole ? life->bytes : life->reach;
        row->exact = row->exact && !(life->flags & MS_LIFETIME_UNREAD);
    }
}

static void put_in_order(struct course *course)
{
    for (uint64_t i = 0; i < course->told->count; i++) {
        const struct ms_lifetime *life = &course->told->lives[i];
        course->events[course->event_count++] = (struct event){begin_number(life->born), (uint32_t)i, true};
        if (life->ended)
            course->events[course->event_count++] =
                (struct event){end_number(life->ended), (uint32_t)i, false};
    }
    replay_sort(course->events, course->event_count);
}

void ms_replay(const struct ms_snapshot *snapshot, struct ms_replay *replay)
{
    struct course course = {.snapshot = snapshot, .told = &snapshot->lives};
    uint64_t events = snapshot->lives.count * 2 + 1;
    size_t bytes = events * 2 * sizeof(struct event) + (snapshot->site_count + 1) * sizeof(struct held);
    void *memory;
    memset(replay, 0, sizeof *replay);
    if (!snapshot->lives.lives || snapshot->lives.all.left_out)
        return;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return;
    course.events = memory;
    course.changed = course.events + events;
    course.held = (void *)(course.changed + events);
    put_in_order(&course);
    for (course.device = 0; course.device < MS_DEVICES_MAX; course.device++) {
        if (snapshot->devices[course.device].account.device.total_count && !snapshot->lives.all.no_layouts)
            look_at_device(&course, replay);
    }
    look_at_pinned(&course, replay);
    replay->told = true;
    munmap(memory, bytes);
}
