/* names.c - see names.h.
 *
 * Floor 4. An open hash over the texts; the table is doubled when it is half full. */
#include "export/names.h"

#include <stdlib.h>
#include <string.h>

static uint64_t names_hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

/* The slot of the text, or the empty slot where it belongs. A slot holds a number plus one. */
static uint32_t *names_slot_of(const struct ms_names *names, const char *text)
{
    size_t at = (size_t)names_hash_of(text) & names->slot_mask;

    while (names->slots[at] && strcmp(names->texts[names->slots[at] - 1], text) != 0)
        at = (at + 1) & names->slot_mask;
    return &names->slots[at];
}

static int names_grow(struct ms_names *names)
{
    size_t room = names->room ? names->room * 2 : 256;
    char **texts = realloc(names->texts, room * sizeof(*texts));
    uint32_t *slots = calloc(room * 2, sizeof(*slots));

    if (texts)
        names->texts = texts;
    if (!texts || !slots) {
        free(slots);
        return -1;
    }
    free(names->slots);
    names->slots = slots;
    names->room = room;
    names->slot_mask = room * 2 - 1;
    for (size_t i = 0; i < names->count; i++)
        *names_slot_of(names, names->texts[i]) = (uint32_t)i + 1;
    return 0;
}

uint32_t ms_names_number(struct ms_names *names, const char *text)
{
    uint32_t *slot;

    if (names->count == names->room && (names->count >= UINT32_MAX / 4 || names_grow(names) < 0))
        return UINT32_MAX;
    slot = names_slot_of(names, text);
    if (!*slot) {
        names->texts[names->count] = strdup(text);
        if (!names->texts[names->count])
            return UINT32_MAX;
        *slot = (uint32_t)++names->count;
    }
    return *slot - 1;
}

void ms_names_close(struct ms_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
    free(names->slots);
    memset(names, 0, sizeof(*names));
}
