/* params.h - the pool's tuned numbers, from params.def. Floor 2, for src/pool/ alone.
 *
 * Constants; with MS_TUNING, variables that the environment may set (MS_TUNE_ and the name without MS_), for
 * `scripts/bench tune`. No build that is shipped has that. */
#ifndef MS_POOL_PARAMS_H
#define MS_POOL_PARAMS_H

#include <stdint.h>

#define MS_KIB    ((uint64_t)1 << 10)
#define MS_MIB    ((uint64_t)1 << 20)
#define MS_SECOND ((uint64_t)1000000000) /* in nanoseconds */

#ifdef MS_TUNING
#define MS_BYTES(name, value, reason) extern uint64_t name;
#define MS_TIME(name, value, reason)  extern uint64_t name;
#define MS_RATIO(name, value, reason) extern int name;
#include "pool/policy/params.def"
#else
#define MS_BYTES(name, value, reason) static const uint64_t name = (value);
#define MS_TIME(name, value, reason)  static const uint64_t name = (value);
#define MS_RATIO(name, value, reason) enum { name = (value) };
#include "pool/policy/params.def"
#endif
#undef MS_BYTES
#undef MS_TIME
#undef MS_RATIO

#endif
