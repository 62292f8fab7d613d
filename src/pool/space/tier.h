/* tier.h - how a block's bytes are had: cut out of a span, or an extent, or by themselves.
 *
 * Floor 2; for hooks as well, by pool.h. */
#ifndef MS_POOL_SPACE_TIER_H
#define MS_POOL_SPACE_TIER_H

/** How a segment is used, and what its memory is made of. */
enum ms_pool_tier { MS_TIER_SLAB, MS_TIER_EXTENT, MS_TIER_DEDICATED, MS_TIER_COUNT };

#endif
