/*
 * The memory that a process shares, as others see it: a table in a file of its own, which they reach through
 * /proc and only read. share.c has the table and physical handles, ipc.c memory by key.
 */
#ifndef MEMSIM_ACL_SHARE_H
#define MEMSIM_ACL_SHARE_H

#include "sim/acl/acl.h"

#define ACL_SHARE_PIDS 32

enum acl_share_kind { ACL_SHARE_PHYSICAL = 1, ACL_SHARE_KEY };

struct acl_share_row {
    _Atomic uint32_t serial; /* written last; 0: nobody's */
    uint32_t kind;
    uint32_t anybody; /* no process needs to be on the list */
    uint32_t pid_count;
    int32_t pids[ACL_SHARE_PIDS];
    union {
        struct {
            int32_t fd;
            uint64_t inode, bytes;
            aclrtPhysicalMemProp prop;
        } physical;
        CUipcMemHandle memory;
    };
};

/** Enters what is shared; returns the number by which others find it, or 0. */
uint64_t acl_share_enter(const struct acl_share_row *row);
/** Lets processes open what this one shares as a number. */
aclError acl_share_permit(uint64_t shared, enum acl_share_kind kind, const int32_t *pids, size_t count);
/** Looks up what another process shares, if this one may open it. */
aclError acl_share_find(uint64_t shared, enum acl_share_kind kind, struct acl_share_row *row);
/** Who shares it. */
int acl_share_owner(uint64_t shared);

#endif
