/*
 * Physical handles and memory by key between two processes: who may open what, how often, and what is seen
 * through it. The other process is this program again, started before the interface is used (a child made by
 * fork may not use it).
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/acl/acl_test.h"

enum order {
    ORDER_PID,
    ORDER_IMPORT,
    ORDER_IMPORT_V2,
    ORDER_KEY,
    ORDER_READ,
    ORDER_WRITE,
    ORDER_CLOSE,
    ORDER_CLOSE_KEY,
    ORDER_END
};

struct message {
    enum order order;
    aclrtMemSharedHandleType type;
    aclrtMemFabricHandle handle; /* V1's number in its first bytes */
    char key[80];
    size_t bytes;
    char text[32];
};

struct answer {
    aclError status;
    int32_t pid;
    char text[32];
};

/* --- the other process ---------------------------------------------------------------------------------- */

static char *seen;
static aclrtDrvMemHandle imported;

static aclError map_imported(size_t bytes)
{
    must(aclrtReserveMemAddress((void **)&seen, bytes, 0, NULL, 1));
    return aclrtMapMem(seen, bytes, 0, imported, 0);
}

static aclError obey(struct message *m, struct answer *a)
{
    uint64_t number;
    aclError status;

    memcpy(&number, &m->handle, sizeof number);
    switch (m->order) {
    case ORDER_PID:
        return aclrtDeviceGetBareTgid(&a->pid);
    case ORDER_IMPORT:
        status = aclrtMemImportFromShareableHandle(number, 0, &imported);
        return status ? status : map_imported(m->bytes);
    case ORDER_IMPORT_V2:
        status = aclrtMemImportFromShareableHandleV2(&m->handle, m->type, 0, &imported);
        return status ? status : map_imported(m->bytes);
    case ORDER_KEY:
        return aclrtIpcMemImportByKey((void **)&seen, m->key, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS);
    case ORDER_READ:
        return aclrtMemcpy(a->text, sizeof a->text, seen, sizeof a->text, ACL_MEMCPY_DEVICE_TO_HOST);
    case ORDER_WRITE:
        return aclrtMemcpy(seen, sizeof m->text, m->text, sizeof m->text, ACL_MEMCPY_HOST_TO_DEVICE);
    case ORDER_CLOSE:
        must(aclrtUnmapMem(seen));
        must(aclrtReleaseMemAddress(seen));
        return aclrtFreePhysical(imported);
    default:
        return aclrtIpcMemClose(m->key);
    }
}

static int serve(int fd)
{
    struct message m;

    begin();
    while (read(fd, &m, sizeof m) == (ssize_t)sizeof m && m.order != ORDER_END) {
        struct answer a = {0};
        a.status = obey(&m, &a);
        if (write(fd, &a, sizeof a) != (ssize_t)sizeof a)
            return 1;
    }
    return 0;
}

/* --- this one ------------------------------------------------------------------------------------------- */

static int peer;

static struct answer ask(struct message m)
{
    struct answer a = {.status = -1};

    if (write(peer, &m, sizeof m) != (ssize_t)sizeof m || read(peer, &a, sizeof a) != (ssize_t)sizeof a)
        bail("the other process is gone");
    return a;
}

#define tells(message, wanted)                                                                               \
    is_int(ask(message).status, (wanted), "the other process: %s answers " #wanted, #message)

static aclrtDrvMemHandle make(char **va_p, size_t bytes, const char *text)
{
    aclrtPhysicalMemProp prop = physical_of(0);
    aclrtDrvMemHandle handle;

    must(aclrtMallocPhysical(&handle, bytes, &prop, 0));
    must(aclrtReserveMemAddress((void **)va_p, bytes, 0, NULL, 1));
    must(aclrtMapMem(*va_p, bytes, 0, handle, 0));
    must(aclrtMemcpy(*va_p, 32, text, strlen(text) + 1, ACL_MEMCPY_HOST_TO_DEVICE));
    return handle;
}

static void give_back(aclrtDrvMemHandle handle, char *va)
{
    must(aclrtUnmapMem(va));
    must(aclrtReleaseMemAddress(va));
    must(aclrtFreePhysical(handle));
}

static bool reads(const char *va, const char *wanted)
{
    char text[32] = "";

    must(aclrtMemcpy(text, sizeof text, va, sizeof text, ACL_MEMCPY_DEVICE_TO_HOST));
    return !strcmp(text, wanted);
}

static void first_version(int32_t other)
{
    struct message import = {.order = ORDER_IMPORT, .bytes = 4 * MIB}, look = {.order = ORDER_READ},
                   end = {.order = ORDER_CLOSE};
    struct message put = {.order = ORDER_WRITE, .text = "from the other side"};
    uint64_t shared = 0, again = 0;
    int32_t stranger = 1;
    char *va;

    aclrtDrvMemHandle handle = make(&va, 4 * MIB, "through a handle");
    answers(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_POSIX, 0, &shared),
            ACL_ERROR_INVALID_PARAM);
    answers(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 2, &shared),
            ACL_ERROR_INVALID_PARAM);
    answers(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 0, &shared), ACL_SUCCESS);
    answers(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 0, &again),
            ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    memcpy(&import.handle, &shared, sizeof shared);
    tells(import, ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    answers(aclrtMemSetPidToShareableHandle(shared, &stranger, 1), ACL_SUCCESS);
    tells(import, ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    answers(aclrtMemSetPidToShareableHandle(shared, &other, 0), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMemSetPidToShareableHandle(shared, &other, 1), ACL_SUCCESS);
    tells(import, ACL_SUCCESS);
    ok(!strcmp(ask(look).text, "through a handle"), "the other process reads what this one wrote");
    tells(put, ACL_SUCCESS);
    ok(reads(va, "from the other side"), "and this one what that wrote");
    give_back(handle, va);
    ok(!strcmp(ask(look).text, "from the other side"),
       "what the exporter gave back lives on for the importer");
    tells(end, ACL_SUCCESS);
    tells(import, ACL_ERROR_RT_DRV_INTERNAL_ERROR);

    handle = make(&va, 2 * MIB, "to everybody");
    answers(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE,
                                            ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, &shared),
            ACL_SUCCESS);
    memcpy(&import.handle, &shared, sizeof shared);
    import.bytes = 2 * MIB;
    tells(import, ACL_SUCCESS);
    ok(!strcmp(ask(look).text, "to everybody"), "without validation nobody is asked");
    tells(end, ACL_SUCCESS);
    give_back(handle, va);
}

static void second_version(int32_t other)
{
    static const aclrtMemSharedHandleType types[] = {ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT,
                                                     ACL_MEM_SHARE_HANDLE_TYPE_FABRIC};
    struct message look = {.order = ORDER_READ}, end = {.order = ORDER_CLOSE};
    char *va;

    for (int i = 0; i < 2; i++) {
        struct message import = {.order = ORDER_IMPORT_V2, .type = types[i], .bytes = 2 * MIB};
        aclrtDrvMemHandle handle = make(&va, 2 * MIB, i ? "fabric" : "default"), back = NULL;
        must(aclrtMemRetainAllocationHandle(va, &back));
        answers(aclrtMemExportToShareableHandleV2(back, 0, (aclrtMemSharedHandleType)7, &import.handle),
                ACL_ERROR_INVALID_PARAM);
        answers(aclrtMemExportToShareableHandleV2(back, 0, types[i], &import.handle), ACL_SUCCESS);
        must(aclrtFreePhysical(back));
        tells(import, ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        answers(aclrtMemSetPidToShareableHandleV2(&import.handle, types[i], &other, 1), ACL_SUCCESS);
        tells(import, ACL_SUCCESS);
        ok(!strcmp(ask(look).text, i ? "fabric" : "default"), "the other process reads what this one wrote");
        tells(end, ACL_SUCCESS);
        give_back(handle, va);
    }
}

static void by_key(int32_t other)
{
    struct message open = {.order = ORDER_KEY}, look = {.order = ORDER_READ},
                   end = {.order = ORDER_CLOSE_KEY};
    char *p, *q, key[65];

    must(aclrtMalloc((void **)&p, 2 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    must(aclrtMemcpy(p, 32, "by its key", 11, ACL_MEMCPY_HOST_TO_DEVICE));
    answers(aclrtIpcMemGetExportKey(p, 2 * MIB, key, 10, 0), ACL_ERROR_INVALID_PARAM);
    answers(aclrtIpcMemGetExportKey(p + 64, 64, key, sizeof key, 0), ACL_ERROR_RT_IPC_ERROR);
    answers(aclrtIpcMemGetExportKey(p, 2 * MIB, key, sizeof key, 0), ACL_SUCCESS);
    strcpy(open.key, key);
    strcpy(end.key, key);
    tells(open, ACL_ERROR_RT_IPC_ERROR);
    answers(aclrtIpcMemSetImportPid(key, &other, 1), ACL_SUCCESS);
    tells(open, ACL_SUCCESS);
    ok(!strcmp(ask(look).text, "by its key"), "the other process reads what this one wrote");
    tells(end, ACL_SUCCESS);
    tells(end, ACL_ERROR_RT_IPC_ERROR);
    answers(aclrtIpcMemImportByKey((void **)&q, "no key at all", 0), ACL_ERROR_RT_IPC_ERROR);
    answers(aclrtIpcMemClose(key), ACL_SUCCESS);
    tells(open, ACL_ERROR_RT_IPC_ERROR);
    must(aclrtFree(p));
}

int main(int argc, char **argv)
{
    int pair[2], status = -1;
    char number[16];

    if (argc > 1)
        return serve(atoi(argv[1]));
    plan(0);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        bail("socketpair");
    snprintf(number, sizeof number, "%d", pair[1]);
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        close(pair[0]);
        execl(argv[0], argv[0], number, (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    peer = pair[0];
    begin();
    struct answer who = ask((struct message){.order = ORDER_PID});
    is_int(who.pid, child, "a process tells its number");
    first_version(who.pid);
    second_version(who.pid);
    by_key(who.pid);
    if (write(peer, &(struct message){.order = ORDER_END}, sizeof(struct message)) < 0)
        bail("write");
    waitpid(child, &status, 0);
    is_int(status, 0, "the other process ends well");
    is_u64(taken(), 0, "nothing is left");
    return done();
}
