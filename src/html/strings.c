/* strings.c - see strings.h.
 *
 * Floor 4. */
#include "html/strings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/analyse/callers.h"
#include "report/analyse/fold.h"
#include "report/text/text.h"
#include "report/text/utf8.h"

enum { TEXT_BYTES_MAX = 4096 }; /* as names in the model; whoever wants more has the report */

struct ms_place_name {
    const json_t *frame;
    uint32_t number;
};

int ms_strings_open(struct ms_strings *strings, const struct ms_report *report)
{
    size_t slots = 16;

    memset(strings, 0, sizeof(*strings));
    while (slots < 2 * json_array_size(report->frames))
        slots *= 2;
    strings->places = calloc(slots, sizeof(*strings->places));
    strings->place_mask = slots - 1;
    return strings->places ? 0 : -1;
}

void ms_strings_close(struct ms_strings *strings)
{
    ms_names_close(&strings->names);
    free(strings->places);
    strings->places = NULL;
}

static uint32_t strings_number_of(struct ms_strings *strings, const char *text)
{
    uint32_t number = ms_names_number(&strings->names, text);

    strings->failed = strings->failed || number == UINT32_MAX;
    return number == UINT32_MAX ? 0 : number;
}

uint32_t ms_strings_number(struct ms_strings *strings, const char *text)
{
    char cut[TEXT_BYTES_MAX + 4];
    size_t kept = 0, step;

    if (strnlen(text, TEXT_BYTES_MAX + 1) <= TEXT_BYTES_MAX)
        return strings_number_of(strings, text);
    while ((step = ms_utf8_bytes(text + kept)) && kept + step <= TEXT_BYTES_MAX)
        kept += step;
    memcpy(cut, text, kept);
    memcpy(cut + kept, "...", 4);
    return strings_number_of(strings, cut);
}

static uint32_t frame_number(struct ms_strings *strings, const struct ms_report *report, const json_t *frame,
                             json_int_t stack)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    uint32_t number = 0;

    if (out)
        ms_text_frame(out, report, frame);
    if (out && stack)
        ms_text_put_callers(out, report, stack);
    if (!out || fclose(out) != 0)
        strings->failed = true;
    else
        number = ms_strings_number(strings, text);
    free(text);
    return number;
}

uint32_t ms_strings_own_line(struct ms_strings *strings, const struct ms_report *report, json_int_t stack)
{
    bool inferred;
    const json_t *callers[MS_CALLERS_MAX];
    const json_t *own = ms_fold_own(report, stack, &inferred);
    size_t at = ((uintptr_t)own >> 4) * 0x9e3779b1u & strings->place_mask;

    if (!own)
        return ms_strings_number(strings, "");
    if (ms_callers_of(report, stack, callers))
        return frame_number(strings, report, own, stack);
    while (strings->places[at].frame && strings->places[at].frame != own)
        at = (at + 1) & strings->place_mask;
    if (!strings->places[at].frame)
        strings->places[at] =
            (struct ms_place_name){.frame = own, .number = frame_number(strings, report, own, 0)};
    return strings->places[at].number;
}

json_t *ms_strings_json(const struct ms_strings *strings)
{
    json_t *array = json_array();

    for (size_t i = 0; array && i < strings->names.count; i++)
        json_array_append_new(array, json_string(strings->names.texts[i]));
    return array;
}
