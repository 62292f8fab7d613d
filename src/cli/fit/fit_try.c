/* fit_try.c - the ways in which a program could be run, tried on devices; see fit.h.
 *
 * Floor 5. */
#include "cli/fit/fit.h"

#include <stdlib.h>
#include <string.h>

#include "base/options/options_value.h"
#include "cli/cli.h"
#include "cli/tune/policy.h"
#include "cli/tune/replay_run.h"

/* --- ways --- */

static struct ms_fit_way replayed(const char *name, bool of_tensors, const char *settings)
{
    struct ms_fit_way way = {.of_tensors = of_tensors};

    snprintf(way.name, sizeof(way.name), "%s", name);
    snprintf(way.settings, sizeof(way.settings), "%s", settings);
    return way;
}

static int by_torch(struct ms_fit_way *way, const char *name, const char *settings)
{
    char error[256];

    *way = (struct ms_fit_way){.of_tensors = true, .is_torch = true};
    snprintf(way->name, sizeof(way->name), "%s", name);
    if (ms_torch_parse(settings, &way->torch, error, sizeof(error)) == 0)
        return 0;
    ms_cli_error("%s", error);
    return -1;
}

static const char prefix[] = "MEMSHIM_";
enum { PREFIX = sizeof(prefix) - 1 };

static bool is_setting(const char *word)
{
    size_t length = strcspn(word, "= ");

    for (unsigned i = 0; word[length] == '=' && i < MS_SETTINGS; i++)
        if (strncmp(ms_policy_name(i), prefix, PREFIX) == 0 && strlen(ms_policy_name(i)) == length &&
            strncmp(word, ms_policy_name(i), length) == 0)
            return true;
    return false;
}

/* Variables that memshim tune tries too, and no others: those would have the replay write files, or record.
 */
static bool are_settings(const char *text)
{
    bool are = is_setting(text);

    while (are && (text = strchr(text, ' ')) != NULL)
        are = is_setting(++text);
    return are;
}

/* False after an error line for a value that the variable does not take: a replay would go on without it. */
static bool is_allowed(const char *word)
{
    static struct ms_option_value value;
    size_t length = strcspn(word, "="), bytes = strcspn(word, " ") - length - 1;
    enum ms_option_id id = ms_option_by_name(word + PREFIX, length - PREFIX, false);
    char text[128], why[256];

    snprintf(text, sizeof(text), "%.*s", (int)bytes, word + length + 1);
    if (id < MS_OPT_COUNT && bytes < sizeof(text) &&
        ms_option_parse(ms_option_info(id), text, &value, why, sizeof(why)))
        return true;
    ms_cli_error("--policy %.*s: \"%s\" is not %s", (int)length, word, text,
                 bytes < sizeof(text) ? why : "a value that short");
    return false;
}

/* False after an error line. */
static bool are_allowed(const char *text)
{
    const char *name, *other;

    for (const char *word = text; word; word = strchr(word, ' '))
        if (!is_allowed(word += *word == ' '))
            return false;
    if (!ms_policy_clash(text, &name, &other))
        return true;
    ms_cli_error("--policy '%s' is not allowed: %s does not go with such a %s", text, other, name);
    return false;
}

/* "MEMSHIM_KEEP=0 MEMSHIM_PACK=all", or "expandable_segments:True,max_split_size_mb:64". */
static int way_of(struct ms_fit_way *way, const struct ms_fit_run *run, const char *policy)
{
    if (are_settings(policy)) {
        *way = replayed(policy, false, policy);
        return are_allowed(policy) ? 0 : -1;
    }
    if (strncmp(policy, prefix, PREFIX) != 0 && strchr(policy, ':') && run->has_tensors)
        return by_torch(way, policy, policy);
    ms_cli_error(
        "--policy '%s' is not allowed: variables that memshim tune tries, as MEMSHIM_PACK=all%s", policy,
        run->has_tensors ? ", or settings as PYTORCH_ALLOC_CONF has them" : "; the trace has no tensors");
    return -1;
}

int ms_fit_ways(const struct ms_fit_run *run, const char *policy, struct ms_fit_way *ways)
{
    int count = 0;

    if (run->has_tensors) {
        if (by_torch(&ways[count++], "PyTorch", "") < 0 ||
            (!ms_course_foreign(&run->tensors) &&
             by_torch(&ways[count++], "PyTorch, expandable_segments:True", "expandable_segments:True") < 0))
            return -1;
        ways[count++] = replayed("PyTorch without its cache, memshim's pool", true, "");
    } else {
        ways[count++] = replayed("memshim's pool", false, "");
        ways[count++] = replayed("the vendor's own calls", false, "MEMSHIM_MODE=off");
    }
    if (policy && way_of(&ways[count++], run, policy) < 0)
        return -1;
    return count;
}

/* --- tries --- */

static int try_torch(const struct ms_fit_way *way, const struct ms_course *course, const uint64_t *capacities,
                     size_t count, struct ms_fit_answer *answers)
{
    for (size_t i = 0; i < count; i++) {
        struct ms_torch_result result;
        uint64_t most = 0;

        if (ms_torch_replay(course, &way->torch, capacities[i], &result) < 0) {
            ms_cli_error("there is no memory for the model of PyTorch's allocator");
            return -1;
        }
        for (size_t d = 0; d < MS_COURSE_DEVICES; d++)
            most = result.device_reserved[d] > most ? result.device_reserved[d] : most;
        answers[i] = (struct ms_fit_answer){.fits = result.completed, .reserved = most};
    }
    return 0;
}

static int try_replay(const struct ms_fit_way *way, const struct ms_course *course,
                      const uint64_t *capacities, size_t count, struct ms_fit_answer *answers)
{
    struct ms_replay_order *orders = calloc(count, sizeof(*orders));
    struct ms_replay_result *results = calloc(count, sizeof(*results));
    struct ms_replay replay = {.fd = -1};
    int status = -1;

    if (!orders || !results)
        ms_cli_error("there is no memory to replay the trace");
    else if (ms_replay_open(course, &replay) == 0) {
        for (size_t i = 0; i < count; i++)
            orders[i] = (struct ms_replay_order){.replay = &replay,
                                                 .settings = way->settings,
                                                 .device_bytes = capacities[i],
                                                 .last = course->count,
                                                 .warm = SIZE_MAX};
        status = ms_replay_all(orders, results, count, NULL, NULL);
    }
    for (size_t i = 0; status == 0 && i < count; i++)
        answers[i] = (struct ms_fit_answer){.fits = results[i].completed, .reserved = results[i].peak};
    ms_replay_close(&replay);
    free(orders);
    free(results);
    return status;
}

int ms_fit_try(const struct ms_fit_way *way, const struct ms_course *course, const uint64_t *capacities,
               size_t count, struct ms_fit_answer *answers)
{
    return way->is_torch ? try_torch(way, course, capacities, count, answers)
                         : try_replay(way, course, capacities, count, answers);
}

enum { AT_ONCE = 3 }; /* devices that are tried at a time: as many parts the range is divided into, and one */

/* Between a device that is too small and one that is large enough, in granules. */
static int narrow(const struct ms_fit_way *way, const struct ms_course *course, uint64_t low, uint64_t high,
                  uint64_t *least_p)
{
    while (high - low > 1) {
        uint64_t granules[AT_ONCE] = {0}, bytes[AT_ONCE], base = low, width = high - low;
        struct ms_fit_answer answers[AT_ONCE];
        size_t count = 0;

        for (uint64_t part = 1; part <= AT_ONCE; part++) {
            uint64_t granule = base + width * part / (AT_ONCE + 1);

            if (granule > base && granule < high && (!count || granule > granules[count - 1]))
                granules[count++] = granule;
        }
        for (size_t i = 0; i < count; i++)
            bytes[i] = granules[i] * MS_FIT_GRANULE;
        if (ms_fit_try(way, course, bytes, count, answers) < 0)
            return -1;
        for (size_t i = 0; i < count; i++) {
            if (answers[i].fits) {
                high = granules[i];
                break;
            }
            low = granules[i];
        }
    }
    *least_p = high * MS_FIT_GRANULE;
    return 0;
}

int ms_fit_reserved(const struct ms_fit_way *way, const struct ms_course *course, uint64_t *reserved_p)
{
    uint64_t roomy = (course->live_peak / MS_FIT_GRANULE + 4096) * 8 * MS_FIT_GRANULE;
    struct ms_fit_answer answer;

    if (ms_fit_try(way, course, &roomy, 1, &answer) < 0)
        return -1;
    if (!answer.fits) {
        ms_cli_error("%s: the trace does not go to its end even on a device of eight times what it asked for",
                     way->name);
        return -1;
    }
    *reserved_p = answer.reserved;
    return 0;
}

int ms_fit_least(const struct ms_fit_way *way, const struct ms_course *course, uint64_t *least_p,
                 uint64_t *reserved_p)
{
    struct ms_fit_answer answer;
    uint64_t low, high, bytes;

    if (ms_fit_reserved(way, course, reserved_p) < 0)
        return -1;
    high = (*reserved_p + MS_FIT_GRANULE - 1) / MS_FIT_GRANULE;
    for (bytes = high * MS_FIT_GRANULE; ms_fit_try(way, course, &bytes, 1, &answer) == 0 && !answer.fits;
         bytes = high * MS_FIT_GRANULE)
        high += high / 16 + 1;
    low = course->device_count > 1 ? 0 : course->live_peak / MS_FIT_GRANULE;
    return narrow(way, course, low ? low - 1 : 0, high, least_p);
}

/* --- the order of threads --- */

enum { PASSES = 8 };

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

bool ms_fit_reorder(struct ms_course *course, uint64_t seed)
{
    uint64_t state = seed * 2 + 1;
    bool any = false;

    for (unsigned pass = 0; pass < PASSES; pass++)
        for (size_t i = 0; i + 1 < course->count; i++) {
            struct ms_course_event *a = &course->events[i], *b = a + 1, kept = *a;
            uint64_t earlier = a->ns, later = b->ns;

            if (a->thread == b->thread || a->block == b->block || next_random(&state) % 2)
                continue;
            *a = *b;
            *b = kept;
            a->ns = earlier;
            b->ns = later;
            any = true;
        }
    return any;
}
