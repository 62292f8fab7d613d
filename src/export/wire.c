/* wire.c - see wire.h.
 *
 * Floor 4. */
#include "export/wire.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, LENGTH = 2 };

void ms_wire_put(struct ms_wire *wire, const void *bytes, size_t count)
{
    if (wire->failed || !count)
        return;
    if (wire->room - wire->count < count) {
        size_t room = wire->room * 2 > wire->count + count ? wire->room * 2 : wire->count + count + 256;
        unsigned char *grown = realloc(wire->bytes, room);

        if (!grown) {
            wire->failed = true;
            return;
        }
        wire->bytes = grown;
        wire->room = room;
    }
    memcpy(wire->bytes + wire->count, bytes, count);
    wire->count += count;
}

void ms_wire_varint(struct ms_wire *wire, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;

    do {
        bytes[count++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    ms_wire_put(wire, bytes, count);
}

void ms_wire_number(struct ms_wire *wire, unsigned field, uint64_t value)
{
    if (!value)
        return;
    ms_wire_varint(wire, (uint64_t)field << 3 | VARINT);
    ms_wire_varint(wire, value);
}

void ms_wire_field(struct ms_wire *wire, unsigned field, const void *bytes, size_t count)
{
    ms_wire_varint(wire, (uint64_t)field << 3 | LENGTH);
    ms_wire_varint(wire, count);
    ms_wire_put(wire, bytes, count);
}

void ms_wire_message(struct ms_wire *wire, unsigned field, struct ms_wire *message)
{
    ms_wire_field(wire, field, message->bytes, message->count);
    wire->failed = wire->failed || message->failed;
    message->count = 0;
}

void ms_wire_close(struct ms_wire *wire)
{
    free(wire->bytes);
    memset(wire, 0, sizeof(*wire));
}
