/* wire.h - bytes that grow, and the wire format of protocol buffers in them.
 *
 * Floor 4, command line only. Reference: protobuf.dev, "Encoding". */
#ifndef MS_EXPORT_WIRE_H
#define MS_EXPORT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ms_wire {
    unsigned char *bytes;
    size_t count, room;
    bool failed; /* no memory: what was put since is lost */
};

void ms_wire_put(struct ms_wire *wire, const void *bytes, size_t count);
void ms_wire_varint(struct ms_wire *wire, uint64_t value);
/** A field that holds a number; nothing for 0, which is what its absence means. */
void ms_wire_number(struct ms_wire *wire, unsigned field, uint64_t value);
/** A field of this many bytes: a string, or a message that was put together in a buffer of its own. */
void ms_wire_field(struct ms_wire *wire, unsigned field, const void *bytes, size_t count);
/** A field that holds this message, whose buffer is emptied for the next one. */
void ms_wire_message(struct ms_wire *wire, unsigned field, struct ms_wire *message);
void ms_wire_close(struct ms_wire *wire);

#endif
