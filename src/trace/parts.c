/* parts.c - the parts of a trace with a limit, of which the oldest fall out (record/file/trace_file.h): read
 * in the order in which they were written.
 *
 * Floor 3.5. A compressed file has them in order, each as long as the others. */
#include <errno.h>
#include <unistd.h>

#include "trace/internal.h"

enum { FIRST_BYTES = 1 + MS_TRACE_NUMBER_BYTES };

/* The number of the part that begins in this place of the file; false if none does. */
static bool part_at(const struct ms_trace_input *input, uint64_t offset, uint64_t *number_p)
{
    unsigned char first[FIRST_BYTES];
    ssize_t got = pread(input->fd, first, sizeof(first), (off_t)offset);
    struct ms_trace_cursor cursor = {first + 1, first + (got > 0 ? got : 1)};

    return got > 1 && first[0] == MS_TRACE_R_PART && ms_trace_take(&cursor, number_p);
}

/* The latest part, and as many before it as there are without a gap. */
static void find_order(struct ms_trace_input *input)
{
    uint64_t numbers[MS_TRACE_PARTS], latest = 0, number;
    bool is_there[MS_TRACE_PARTS], any = false;

    for (unsigned i = 0; i < MS_TRACE_PARTS; i++) {
        is_there[i] = part_at(input, input->parts_begin + i * input->part_bytes, &numbers[i]) &&
                      numbers[i] % MS_TRACE_PARTS == i;
        if (is_there[i] && (!any || numbers[i] > latest))
            latest = numbers[i];
        any |= is_there[i];
    }
    for (number = latest; any && input->parts < MS_TRACE_PARTS; number--) {
        unsigned place = (unsigned)(number % MS_TRACE_PARTS);

        if (!is_there[place] || numbers[place] != number)
            break;
        input->parts++;
        if (!number)
            break;
    }
    for (unsigned i = 0; i < input->parts; i++)
        input->places[i] =
            input->parts_begin + (latest - (input->parts - 1) + i) % MS_TRACE_PARTS * input->part_bytes;
}

bool ms_trace_input_order(struct ms_trace_input *input, uint64_t part_bytes)
{
    input->part_bytes = part_bytes;
    input->parts_begin = input->offset;
    if (input->packed)
        return true;
    find_order(input);
    input->begin = input->end = 0;
    input->is_over = !input->parts;
    input->part_left = part_bytes;
    return input->parts != 0;
}

long ms_trace_input_of_parts(struct ms_trace_input *input, unsigned char *bytes, size_t count)
{
    uint64_t offset;
    ssize_t got;

    if (!input->part_left && input->part + 1 < input->parts) {
        input->part++;
        input->part_left = input->part_bytes;
    }
    if (count > input->part_left)
        count = (size_t)input->part_left;
    offset = input->places[input->part] + input->part_bytes - input->part_left;
    got = count ? pread(input->fd, bytes, count, (off_t)offset) : 0;
    if (got > 0)
        input->part_left -= (uint64_t)got;
    return got;
}

bool ms_trace_input_next_part(struct ms_trace_input *input)
{
    uint64_t inside = (input->offset - input->parts_begin) % input->part_bytes,
             left = inside ? input->part_bytes - inside : 0;

    while (left) {
        size_t part = ms_trace_input_want(input, 1);

        if (!part)
            return false;
        part = part < left ? part : (size_t)left;
        ms_trace_input_skip(input, part);
        left -= part;
    }
    return ms_trace_input_want(input, 1) != 0;
}
