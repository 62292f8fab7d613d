/* token.h - the 64 bytes that stand for a packed block on their way to another process.
 *
 * Floor 2. A token has the size of the vendor's handle and travels in its place. It holds no address and no
 * size: it names a row of the exporter's ledger (ipc_exports.h), which does, and a nonce that must be that
 * row's. No vendor takes it for a handle of its own: it begins with a mark and holds nothing that such a
 * handle holds, so an importer without memshim gets an error. No locks, no allocation. */
#ifndef MS_RECORD_IPC_TOKEN_H
#define MS_RECORD_IPC_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MS_TOKEN_BYTES 64

struct ms_token {
    int32_t pid;
    uint32_t row;
    /* as in the ledger's struct ms_process: with the pid they name a process */
    uint64_t start_ticks, pid_space;
    uint64_t nonce[2]; /* new with every export */
    uint32_t user;     /* the exporter's effective user */
    uint32_t version;  /* of the ledger's format */
};

void ms_token_encode(const struct ms_token *token, unsigned char bytes[MS_TOKEN_BYTES]);
/** True if these bytes begin as a token does. */
bool ms_token_is(const unsigned char bytes[MS_TOKEN_BYTES]);
/** False if they are no token, or one that was changed on its way. */
bool ms_token_decode(const unsigned char bytes[MS_TOKEN_BYTES], struct ms_token *token_p);

/** A check over whole words: a change within one word never goes unnoticed, any other with a chance of
 * 2^-64. */
uint64_t ms_token_check(const void *words, size_t bytes);

#endif
