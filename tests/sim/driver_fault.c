/* The simulated driver: faults and costs that the environment asks for, and bad values in it. */
#include <sys/wait.h>

#include "driver.h"

static void faults(void)
{
    CUdeviceptr p[4];
    CUcontext own;

    answers(cuMemAlloc_v2(&p[0], 16), CUDA_SUCCESS);
    answers(cuMemAlloc_v2(&p[1], 16), CUDA_ERROR_OUT_OF_MEMORY);
    answers(cuMemAlloc_v2(&p[1], 16), CUDA_SUCCESS);
    answers(cuMemFree_v2(p[0]), CUDA_SUCCESS);
    answers(cuMemFree_v2(p[1]), CUDA_ERROR_UNKNOWN);
    answers(cuMemFree_v2(p[1]), CUDA_ERROR_UNKNOWN);
    must(cuCtxCreate_v2(&own, 0, 0));
    must(cuMemAllocAsync(&p[2], 64, NULL));
    must(cuMemsetD8_v2(p[2], 0, 64));
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    must(cuMemsetD8_v2(p[2], 0, 64));
    answers(cuCtxSynchronize(), CUDA_ERROR_ECC_UNCORRECTABLE);
    answers(cuMemAllocAsync(&p[2], 64, NULL), CUDA_ERROR_ECC_UNCORRECTABLE);
    must(cuCtxDestroy_v2(own));
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
}

static void costs(void)
{
    CUmodule module;
    CUfunction function;
    CUevent start, end;
    float ms = 0;

    must(cuModuleLoadData(&module,
                          ".version 8.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n\tret;\n}\n"));
    must(cuModuleGetFunction(&function, module, "k"));
    must(cuEventCreate(&start, 0));
    must(cuEventCreate(&end, 0));
    must(cuEventRecord(start, NULL));
    double before = now_ms();
    must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ok(now_ms() - before < 25, "a launch returns at once");
    must(cuEventRecord(end, NULL));
    must(cuEventSynchronize(end));
    must(cuEventElapsedTime(&ms, start, end));
    ok(ms >= 30 && ms < 5000, "a kernel takes its time: %.1f ms", ms);
    before = now_ms();
    must(cuCtxGetCurrent(&(CUcontext){NULL}));
    ok(now_ms() - before >= 5, "a call takes its time");
    must(cuModuleUnload(module));
}

/* Runs this program with one variable set; returns what it wrote to stderr. */
static void complaint(const char *self, const char *name, const char *value, const char *wanted)
{
    char text[1024] = "";
    int pipes[2], status = -1;

    if (pipe(pipes))
        bail("pipe: %s", strerror(errno));
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        dup2(pipes[1], 2);
        setenv(name, value, 1);
        execl(self, self, "plain", (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    for (size_t length = 0; length < sizeof text - 1;) {
        ssize_t got = read(pipes[0], text + length, sizeof text - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    close(pipes[0]);
    waitpid(child, &status, 0);
    is_int(status, 0, "%s=%s is survived", name, value);
    char *newline = strchr(text, '\n');
    if (wanted)
        ok(strstr(text, name) && strstr(text, wanted) && newline && !newline[1], "and named in one line");
    else
        ok(!*text, "and nothing is said");
}

/* What a small and a larger block take of a device whose granularity is 64 KiB; run in a process of its
 * own. */
static unsigned long reserved_kib(void)
{
    unsigned long kib = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");

    while (status && fgets(line, sizeof line, status) && sscanf(line, "VmSize: %lu", &kib) != 1)
        ;
    if (status)
        fclose(status);
    return kib;
}

/* 0 if all of the memory can be had at once, in a window that is not much wider. */
static int narrow_window(void)
{
    size_t left = 0, total = 0;
    CUdeviceptr p, all;

    begin();
    must(cuMemGetInfo_v2(&left, &total));
    unsigned long before = reserved_kib();
    must(cuMemAlloc_v2(&p, 16));
    unsigned long wide = reserved_kib() - before;
    must(cuMemFree_v2(p));
    must(cuMemAlloc_v2(&all, left));
    return before && wide >= left >> 10 && wide < total >> 8 ? 0 : 1;
}

static int granules(void)
{
    CUdeviceptr p, q;
    size_t left, total, granule = 0;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

    begin();
    must(cuMemAlloc_v2(&p, 100));
    must(cuMemGetInfo_v2(&left, &total));
    if (total - left != 64 << 10)
        return 1;
    must(cuMemAlloc_v2(&q, 100 << 10));
    must(cuMemGetInfo_v2(&left, &total));
    if (total - left != 192 << 10)
        return 2;
    must(cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    return granule == 64 << 10 ? 0 : 3;
}

long long memsim_count(const char *name); /* the simulator's, beside the vendor's interface */

/* What is counted, and what is not a count; run in a process of its own. */
static int counting(void)
{
    CUdeviceptr p;

    begin();
    must(cuMemAlloc_v2(&p, 3 << 20));
    must(cuMemFree_v2(p));
    if (memsim_count("cuMemAlloc_v2") != 1 || memsim_count("cuMemFree_v2") != 1 ||
        memsim_count("cuMemFree") != 0)
        return 1;
    if (memsim_count("used_bytes") != 0 || memsim_count("peak_bytes") != 4 << 20)
        return 2;
    if (memsim_count("cuMemAlloc_v2 moves") != 1 || memsim_count("cuMemAlloc_v2 bytes") != 4 << 20 ||
        memsim_count("cuMemFree_v2 bytes") != 4 << 20 || memsim_count("cuInit moves") != 0)
        return 4;
    if (memsim_count("peak_bytes 0") != 4 << 20 || memsim_count("peak_bytes 1") != 0 ||
        memsim_count("peak_bytes 99") != -1 || memsim_count("cuInit else") != -1)
        return 5;
    return memsim_count("cuNothing") == -1 ? 0 : 3;
}

/* The second and the third of a function's calls fail, or of all; run in a process of its own. */
static int burst(void)
{
    CUdeviceptr p;
    int failed = 0;

    begin();
    for (int i = 0; i < 5; i++)
        failed |= (cuMemAlloc_v2(&p, 16) == CUDA_ERROR_OUT_OF_MEMORY) << i;
    return failed;
}

/* Runs this program again in one of its roles, with one variable set; returns its exit status. */
static int role(const char *self, const char *name, const char *value, const char *what)
{
    int status = -1;

    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        setenv(name, value, 1);
        execl(self, self, what, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
    CUdeviceptr p;

    if (argc > 1 && !strcmp(argv[1], "granules"))
        return granules();
    if (argc > 1 && !strcmp(argv[1], "window"))
        return narrow_window();
    if (argc > 1 && !strcmp(argv[1], "counting"))
        return counting();
    if (argc > 1 && !strcmp(argv[1], "burst"))
        return burst();
    if (argc > 1 && !strcmp(argv[1], "none"))
        return cuInit(0);
    if (argc > 1) {
        begin();
        must(cuMemAlloc_v2(&p, 16));
        return cuMemFree_v2(p);
    }
    plan(0);
    complaint(argv[0], "MEMSIM_DEVICES", "many", "a number from 0 to 16");
    complaint(argv[0], "MEMSIM_DEVICES", "17", "a number from 0 to 16");
    complaint(argv[0], "MEMSIM_MEMORY", "8Q", "a size");
    complaint(argv[0], "MEMSIM_GRANULARITY", "3M", "a power of two");
    complaint(argv[0], "MEMSIM_GRANULARITY", "64K", NULL);
    complaint(argv[0], "MEMSIM_WINDOW", "1M", "a size from 1G");
    complaint(argv[0], "MEMSIM_FAIL", "cuMemAloc@1=2", "name@n=status");
    complaint(argv[0], "MEMSIM_FAIL", "cuMemAlloc_v2@0=2", "name@n=status");
    complaint(argv[0], "MEMSIM_FAIL", "cuMemAlloc_v2@1+x=2", "name@n=status");
    complaint(argv[0], "MEMSIM_FAIL", "any@1", "name@n=status");
    complaint(argv[0], "MEMSIM_FAIL", "cudaMalloc@1=2", NULL);
    complaint(argv[0], "MEMSIM_COST", "cuMemAlloc_v2", "name=ns");
    complaint(argv[0], "MEMSIM_COST", "cuMemAlloc_v2=10,kernel=5", NULL);
    complaint(argv[0], "MEMSIM_SEED", "-1", "a number");
    complaint(argv[0], "MEMSIM_COUNT", "yes", "0 or 1");
    is_int(role(argv[0], "MEMSIM_GRANULARITY", "64K", "granules"), 0, "a finer granularity is kept");
    is_int(role(argv[0], "MEMSIM_WINDOW", "1G", "window"), 0,
           "few addresses are reserved, and all of the memory can be had");
    is_int(role(argv[0], "MEMSIM_COUNT", "1", "counting"), 0,
           "calls are counted, and the most memory is kept");
    is_int(role(argv[0], "MEMSIM_DEVICES", "0", "none"), CUDA_ERROR_NO_DEVICE,
           "without a device nothing starts");
    is_int(role(argv[0], "MEMSIM_FAIL", "cuMemAlloc_v2@2+1=2", "burst"), 6, "two calls in a row fail");
    is_int(role(argv[0], "MEMSIM_FAIL", "any@1=100", "none"), CUDA_ERROR_NO_DEVICE,
           "the first call of all fails, whatever it is");
    is_int(role(argv[0], "MEMSIM_FAIL", "any@2=100,cuMemAlloc_v2@4=2", "none"), 0, "and not the one before");
    setenv("MEMSIM_FAIL", "cuMemAlloc_v2@2=2,cuMemFree_v2@2+=999,memset@2=214", 1);
    setenv("MEMSIM_COST", "kernel=40000000,cuCtxGetCurrent=6000000", 1);
    begin();
    faults();
    costs();
    return done();
}
