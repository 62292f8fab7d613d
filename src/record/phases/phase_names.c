/* phase_names.c - texts of phases, and the row of each name.
 *
 * Floor 2. Texts and rows are only appended, each found by a hash index of fixed size, which is this
 * process's own. Under the lock of phases.c. */
#include <string.h>

#include "record/phases/phases.h"

/* Twice the rows that there may be: half of the places are empty. Texts are names and domains. */
enum { TEXTS_MAX = MS_TABLE_PHASES_ROWS, PLACES = 2 * MS_TABLE_PHASES_ROWS, NO_ROOM_TEXT = 1 };
static const char no_room[] = "...";

static uint32_t texts[PLACES]; /* where they are; 0: empty */
static uint32_t rows[PLACES];  /* number, + 1 */
static uint32_t text_count;
static bool is_used;

static uint64_t phase_names_mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 29;
}

/* How much of a text is kept: whole characters, if it is UTF-8. */
static size_t kept_bytes(const char *text)
{
    size_t bytes = strnlen(text, MS_PHASE_NAME_BYTES);
    if (bytes < MS_PHASE_NAME_BYTES)
        return bytes;
    bytes = MS_PHASE_NAME_BYTES - 1;
    for (unsigned back = 0; back < 3 && ((unsigned char)text[bytes] & 0xc0) == 0x80; back++)
        bytes--;
    return bytes;
}

const char *ms_phase_text_at(uint32_t text)
{
    return text && text < ms_table_rows(MS_TABLE_PHASE_TEXT) ? &MS_ROWS(PHASE_TEXT, char)[text] : "";
}

/* Returns where it is; 0 without room. */
static uint32_t phase_names_append(const char *text, size_t bytes)
{
    uint64_t at = ms_table_rows(MS_TABLE_PHASE_TEXT);
    if (!ms_table_reserve(MS_TABLE_PHASE_TEXT, at + bytes + 1))
        return 0;
    char *room = &MS_ROWS(PHASE_TEXT, char)[at];
    memcpy(room, text, bytes);
    room[bytes] = '\0';
    ms_table_publish(MS_TABLE_PHASE_TEXT, at + bytes + 1);
    return (uint32_t)at;
}

/* The first byte is nobody's; behind it stands what texts are that find no room. */
static bool open_table(void)
{
    if (ms_table_rows(MS_TABLE_PHASE_TEXT))
        return true;
    if (!ms_table_reserve(MS_TABLE_PHASE_TEXT, NO_ROOM_TEXT + sizeof no_room))
        return false;
    memcpy(&MS_ROWS(PHASE_TEXT, char)[NO_ROOM_TEXT], no_room, sizeof no_room);
    ms_table_publish(MS_TABLE_PHASE_TEXT, NO_ROOM_TEXT + sizeof no_room);
    return true;
}

uint32_t ms_phase_text_locked(const char *text, bool is_phases)
{
    uint64_t hash = 1;
    size_t bytes = text ? kept_bytes(text) : 0;
    if (!bytes || !open_table())
        return 0;
    is_used = true;
    for (size_t i = 0; i < bytes; i++)
        hash = phase_names_mix(hash, (unsigned char)text[i]);
    for (uint32_t place = (uint32_t)(hash >> 32) % PLACES;; place = (place + 1) % PLACES) {
        if (texts[place]) {
            const char *known = ms_phase_text_at(texts[place]);
            if (strncmp(known, text, bytes) == 0 && !known[bytes])
                return texts[place];
            continue;
        }
        if (text_count >= (is_phases ? TEXTS_MAX : TEXTS_MAX / 2))
            return NO_ROOM_TEXT;
        uint32_t at = phase_names_append(text, bytes);
        text_count += at != 0;
        texts[place] = at;
        return at ? at : NO_ROOM_TEXT;
    }
}

/* The first is of names without room. */
static bool open_rows(void)
{
    if (ms_table_rows(MS_TABLE_PHASES))
        return true;
    if (!ms_table_reserve(MS_TABLE_PHASES, 1))
        return false;
    ms_phase_at(0)->name = NO_ROOM_TEXT;
    ms_table_publish(MS_TABLE_PHASES, 1);
    return true;
}

static uint32_t append_row(enum ms_phase_source source, uint32_t domain, uint32_t name, uint64_t now_ns)
{
    uint64_t number = ms_table_rows(MS_TABLE_PHASES);
    if (number >= MS_TABLE_PHASES_ROWS || !ms_table_reserve(MS_TABLE_PHASES, number + 1))
        return 0;
    struct ms_phase *phase = ms_phase_at((uint32_t)number);
    phase->source = source;
    phase->domain = domain;
    phase->name = name;
    phase->first_ns = now_ns;
    atomic_store_explicit(&phase->state, 1, memory_order_release);
    ms_table_publish(MS_TABLE_PHASES, number + 1);
    return (uint32_t)number;
}

uint32_t ms_phase_row(enum ms_phase_source source, uint32_t domain, uint32_t name, uint64_t now_ns)
{
    uint64_t hash = phase_names_mix(phase_names_mix(source + 1u, domain), name);
    if (!open_rows())
        return UINT32_MAX;
    is_used = true;
    uint32_t place = (uint32_t)(hash >> 32) % PLACES, number;
    for (; (number = rows[place]) != 0; place = (place + 1) % PLACES) {
        const struct ms_phase *phase = ms_phase_at(number - 1);
        if (phase->source == source && phase->domain == domain && phase->name == name)
            return number - 1;
    }
    number = name == NO_ROOM_TEXT ? 0 : append_row(source, domain, name, now_ns);
    if (number)
        rows[place] = number + 1;
    else if (atomic_exchange_explicit(&ms_phase_at(0)->state, 1, memory_order_release) == 0)
        ms_phase_at(0)->first_ns = now_ns;
    return number;
}

static void phase_names_reset(void)
{
    if (!is_used)
        return;
    is_used = false;
    memset(texts, 0, sizeof texts);
    memset(rows, 0, sizeof rows);
    text_count = 0;
}
MS_AT_FORK(MS_FORK_RECORD, phase_names_reset);
