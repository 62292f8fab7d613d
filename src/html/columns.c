/* columns.c - see columns.h.
 *
 * Floor 4. */
#include "html/columns.h"

#include <stdlib.h>
#include <string.h>

static const char MAGIC[4] = "MSH1";

int ms_columns_open(struct ms_columns *columns)
{
    memset(columns, 0, sizeof(*columns));
    columns->directory = json_array();
    return columns->directory ? 0 : -1;
}

void ms_columns_close(struct ms_columns *columns)
{
    ms_wire_close(&columns->bytes);
    json_decref(columns->directory);
    columns->directory = NULL;
}

void ms_columns_put(struct ms_columns *columns, const char *name, const void *numbers, size_t bytes,
                    size_t count)
{
    unsigned char plane[4096];
    const unsigned char *from = numbers;

    for (size_t byte = 0; byte < bytes; byte++) {
        for (size_t done = 0; done < count;) {
            size_t here = count - done < sizeof(plane) ? count - done : sizeof(plane);

            for (size_t i = 0; i < here; i++)
                plane[i] = from[(done + i) * bytes + byte];
            ms_wire_put(&columns->bytes, plane, here);
            done += here;
        }
    }
    json_array_append_new(columns->directory,
                          json_pack("[s, I, I]", name, (json_int_t)bytes, (json_int_t)count));
}

int ms_columns_write(struct ms_columns *columns, json_t *head, struct ms_base64_deflated *out)
{
    unsigned char length_bytes[4];
    size_t length;
    char *text;

    json_object_set(head, "columns", columns->directory);
    text = json_dumps(head, JSON_COMPACT);
    length = text ? strlen(text) : 0;
    if (!text || columns->bytes.failed || length > UINT32_MAX) {
        free(text);
        return -1;
    }
    for (int i = 0; i < 4; i++)
        length_bytes[i] = (unsigned char)(length >> 8 * i);
    ms_base64_deflated_put(out, MAGIC, sizeof(MAGIC));
    ms_base64_deflated_put(out, length_bytes, sizeof(length_bytes));
    ms_base64_deflated_put(out, text, length);
    ms_base64_deflated_put(out, columns->bytes.bytes, columns->bytes.count);
    free(text);
    return 0;
}
