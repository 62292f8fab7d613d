/*
 * The settings that MEMSIM_* asks of the simulated driver: number and size of devices, granularity, what
 * contexts and others take, seed, log, ledger (card.c has which card). Read once, on the first call of any
 * exported function (fault.c). A bad value gets one line on stderr and the default.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/sim.h"

struct sim_config sim_config = {
    .devices = 1,
    .memory_bytes = 8UL << 30,
    .granularity_bytes = SIM_VMM_PAGE,
};

/** One line on stderr: a variable, its value and what is allowed. The default is used. */
void sim_config_complain(const char *name, const char *value, const char *allowed)
{
    fprintf(stderr, "memsim: %s=%s: expected %s; the default is used\n", name, value, allowed);
}

/** Reads a size with an optional K, M, G or T (powers of 1024). */
bool sim_config_size(const char *text, size_t *bytes_p)
{
    static const char units[] = "KMGT";
    char *end;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    unsigned shift = unit ? 10U * (unsigned)(unit - units + 1) : 0;

    if (errno || (*end && !unit) || (unit && end[1]) || value > (SIZE_MAX >> shift))
        return false;
    *bytes_p = (size_t)value << shift;
    return true;
}

static bool read_number(const char *name, unsigned long long most, const char *allowed,
                        unsigned long long *value_p)
{
    const char *text = secure_getenv(name);
    char *end;

    if (!text || !*text)
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);

    if (!isdigit((unsigned char)*text) || *end || errno || value > most) {
        sim_config_complain(name, text, allowed);
        return false;
    }
    *value_p = value;
    return true;
}

static void read_granularity(void)
{
    const char *text = secure_getenv("MEMSIM_GRANULARITY");
    size_t bytes;

    if (!text || !*text)
        return;
    if (!sim_config_size(text, &bytes) || bytes < 4096 || bytes > (1UL << 30) || (bytes & (bytes - 1)))
        sim_config_complain("MEMSIM_GRANULARITY", text, "a power of two from 4K to 1G");
    else
        sim_config.granularity_bytes = bytes;
}

static void read_memory(void)
{
    const char *text = secure_getenv("MEMSIM_MEMORY");
    size_t bytes;

    if (!text || !*text)
        return;
    if (!sim_config_size(text, &bytes) || bytes < SIM_MIB || bytes > (32UL << 40))
        sim_config_complain("MEMSIM_MEMORY", text, "a size from 1M to 32T");
    else
        sim_config.memory_bytes = bytes, sim_config.memory_asked = true;
}

static void read_window(void)
{
    const char *text = secure_getenv("MEMSIM_WINDOW");
    size_t bytes;

    if (!text || !*text)
        return;
    if (!sim_config_size(text, &bytes) || bytes < (1UL << 30))
        sim_config_complain("MEMSIM_WINDOW", text, "a size from 1G");
    else
        sim_config.window_bytes = bytes;
}

static void read_context(void)
{
    const char *text = secure_getenv("MEMSIM_CONTEXT");
    size_t bytes;

    if (!text || !*text)
        return;
    if (!sim_config_size(text, &bytes) || bytes > (32UL << 40))
        sim_config_complain("MEMSIM_CONTEXT", text, "a size from 0 to 32T");
    else
        sim_config.context_bytes = bytes;
}

static void read_others(void)
{
    const char *text = secure_getenv("MEMSIM_OTHERS");
    size_t bytes;

    if (!text || !*text)
        return;
    if (!sim_config_size(text, &bytes) || bytes >= sim_config.memory_bytes)
        sim_config_complain("MEMSIM_OTHERS", text, "a size, less than the device's memory");
    else
        sim_config.others_bytes = bytes;
}

/** Reads the environment into sim_config. Called once, by fault.c. */
void sim_config_read(void)
{
    unsigned long long value;
    const char *path = secure_getenv("MEMSIM_LOG");

    if (read_number("MEMSIM_DEVICES", SIM_MAX_DEVICES, "a number from 0 to 16", &value))
        sim_config.devices = (unsigned)value;
    if (read_number("MEMSIM_SEED", UINT64_MAX, "a number; 0 switches jitter off", &value))
        sim_config.seed = value;
    read_memory();
    read_granularity();
    read_window();
    read_context();
    read_others();
    if (path && *path)
        sim_config.log_path = path;
    path = secure_getenv("MEMSIM_LEDGER");
    if (path && *path)
        sim_config.ledger_path = path;
    if (read_number("MEMSIM_COUNT", 1, "0 or 1", &value))
        sim_config.counts = value;
}
