/* objects.h - the loaded objects (executables and libraries) of this process.
 *
 * Floor 0. The list is our own snapshot, taken through dl_iterate_phdr, so that a stack's addresses can still be named after their
 * module was unloaded. A module that is gone keeps its row; another one at the same address gets a new row with the next generation. */
#ifndef MS_BASE_OBJECTS_H
#define MS_BASE_OBJECTS_H

#include <stdint.h>

struct ms_object {
    uint64_t start, end; /* the addresses its segments span */
    uint64_t bias;       /* load address: rel_pc = address - bias */
    uint32_t generation; /* counts the objects seen at these addresses before it */
    uint8_t build_id[20];
    uint8_t build_id_bytes;
    char path[256]; /* "" could not be had; the executable's path is resolved */
};

/** Bring the list up to date; cheap when nothing was loaded or unloaded since. Called before a new stack is interned and by the report. */
void ms_objects_refresh(void);

/** Row that held `address` when last refreshed, newest generation first; NULL if none. Index in *index_p. */
const struct ms_object *ms_object_at(uint64_t address, uint32_t *index_p);

const struct ms_object *ms_object(uint32_t index);
uint32_t ms_object_count(void);
void ms_objects_reset(void);

#endif
