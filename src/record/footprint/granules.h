/* granules.h - what a driver adds to blocks that it was asked for: it gives a device's memory in granules,
 * and one in which a block lies is in use whole. The addresses that it gave tell in which each lies.
 *
 * Floor 2. Told of every block that is followed, under its stripe. One short lock (MS_RANK_TIMELINE); what it
 * remembers lies in the arena, for as many granules as were ever in use at once. */
#ifndef MS_RECORD_FOOTPRINT_GRANULES_H
#define MS_RECORD_FOOTPRINT_GRANULES_H

#include "base/compiler.h"
#include "record/live/ledger.h"

/** A block at an address that its driver gave, not in the order of a stream: it came, or it went. */
void ms_granules_in(int device, uint64_t address, uint64_t bytes);
void ms_granules_out(int device, uint64_t address, uint64_t bytes);
/** An array, whose address nobody tells: a small one is taken to lie where other small blocks have room, as
 * they share granules; a large one has granules of its own. */
void ms_granules_array(int device, uint64_t bytes, int more);
/** The bytes that granules in which such blocks lie have beyond the blocks. */
uint64_t ms_granules_beyond(int device);

#endif
