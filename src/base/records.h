/* records.h - records of one type that are used again: those that nobody has, and more from the arena.
 *
 * Floor 0, under its owner's lock. A record that is dropped keeps its type and what it held, but for the
 * link, and is handed out again; none is ever given to the system. */
#ifndef MS_BASE_RECORDS_H
#define MS_BASE_RECORDS_H

#include <stddef.h>
#include <stdint.h>

struct ms_records {
    void *spare;                 /* the one that was dropped last; `link` leads to the next */
    uint32_t bytes, link, batch; /* of a record; where in it the link lies; as many come at once */
};
#define MS_RECORDS(type, link, batch)                                                                        \
    {                                                                                                        \
        NULL, sizeof(type), offsetof(type, link), (batch)                                                    \
    }

/** A fresh one is zeroed, but for the link. NULL without memory. */
void *ms_records_take(struct ms_records *records);
void ms_records_drop(struct ms_records *records, void *record);

#endif
