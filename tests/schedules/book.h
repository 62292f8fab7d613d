/* book.h - what a program told the ledger, and what the ledger may therefore say.
 *
 * Each call of the ledger's is noted here before it is made and after it has returned. In between a figure
 * may be what it was or what it will be; with no call under way it is one number. So the same questions serve
 * at the end of a schedule, beside other tasks, and of a record whose process was killed at any moment.
 *
 * Lies in the program's variables: put back with them. Under no lock, for one task runs at a time; and not
 * instrumented, for what the tasks know by it they do not know by memory. */
#ifndef MS_TESTS_SCHEDULES_BOOK_H
#define MS_TESTS_SCHEDULES_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/live/rows.h"

enum {
    BOOK_BLOCKS = 64,
    BOOK_STACKS = 64,
    BOOK_FRAMES = 8,
    BOOK_APIS = 4,
    BOOK_DEVICES = 2,
    BOOK_PLACES = 2 * BOOK_DEVICES
};

/* A block counts at the place of its device: those of the outer layer come first, then those of the inner. */
static inline unsigned book_place(int device)
{
    return (unsigned)ms_device_plain(device) + (ms_device_is_inner(device) ? BOOK_DEVICES : 0);
}
static inline unsigned book_account(unsigned place)
{
    return place < BOOK_DEVICES ? place : MS_LAYER_ACCOUNTS + place - BOOK_DEVICES;
}

/** A new ledger; with its file in FILES_DIRECTORY if `touched`. Options are NAME=value. */
void book_start(bool touched, const char *option);
/** In a task: it is the only one of a child of fork() from here on, whose ledger begins anew, beside the file
 * of its parent. As hooks/init.c starts over, as far as these rooms go. */
void book_fork(void);
/** Interns stack `i`, which differs for each, and shares its outermost frames with some. */
ms_stack_id book_stack(unsigned i);
/** Block `i` of the book comes: its bytes, kind, device and context follow from `i`, with that stack. */
void book_take(unsigned i, unsigned stack, bool served);
/** ... on another device or of another kind. */
struct ms_block *book_block(unsigned i);
void book_take_block(unsigned i, bool served);
/** It goes, and is there no more when this returns; or its free is refused. False if it was not there. */
bool book_give(unsigned i);
bool book_refuse(unsigned i);
/** An inner block comes that ends with the block in which it lies. */
void book_carve(unsigned i, unsigned stack);
/** A block goes, with those of them that are there. */
void book_give_whole(unsigned i);
/** The context with its blocks. */
void book_die(uint64_t context);
/** A call of `api`, an out-of-memory, a refused free of a block that is not there any more. */
void book_call(uint16_t api, bool succeeded, bool served, uint64_t bytes);
void book_oom(uint16_t api, unsigned stack);
void book_misfree(unsigned i, unsigned stack);
/** The driver takes memory for a context, or for a module of that handle; the module is unloaded. */
void book_taking(uint64_t context, uint64_t module, unsigned stack);
/** A segment of the pool's comes or goes; the device's figures are told. */
void book_segment(unsigned i, bool comes);
void book_pool(uint64_t reserved_bytes);
void book_flow(unsigned i, uint64_t live_bytes);
/** Block `i` may be opened by others; or not any more. */
void book_export(unsigned i);
void book_revoke(unsigned i);
void book_blind_spot(unsigned i);
void book_device(unsigned i);
/** An allocator of the program's own opens its heap `i`, and says that its segments have so many bytes. */
void book_heap(unsigned i, uint64_t bytes);
void book_diagnostic(unsigned i);
/** A code object of an interpreter's comes, in which a thread runs. */
void book_code(unsigned i);
/** The process says that it ends, which ends its exports. */
void book_end(void);

/** What is wrong with what the ledger says, in `why`; false if something is. In the process, or where it was
 * loaded from its file. */
bool book_holds(char *why, size_t why_bytes);
/** Likewise with the exports in its file, read as another process reads them. */
bool book_exports_hold(char *why, size_t why_bytes);
/** Where the ledger was loaded from its file: whether the trace, with what had not been written of it, is. */
bool book_trace_holds(char *why, size_t why_bytes);
/** Whether the file of the process that was forked is as it left it; true if none was. */
bool book_parent_is_left(void);
/** Whether anything was recorded when no call was under way: then the file says so. */
bool book_is_open(void);

#endif
