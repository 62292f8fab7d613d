/* journal.h - the file of the record: where it lies, when it is made and when it goes.
 *
 * Floor 2. Its format is that of base/store/store.h and of the rows in internal.h;
 * docs/internals/ledger-format.md. */
#ifndef MS_RECORD_FILE_JOURNAL_H
#define MS_RECORD_FILE_JOURNAL_H

#include "record/file/process.h"

enum { MS_JOURNAL_NAMES = 16, MS_JOURNAL_NAME_BYTES = 96 };
/** The name, without its directory, of a process's ledger: the `number`-th, from 1 on, for it is replaced by
 * exec. */
void ms_journal_name(char *name, size_t bytes, int pid, uint64_t start_ticks, int number);
/** The i-th directory in which a ledger may lie, in the order in which they are tried; NULL past the last.
 * `text` may be used to spell it. */
const char *ms_journal_directory(unsigned i, char *text, size_t bytes);

/** The file's absolute name, "" while there is none. */
const char *ms_journal_path(void);

/** The end has come, says the process itself: an entry point such as _exit. `code` is the exit code or the
 * signal's number, -1 for not known. Safe in a signal handler and in a
 * child of vfork, which is not the process that the record is about and writes nothing: stores, no more. */
void ms_journal_end(enum ms_end_reason reason, int code);
/** It had not: an exec that failed. */
void ms_journal_end_taken_back(void);

/** The report is whole: the file is removed; the record goes on in its memory. */
void ms_journal_remove(void);

/** The name of a file system of this type (statfs) if it lies on other machines, or may; NULL if it is local.
 * A mapped file there may fail in ways that kill the host. */
const char *ms_journal_network_name(unsigned long type);

#endif
