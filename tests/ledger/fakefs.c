/*
 * Says of every file system that it is NFS. Preloaded after memshim: what memshim asks the C library is
 * answered here.
 */
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

int fstatfs(int fd, struct statfs *system)
{
    int result = (int)syscall(SYS_fstatfs, fd, system);

    if (result == 0)
        system->f_type = 0x6969;
    return result;
}
