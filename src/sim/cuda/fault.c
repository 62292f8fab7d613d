/*
 * Costs and faults of single functions (MEMSIM_COST, MEMSIM_FAIL), and the count of calls that are not simulated.
 *
 * Every exported function passes sim_fault_enter while sim_armed is set; it is cleared after the first call if nothing
 * was asked for, so that the usual price is one relaxed load. No lock; the rules never change once they were read.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

static const char *const fn_names[SIM_FN_COUNT] = {
#define X(name) [SIM_FN_##name] = #name,
#include "exports.def"
#undef X
    [SIM_FN_KERNEL] = "kernel",
    [SIM_FN_COPY] = "copy",
    [SIM_FN_MEMSET] = "memset",
    [SIM_FN_COPY_KIB] = "copy_kib",
};

struct fault_rule {
    unsigned long long nth;
    bool onward; /* also every later call */
    CUresult status;
    enum sim_fn fn;
};

#define MAX_RULES 64

atomic_int sim_armed = 1;
static pthread_once_t read_once = PTHREAD_ONCE_INIT;
static uint64_t costs[SIM_FN_COUNT];
static atomic_ullong calls[SIM_FN_COUNT];
static atomic_ullong unsupported[SIM_FN_COUNT];
static struct fault_rule rules[MAX_RULES];
static unsigned rule_count;
static bool has_costs;

uint64_t sim_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/** Lets ns nanoseconds pass: sleeps while there is much left, spins at the end. Leaves errno alone. */
void sim_spend(uint64_t ns)
{
    uint64_t end = sim_now_ns() + ns;
    int saved = errno;

    for (uint64_t now = sim_now_ns(); now < end; now = sim_now_ns()) {
        uint64_t left = end - now;

        if (left > 100000) {
            struct timespec pause = {(time_t)((left - 60000) / 1000000000U), (long)((left - 60000) % 1000000000U)};
            nanosleep(&pause, NULL);
        }
    }
    errno = saved;
}

int sim_fault_find(const char *name, size_t length)
{
    for (int i = 0; i < SIM_FN_COUNT; i++)
        if (!strncmp(fn_names[i], name, length) && !fn_names[i][length])
            return i;
    return -1;
}

/* Names of the other simulated libraries are theirs to judge. */
static bool foreign(const char *name)
{
    return !strncmp(name, "cuda", 4) || !strncmp(name, "nccl", 4) || !strncmp(name, "hip", 3) ||
           !strncmp(name, "acl", 3);
}

static bool read_unsigned(const char *text, char **end_p, unsigned long long *value_p)
{
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    *value_p = strtoull(text, end_p, 10);
    return !errno;
}

/* name=ns */
static bool read_cost(const char *item)
{
    const char *equals = strchr(item, '=');
    unsigned long long ns;
    char *end;

    if (!equals || !read_unsigned(equals + 1, &end, &ns) || *end)
        return false;
    int fn = sim_fault_find(item, (size_t)(equals - item));
    if (fn < 0)
        return foreign(item);
    costs[fn] = ns;
    has_costs = true;
    return true;
}

/* name@n=status or name@n+=status */
static bool read_rule(const char *item)
{
    const char *at = strchr(item, '@');
    struct fault_rule rule = {0};
    unsigned long long status;
    char *end;

    if (!at || !read_unsigned(at + 1, &end, &rule.nth) || !rule.nth)
        return false;
    if (*end == '+') {
        rule.onward = true;
        end++;
    }
    if (*end != '=' || !read_unsigned(end + 1, &end, &status) || *end || !status || status > 999)
        return false;
    int fn = sim_fault_find(item, (size_t)(at - item));
    if (fn < 0)
        return foreign(item);
    if (fn == SIM_FN_COPY_KIB || rule_count == MAX_RULES)
        return false;
    rule.status = (CUresult)status;
    rule.fn = (enum sim_fn)fn;
    rules[rule_count++] = rule;
    return true;
}

static void read_list(const char *name, bool (*read_item)(const char *item), const char *allowed)
{
    const char *text = secure_getenv(name);
    char *copy = text && *text ? strdup(text) : NULL;
    char *rest = copy, *item;

    while (rest && (item = strsep(&rest, ",")))
        if (*item && !read_item(item))
            sim_config_complain(name, item, allowed);
    free(copy);
}

static void read_environment(void)
{
    sim_config_read();
    read_list("MEMSIM_COST", read_cost,
              "name=ns,... with the name of a driver function, kernel, copy, copy_kib or memset");
    read_list("MEMSIM_FAIL", read_rule,
              "name@n=status,... or name@n+=status with the name of a driver function, kernel, copy or memset");
    if (!rule_count && !has_costs && !sim_config.counts)
        atomic_store(&sim_armed, 0);
}

/** Reads the environment if that has not happened yet. */
void sim_fault_read(void)
{
    pthread_once(&read_once, read_environment);
}

static CUresult count_call(enum sim_fn fn)
{
    unsigned long long nth = 1 + atomic_fetch_add_explicit(&calls[fn], 1, memory_order_relaxed);

    for (unsigned i = 0; i < rule_count; i++)
        if (rules[i].fn == fn && (rules[i].onward ? nth >= rules[i].nth : nth == rules[i].nth))
            return rules[i].status;
    return CUDA_SUCCESS;
}

CUresult sim_fault_enter(enum sim_fn fn)
{
    sim_fault_read();
    if (costs[fn])
        sim_spend(costs[fn]);
    return rule_count || sim_config.counts ? count_call(fn) : CUDA_SUCCESS;
}

/** The nanoseconds that MEMSIM_COST gives to work on a stream. */
uint64_t sim_fault_cost(enum sim_fn fn)
{
    return costs[fn];
}

/** Whether MEMSIM_* asks for anything of work of this kind: time, or that it fails. */
bool sim_fault_asked(enum sim_fn fn)
{
    return rule_count || costs[fn];
}

/** The status with which this piece of work on a stream is to fail, or 0. */
CUresult sim_fault_work(enum sim_fn fn)
{
    return rule_count ? count_call(fn) : CUDA_SUCCESS;
}

/** For programs that measure: how often the driver function of this name was called so far, if MEMSIM_COUNT is 1; or
 * "used_bytes" and "peak_bytes" of the first device. -1 for any other name. */
__attribute__((visibility("default"))) long long memsim_count(const char *name)
{
    const struct sim_device *device = &sim_devices[0];
    bool peak = !strcmp(name, "peak_bytes");

    if (peak || !strcmp(name, "used_bytes")) {
        sim_memory_read_lock();
        size_t bytes = peak ? device->peak_bytes : device->used_bytes;
        sim_memory_unlock();
        return (long long)bytes;
    }
    int fn = sim_fault_find(name, strlen(name));
    return fn < 0 ? -1 : (long long)atomic_load_explicit(&calls[fn], memory_order_relaxed);
}

/** Counts a call of a function that is not simulated, and notes it in MEMSIM_LOG. */
CUresult sim_unsupported(enum sim_fn fn)
{
    char line[160];
    unsigned long long nth = 1 + atomic_fetch_add_explicit(&unsupported[fn], 1, memory_order_relaxed);

    if (atomic_load_explicit(&sim_initialized, memory_order_acquire) < 0 || !sim_config.log_path)
        return CUDA_ERROR_NOT_SUPPORTED;
    int saved = errno;
    int fd = open(sim_config.log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        int length = snprintf(line, sizeof line, "%d unsupported %s %llu\n", (int)getpid(), fn_names[fn], nth);
        if (write(fd, line, (size_t)length) < 0)
            fprintf(stderr, "memsim: cannot write %s\n", sim_config.log_path);
        close(fd);
    }
    errno = saved;
    return CUDA_ERROR_NOT_SUPPORTED;
}
