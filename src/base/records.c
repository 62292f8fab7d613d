/* records.c - see records.h. */
#include "base/records.h"

#include <string.h>

#include "base/arena.h"

void ms_records_drop(struct ms_records *records, void *record)
{
    memcpy((char *)record + records->link, &records->spare, sizeof(records->spare));
    records->spare = record;
}

void *ms_records_take(struct ms_records *records)
{
    char *fresh = records->spare ? NULL : ms_arena_alloc((size_t)records->batch * records->bytes);
    for (uint32_t i = 0; fresh && i < records->batch; i++)
        ms_records_drop(records, fresh + (size_t)i * records->bytes);
    void *record = records->spare;
    if (record)
        memcpy(&records->spare, (char *)record + records->link, sizeof(records->spare));
    return record;
}
