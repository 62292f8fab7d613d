/* ipc_exports.h - packed blocks that this process lets others open, and those of others.
 *
 * Floor 2. The exporter keeps one row of its ledger (table EXPORTS) for each such block: where it lies in its
 * segment, and the vendor's handle of that segment. The importer reads the row from the exporter's file,
 * which belongs to the same user and to nobody else: so whoever cannot read that user's files learns nothing,
 * and what was freed is gone the moment its row is.
 *
 * Locks: MS_RANK_EXPORT around the table's free rows; none while reading another's. No malloc, no vendor
 * call; errno is kept. */
#ifndef MS_RECORD_IPC_IPC_EXPORTS_H
#define MS_RECORD_IPC_IPC_EXPORTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/store/store.h"
#include "record/file/process.h"
#include "record/ipc/token.h"

#define MS_VENDOR_HANDLE_BYTES 64

/** A block in its segment. */
struct ms_ipc_export {
    uint64_t address;       /* in the exporter */
    uint64_t offset, bytes; /* in the segment */
    uint64_t segment_bytes;
    uint64_t context;                             /* of the exporter; its end ends the export */
    int32_t device, unused;                       /* ordinal, in the exporter */
    unsigned char handle[MS_VENDOR_HANDLE_BYTES]; /* of the segment, as the vendor gave it */
};

/** A row of the ledger. Whole while `state` says so, which is written last, and while `check` holds. */
struct ms_ipc_export_row {
    _Atomic uint32_t state; /* enum ms_ipc_export_state; the rest counts the uses */
    uint32_t next;          /* of a free row: the next one, + 1 */
    uint64_t nonce[2];
    struct ms_ipc_export block;
    uint64_t check; /* over nonce and block */
    uint64_t unused[14];
};
_Static_assert(sizeof(struct ms_ipc_export_row) == MS_TABLE_EXPORTS_ROW_BYTES, "a row of the ledger");
enum ms_ipc_export_state {
    MS_IPC_EXPORT_FREE,
    MS_IPC_EXPORT_CHANGING,
    MS_IPC_EXPORT_LIVE,
    MS_IPC_EXPORT_STATES = 4
};

/** Lets others open `block`. False, with the reason in *why_p, where no other process could read the row:
 * then nothing was exported. */
bool ms_ipc_export_publish(const struct ms_ipc_export *block, unsigned char token_p[MS_TOKEN_BYTES],
                           uint32_t *row_p, const char **why_p);
/** The token of a row that was published, again. */
void ms_ipc_export_token(uint32_t row, unsigned char token_p[MS_TOKEN_BYTES]);
/** The block is freed, or its context has died: its tokens are void from here on. */
void ms_ipc_export_revoke(uint32_t row);

/** Finds the block that another process's token stands for. False, with one line in `why`, if it stands for
 * nothing: changed on its way, freed, its process has ended or cannot be looked into from here. Reads files;
 * waits for nobody. */
bool ms_ipc_export_resolve(const unsigned char token[MS_TOKEN_BYTES], struct ms_ipc_export *block_p,
                           char *why, size_t why_bytes);

/** For ms_ipc_export_resolve and for tests: the block behind `token` in this ledger file, of which `fd` is a
 * descriptor for reading. */
bool ms_ipc_export_read(int fd, const struct ms_token *token, struct ms_ipc_export *block_p,
                        const char **why_p);

/** The process whose ledger this file is; false if it is none of this version's, or not whole. */
bool ms_ledger_file_process(int fd, struct ms_process *process_p);

#endif
