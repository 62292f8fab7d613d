/* name_cache.h - names of addresses that were looked up before, kept by build id.
 *
 * Floor 4, command line only. Each verb that reads a report without names looks the same addresses of the
 * same files up again. What was found is kept in $XDG_CACHE_HOME/memshim/names (~/.cache/memshim/names), a
 * file for each build id, and holds as long as the files that it was read from are as they were. Everything
 * works without it: what cannot be read, or is not this user's own, is not there. One caller at a time. */
#ifndef MS_REPORT_SYMBOLS_NAME_CACHE_H
#define MS_REPORT_SYMBOLS_NAME_CACHE_H

#include "report/symbols/resolver.h"

struct ms_name_cache;

/** Opens what is kept of a build; `state` says of which state of its files (ms_resolver_state()). NULL where
 * nothing can be kept. */
struct ms_name_cache *ms_name_cache_open(const char *build_id, const char *state);
/** The locations of `pc`, as ms_resolver_lookup() gives them, *count_p of them; their texts are kept until
 * ms_name_cache_close(). False if it was never looked up. */
bool ms_name_cache_find(const struct ms_name_cache *names, uint64_t pc, struct ms_location *locations,
                        size_t max, size_t *count_p);
/** Keeps what was found, none too. Copies it. `names` may be NULL. */
void ms_name_cache_add(struct ms_name_cache *names, uint64_t pc, const struct ms_location *locations,
                       size_t count);
/** Writes it if something was added. `names` may be NULL. */
void ms_name_cache_close(struct ms_name_cache *names);

#endif
