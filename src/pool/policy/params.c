/* params.c - the pool's tuned numbers as variables, where `scripts/bench tune` looks what each is worth.
 * Empty in every other build. */
#include "pool/policy/params.h"

#ifdef MS_TUNING
#include <stdlib.h>

#define MS_BYTES(name, value, reason) uint64_t name = (value);
#define MS_TIME(name, value, reason)  uint64_t name = (value);
#define MS_RATIO(name, value, reason) int name = (value);
#include "pool/policy/params.def"
#undef MS_BYTES
#undef MS_TIME
#undef MS_RATIO

static __attribute__((constructor)) void read_environment(void)
{
    const char *value;
#define MS_BYTES(name, standing, reason)                                                                     \
    if ((value = getenv("MS_TUNE_" #name)) != NULL)                                                          \
        name = strtoull(value, NULL, 0);
#define MS_TIME MS_BYTES
#define MS_RATIO(name, standing, reason)                                                                     \
    if ((value = getenv("MS_TUNE_" #name)) != NULL)                                                          \
        name = atoi(value);
#include "pool/policy/params.def"
}
#else
extern const int ms_params_stand;
#endif
