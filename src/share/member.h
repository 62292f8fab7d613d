/* member.h - this process's places on the pages of its devices.
 *
 * Floor 2. A page lies where ledgers do, one for each user and device (by its UUID, so that numbers of
 * devices, containers and namespaces of processes do not matter), or in the directory of a group. A place is
 * held by a lock of the kernel's on the page's file, which ends with the process however that ends. A program
 * that closes descriptors which it did not open loses it; that is noticed when more memory is taken, and a
 * place is taken anew. Whatever does not work out leaves the process as it would be alone. */
#ifndef MS_SHARE_MEMBER_H
#define MS_SHARE_MEMBER_H

#include <stddef.h>

#include "share/admission.h"

struct ms_share_wish {
    int device; /* memshim's number */
    uint8_t uuid[16];
    uint64_t total_bytes;
    uint64_t used_bytes; /* what the process has of it already */
    uint64_t free_bytes; /* as the driver says; UINT64_MAX: it was not asked */
    uint64_t guarantee_bytes, most_bytes;
    const char *directory; /* of a group; NULL: where this user's ledgers lie */
};

/** The directory of the group that MEMSHIM_SHARE_GROUP names: by its path, or by its name where root prepares
 * such directories. False without one. */
enum { MS_SHARE_GROUP_PATH = 400 };
bool ms_share_group(char *path, size_t bytes);

enum ms_share_joined { MS_SHARE_JOINED, MS_SHARE_UNGUARANTEED, MS_SHARE_ALONE };

/** Once for each device. Why it is not JOINED goes to `why`, in words. */
enum ms_share_joined ms_share_join(const struct ms_share_wish *wish, char *why, size_t why_bytes);

/** The process's place on a device's page, or NULL: it is alone there. Valid until the process ends. */
struct ms_admission *ms_share_of(int device);
/** As ms_share_of, for who is about to take memory and has `used_bytes`: a place that was lost is taken anew.
 */
struct ms_admission *ms_share_held(int device, uint64_t used_bytes);

#endif
