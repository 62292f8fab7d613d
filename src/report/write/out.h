/* out.h - writing JSON to a descriptor, one element at a time.
 *
 * Floor 4. The report is a large object of large arrays; each element is encoded by jansson and forgotten at
 * once, so that the memory needed does not grow with the report. jansson allocates from one private mapping
 * and never with malloc. One report at a time. */
#ifndef MS_REPORT_WRITE_OUT_H
#define MS_REPORT_WRITE_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ms_out {
    int fd;
    int error; /* errno of the first failure; 0 while all is well */
    size_t used;
    uint64_t written; /* bytes before those in the buffer */
    bool fresh;       /* nothing was written yet at this level */
    char buffer[64 * 1024];
};

/** Takes over jansson's allocation until ms_out_close(). Returns 0, or -1 with errno. */
int ms_out_open(struct ms_out *out, int fd);
/** Writes what is left and lets go of the memory, not of the descriptor. Returns 0, or -1 with errno: the
 * file is not whole. */
int ms_out_close(struct ms_out *out);

void ms_out_begin_object(struct ms_out *out);
void ms_out_end_object(struct ms_out *out);

/** The next member of the outer object: its key; ms_out_value, or an array, follows. */
void ms_out_key(struct ms_out *out, const char *key);
/** A whole value; takes the reference. NULL (jansson had no memory) fails the report. */
void ms_out_value(struct ms_out *out, json_t *value);
void ms_out_begin_array(struct ms_out *out);
void ms_out_end_array(struct ms_out *out);
/** The next element of the array; takes the reference. */
void ms_out_element(struct ms_out *out, json_t *element);
/** The next element, without jansson: for arrays of many numbers. */
void ms_out_number(struct ms_out *out, uint64_t number);
/** The place of the next byte in the file. */
uint64_t ms_out_offset(const struct ms_out *out);
/** Bytes as they are. */
void ms_out_raw(struct ms_out *out, const char *text);

/** A JSON string of whatever bytes a path or an argument holds: what is not UTF-8 becomes U+FFFD. */
json_t *ms_out_string(const char *text);
/** Bytes as a JSON string, in base64 (RFC 4648). */
json_t *ms_out_base64(const unsigned char *bytes, size_t count);
/** Addresses and handles are strings: "0x7f..". */
json_t *ms_out_hex(uint64_t value);

#endif
