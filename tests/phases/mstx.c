/* mstx.c - a stand-in for libms_tools_ext.so: the header's functions, exported. */
#define MSTX __attribute__((visibility("default")))
#include <stdint.h>

void mstxMarkA(const char *message, void *stream);
uint64_t mstxRangeStartA(const char *message, void *stream);
void mstxRangeEnd(uint64_t id);
void mstxGetToolId(uint64_t *id);
void *mstxDomainCreateA(const char *name);
void mstxDomainDestroy(void *domain);
void mstxDomainMarkA(void *domain, const char *message, void *stream);
uint64_t mstxDomainRangeStartA(void *domain, const char *message, void *stream);
void mstxDomainRangeEnd(void *domain, uint64_t id);

#include "tests/phases/mstx_object.h"
