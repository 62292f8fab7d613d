/* input.c - see input.h.
 *
 * Floor 3.5. */
#include "trace/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

enum { ROOM = 1 << 18 };

int ms_trace_input_open(struct ms_trace_input *input, const char *path)
{
    struct stat st;

    *input = (struct ms_trace_input){.fd = ms_file_open_regular(path, &st)};
    return input->fd < 0 ? errno : 0;
}

void ms_trace_input_close(struct ms_trace_input *input)
{
    free(input->bytes);
    if (input->fd >= 0)
        close(input->fd);
}

static bool make_room(struct ms_trace_input *input, size_t count)
{
    size_t room = input->room ? input->room : ROOM;
    unsigned char *bytes;

    if (input->begin)
        memmove(input->bytes, input->bytes + input->begin, input->end - input->begin);
    input->end -= input->begin;
    input->begin = 0;
    while (room < count)
        room *= 2;
    if (room == input->room)
        return true;
    bytes = realloc(input->bytes, room);
    if (!bytes) {
        input->error = ENOMEM;
        return false;
    }
    input->bytes = bytes;
    input->room = room;
    return true;
}

static void fill(struct ms_trace_input *input)
{
    ssize_t got = read(input->fd, input->bytes + input->end, input->room - input->end);

    if (got > 0)
        input->end += (size_t)got;
    else if (got == 0 || errno != EINTR)
        input->is_over = true;
    if (got < 0 && errno != EINTR)
        input->error = errno;
}

size_t ms_trace_input_want(struct ms_trace_input *input, size_t count)
{
    if (input->end - input->begin < count && !input->is_over && make_room(input, count)) {
        while (input->end < count && !input->is_over)
            fill(input);
    }
    return input->end - input->begin;
}
