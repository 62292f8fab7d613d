/* store.h - the tables of the record: one reserved range of addresses, and the file behind it.
 *
 * Floor 0. A table is an array of fixed rows at a fixed place of the range; it only grows, so a row never
 * moves and a reader needs no lock. Rows come zeroed. Memory is taken in extents: anonymous ones until a file
 * is attached, then stretches of that file, which were allocated on its disk before they are mapped (writing
 * to a hole of a full disk would be a SIGBUS in the host). Others keep half of a small file system. Where the
 * file cannot grow the table goes on in anonymous memory: the report at exit is whole, the file is not, and
 * says so.
 *
 * Locks: MS_RANK_STORE, the innermost of all. Never malloc. */
#ifndef MS_BASE_STORE_STORE_H
#define MS_BASE_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define MS_STORE_MAGIC        "MSLEDGER"
#define MS_STORE_VERSION      26
#define MS_STORE_BYTE_ORDER   0x01020304u
#define MS_STORE_HEADER_BYTES 65536
#define MS_STORE_EXTENTS_MAX  1536

enum ms_table {
#define MS_TABLE(id, name, row_bytes, rows) MS_TABLE_##id,
#include "base/store/tables.def"
#undef MS_TABLE
    MS_TABLE_COUNT
};

/** One table, as the file describes it. */
struct ms_store_table {
    char name[16];
    uint64_t row_bytes, capacity;
    _Atomic uint64_t rows;            /* those that are whole; for slots, those given out */
    _Atomic uint64_t committed_bytes; /* backed by memory, in the file or not */
    _Atomic uint64_t dropped;         /* what found no room */
};

/** `bytes` of a table, from `table_offset` on, lie at `file_offset`. */
struct ms_store_extent {
    uint32_t table, unused;
    uint64_t table_offset, file_offset, bytes;
};

/** The beginning of the file, and of the range. */
struct ms_store_header {
    char magic[8];
    uint32_t version, byte_order;
    uint32_t header_bytes, table_count;
    uint32_t extent_max;
    _Atomic uint32_t extent_count; /* written after the extent */
    uint64_t file_bytes;
    _Atomic uint64_t memory_only_bytes; /* of tables, that found no room in the file */
    struct ms_store_table tables[MS_TABLE_COUNT];
    struct ms_store_extent extents[MS_STORE_EXTENTS_MAX];
};
_Static_assert(sizeof(struct ms_store_header) <= MS_STORE_HEADER_BYTES, "the header has its place");

#define MS_STORE_ROUND(bytes) (((bytes) + 65535) / 65536 * 65536)
/** The places of the tables in the range; never instantiated. */
struct ms_store_layout {
    char HEADER[MS_STORE_HEADER_BYTES];
#define MS_TABLE(id, name, row_bytes, rows) char id[MS_STORE_ROUND((size_t)(row_bytes) * (rows))];
#include "base/store/tables.def"
#undef MS_TABLE
};
enum {
#define MS_TABLE(id, name, row_bytes, rows)                                                                  \
    MS_TABLE_##id##_ROW_BYTES = (row_bytes), MS_TABLE_##id##_ROWS = (rows),
#include "base/store/tables.def"
#undef MS_TABLE
};

/** NULL until the first table grows; then the same until ms_store_reset(). */
extern MS_HIDDEN char *_Atomic ms_store_base;

/** The first row of a table. Only rows that were reserved may be touched. */
#define MS_ROWS(id, type)                                                                                    \
    ((type *)(void *)(atomic_load_explicit(&ms_store_base, memory_order_relaxed) +                           \
                      offsetof(struct ms_store_layout, id)))

/** Makes the first `rows` rows of a table exist. False when the table is full or there is no memory: callers
 * count what they drop. errno is preserved. */
bool ms_table_reserve(enum ms_table table, uint64_t rows);
/** Rows that were reserved, at least as many as asked for. */
uint64_t ms_table_reserved(enum ms_table table);
/** The first `rows` rows are whole, for readers of this process and of the file. */
void ms_table_publish(enum ms_table table, uint64_t rows);
/** As ms_table_publish, where others may publish as well: false if somebody did, and then *was_p says what
 * there is. */
bool ms_table_publish_more(enum ms_table table, uint64_t *was_p, uint64_t rows);
extern MS_HIDDEN struct ms_table_state {
    _Atomic uint64_t rows, committed, dropped;
} ms_table_states[MS_TABLE_COUNT];
static inline uint64_t ms_table_rows(enum ms_table table)
{
    return atomic_load_explicit(&ms_table_states[table].rows, memory_order_acquire);
}
/** Gives out `count` more rows, for tables whose rows say themselves whether they are whole. False as for
 * ms_table_reserve. */
bool ms_table_take(enum ms_table table, uint64_t count, uint64_t *first_p);
/** True if this row lies in the file, where other processes can read it. */
bool ms_table_in_file(enum ms_table table, uint64_t row);
/** Something found no room in this table. */
void ms_table_drop(enum ms_table table);
uint64_t ms_table_dropped(enum ms_table table);

/** Between these, rows that may be written before a file is attached: attaching copies them. Nests in nothing
 * and nothing is reserved inside. */
void ms_store_hold(void);
void ms_store_release(void);

/** From now on the tables are in this file, of which `path` must be the absolute name; the descriptor stays
 * the caller's and may be closed. Returns 0, or an errno if the file could not take what there is (then
 * nothing has changed). */
int ms_store_attach(int fd, const char *path);

/** Bytes of memory taken for tables. */
uint64_t ms_store_bytes(void);
/** Bytes of tables that are in memory only although there is a file. */
uint64_t ms_store_memory_only(void);
/** Why the file could not grow, the first time: an errno; 0 if it always could. */
extern _Atomic int ms_store_error;

/** In a fork child, or before another ledger is read: gives the range back and forgets everything. The file
 * is left alone. */
void ms_store_reset(void);

/** Reads a file in place of recording: the tables become a private copy of what it holds. `live` says that
 * its process may still be writing: then rows of BLOCKS that changed meanwhile are cleared. Returns 0, or -1
 * with one line in `error`. Nothing in the rows has been checked. */
int ms_store_load(int fd, bool live, char *error, size_t error_bytes);

/** For store_load.c: reserves the range and makes an empty header; the first `bytes` of a table. */
int ms_store_open(void);
bool ms_store_commit(enum ms_table table, uint64_t bytes);
void ms_table_set_dropped(enum ms_table table, uint64_t count);

#endif
