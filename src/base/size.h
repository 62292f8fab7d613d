/* size.h - sizes as people write them.
 *
 * Floor 0. Pure. */
#ifndef MS_BASE_SIZE_H
#define MS_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The sizes that are allowed, in words that complete "... is not ". */
#define MS_SIZE_ALLOWED "a size: a number such as 512, 1.5G, 1GB or 1GiB, all units powers of 1024"

/** Reads a size: digits, a fraction if a unit follows, and K, M, G or T, alone or with B or iB, in any case.
 * All units are powers of 1024; what a fraction has beyond whole bytes is cut off. Moves *text_p past it;
 * false if there is none or it has more than 64 bits. */
bool ms_size_read(const char **text_p, uint64_t *bytes_p);

/** True if it is a bare number of bytes, more than 0 and less than 1M: a unit is likely missing. */
bool ms_size_lacks_unit(const char *text);

/** So much holds every size as ms_size_write() spells it. */
enum { MS_SIZE_BYTES = 32 };

/** For people: "0 B", "1023 B", "1.5 KiB", "12.00 GiB": powers of 1024, one decimal, two from a
 * gibibyte on (one of 1000 and more). */
void ms_size_write(uint64_t size, char *text, size_t bytes);

#endif
