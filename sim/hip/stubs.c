/*
 * A weak body for every exported function. What another file has is linked from there; what is left answers
 * "not supported" and is counted. Knows no prototypes, on purpose: a body that reads no argument serves
 * all. */
enum {
#define X(name) STUB_FN_##name,
#include "sim/hip/version.def"
#undef X
};

int sim_front_enter(unsigned fn);
void sim_front_unsupported(unsigned fn);
int hip_leave(int status);

#define X(name)                                                                                              \
    int name(void);                                                                                          \
    __attribute__((weak, visibility("default"))) int name(void)                                              \
    {                                                                                                        \
        int status = sim_front_enter(STUB_FN_##name);                                                        \
                                                                                                             \
        if (status)                                                                                          \
            return hip_leave(status);                                                                        \
        sim_front_unsupported(STUB_FN_##name);                                                               \
        return hip_leave(801);                                                                               \
    }
#include "sim/hip/version.def"
