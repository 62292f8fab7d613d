/* tables.h - records of fixed kinds, and arrays, for the pool's own books.
 *
 * Floor 2, for src/pool/ alone. Kept for ever: zeroed when new, as they were left when recycled. Each kind of
 * record and of array is recycled as that kind alone, so that who reads one without a lock finds what it
 * looks for, of whomever, and finds out afterwards. */
#ifndef MS_POOL_SPACE_TABLES_H
#define MS_POOL_SPACE_TABLES_H

#include <stdint.h>

struct ms_extent;
struct ms_segment;

enum ms_array_kind {
    MS_ARRAY_SLOTS, /* slots of a span: left as they were, so that each still leads to an extent */
    MS_ARRAY_UNITS, /* of a chunk, and the bits before them (units.h): given back with nothing in them */
    MS_ARRAY_OWN,   /* read under its owner's lock alone */
    MS_ARRAY_KINDS
};
struct ms_extent *ms_table_run(void);
void ms_table_drop_run(struct ms_extent *extent);
struct ms_segment *ms_table_segment(void);
void ms_table_drop_segment(struct ms_segment *segment);
/** An array of at least `bytes`, zeroed but for slots and units; `order_p` goes back with it. */
void *ms_table_array(enum ms_array_kind kind, uint64_t bytes, uint32_t *order_p);
void ms_table_drop_array(enum ms_array_kind kind, void *array, uint32_t order);
uint64_t ms_table_serials(uint64_t count);

#endif
