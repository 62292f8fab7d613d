/* recover.h - the record of another process, read from its ledger.
 *
 * Floor 2, command line only. After it the functions that report a record (snapshot.h, process.h and the
 * rest) speak of that process. One at a time. */
#ifndef MS_RECORD_READER_RECOVER_H
#define MS_RECORD_READER_RECOVER_H

#include "record/file/process.h"

/** Reads a ledger and makes it whole: what is live is computed anew from the blocks, what was being written
 * is left out, what cannot be true is cut down to what can. `live`: its process may still write.
 *
 * Returns 0, or -1 with one line in `error` that completes "PATH ". Trusts nothing in the file. */
int ms_ledger_load(int fd, bool live, char *error, size_t error_bytes);

/** recover_pools.c: the pool's part of it. */
void ms_recover_pools(void);

/** The answer to whether the process that a loaded record is about exists and still has the file mapped. */
enum ms_alive { MS_ALIVE_NO, MS_ALIVE_YES, MS_ALIVE_UNKNOWN };
enum ms_alive ms_ledger_alive(int fd, const char *path);

#endif
