/*
 * A weak body for every exported function. The rooms that simulate a function define it strongly; what is
 * left answers "feature not supported" and is counted. The prototypes are not seen here: a body that reads no
 * argument serves all.
 */
#include "sim/cuda/front.h"

#define FEATURE_NOT_SUPPORT 207000

enum stub_fn {
#define X(name) STUB_FN_##name,
#include "sim/acl/exports.def"
#undef X
};

#define X(name)                                                                                              \
    int name(void);                                                                                          \
    __attribute__((weak, visibility("default"))) int name(void)                                              \
    {                                                                                                        \
        int status = sim_front_enter(STUB_FN_##name);                                                        \
                                                                                                             \
        if (!status)                                                                                         \
            sim_front_unsupported(STUB_FN_##name);                                                           \
        return status ? status : FEATURE_NOT_SUPPORT;                                                        \
    }
#include "sim/acl/exports.def"
