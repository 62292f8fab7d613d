/* token.c - see token.h.
 *
 * Floor 2. Bytes in, bytes out; called by the hooks of either side. */
#include "record/ipc/token.h"

#include <string.h>

/* Not text, and no small number in any of its parts. */
static const unsigned char mark[8] = {0xf5, 'm', 's', 'h', 'i', 'p', 'c', 0x9d};

/* The 64 bytes as they lie. */
struct wire {
    unsigned char mark[8];
    struct ms_token token;
    uint64_t check;
};
_Static_assert(sizeof(struct wire) == MS_TOKEN_BYTES, "a token has the size of the vendor's handle");

uint64_t ms_token_check(const void *words, size_t bytes)
{
    uint64_t sum = 0x6d656d7368696d31u, word;

    for (size_t at = 0; at + sizeof(word) <= bytes; at += sizeof(word)) {
        memcpy(&word, (const char *)words + at, sizeof(word));
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 32;
    }
    return sum;
}

void ms_token_encode(const struct ms_token *token, unsigned char bytes[MS_TOKEN_BYTES])
{
    struct wire wire = {.token = *token};

    memcpy(wire.mark, mark, sizeof(mark));
    wire.check = ms_token_check(&wire, offsetof(struct wire, check));
    memcpy(bytes, &wire, sizeof(wire));
}

bool ms_token_is(const unsigned char bytes[MS_TOKEN_BYTES])
{
    return memcmp(bytes, mark, sizeof(mark)) == 0;
}

bool ms_token_decode(const unsigned char bytes[MS_TOKEN_BYTES], struct ms_token *token_p)
{
    struct wire wire;

    memcpy(&wire, bytes, sizeof(wire));
    if (!ms_token_is(bytes) || wire.check != ms_token_check(&wire, offsetof(struct wire, check)) ||
        wire.token.pid <= 0)
        return false;
    *token_p = wire.token;
    return true;
}
