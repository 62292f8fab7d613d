/* torch_settings.c - PYTORCH_ALLOC_CONF as the model takes it; see torch.h.
 *
 * Floor 5. Keys and values are those of c10/core/AllocatorConfig.cpp and c10/cuda/CUDAAllocatorConfig.cpp. */
#include "cli/torch/torch.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB UINT64_C(1048576)

/* PyTorch refuses less, in MiB; of the rounding it takes more than 20. */
enum { TEXT_MOST = 4096, LEAST_SPLIT = 20, LEAST_SEGMENT = 11 };

void ms_torch_defaults(struct ms_torch_settings *settings)
{
    *settings = (struct ms_torch_settings){.large_segment_bytes = 20 * MIB,
                                           .max_split_bytes = UINT64_MAX,
                                           .max_non_split_rounding_bytes = 20 * MIB};
}

static bool read_number(const char *text, uint64_t most, uint64_t *number_p)
{
    char *end;

    errno = 0;
    *number_p = strtoull(text, &end, 10);
    return end != text && !*end && !errno && *text != '-' && *number_p <= most;
}

static bool read_mebibytes(const char *text, uint64_t least, uint64_t *bytes_p)
{
    if (!read_number(text, UINT64_MAX / MIB, bytes_p) || *bytes_p < least)
        return false;
    *bytes_p *= MIB;
    return true;
}

static bool read_share(const char *text, double *share_p)
{
    char *end;

    *share_p = strtod(text, &end);
    return end != text && !*end && *share_p > 0 && *share_p <= 1;
}

static bool read_truth(const char *text, bool *truth_p)
{
    *truth_p = strcmp(text, "True") == 0;
    return *truth_p || strcmp(text, "False") == 0;
}

static bool is_power_of_two(uint64_t number)
{
    return number && !(number & (number - 1));
}

/* One "256:4" or ">:8" of a list: the number of divisions from so many MiB up to twice as many, and of the
 * first row also below; ">" is of all that is longer than the row before. */
static bool read_roundup(char *row, uint32_t *divisions, int *last)
{
    char *value = strchr(row, ':');
    uint64_t from, count;
    int place = MS_TORCH_ROUNDUPS - 1, first = *last + 1;

    if (!value || !read_number(value + 1, 1 << 20, &count) || (count && !is_power_of_two(count)))
        return false;
    *value = '\0';
    if (strcmp(row, ">") != 0) {
        if (!read_number(row, UINT32_MAX, &from) || !is_power_of_two(from))
            return false;
        place = 63 - __builtin_clzll(from);
        first = *last < 0 ? 0 : place;
    }
    *last = place;
    for (int i = first; i <= place && i < MS_TORCH_ROUNDUPS; i++)
        divisions[i] = (uint32_t)count;
    return true;
}

static bool read_roundups(char *text, uint32_t *divisions)
{
    size_t length = strlen(text);
    uint64_t count;
    int last = -1;
    char *rest = text + 1;

    if (*text != '[') {
        if (!read_number(text, 1 << 20, &count) || !is_power_of_two(count))
            return false;
        for (unsigned i = 0; i < MS_TORCH_ROUNDUPS; i++)
            divisions[i] = (uint32_t)count;
        return true;
    }
    if (text[length - 1] != ']')
        return false;
    text[length - 1] = '\0';
    for (char *row; (row = strsep(&rest, ",")) != NULL;)
        if (!read_roundup(row, divisions, &last))
            return false;
    return true;
}

/* True if the value is one; of other keys any is. */
static bool setting_read(const char *key, char *value, struct ms_torch_settings *settings)
{
    if (strcmp(key, "backend") == 0) /* there is no model of the others */
        return strcmp(value, "native") == 0;
    if (strcmp(key, "expandable_segments") == 0)
        return read_truth(value, &settings->expandable_segments);
    if (strcmp(key, "max_split_size_mb") == 0)
        return read_mebibytes(value, LEAST_SPLIT, &settings->max_split_bytes);
    if (strcmp(key, "max_non_split_rounding_mb") == 0)
        return read_mebibytes(value, LEAST_SPLIT + 1, &settings->max_non_split_rounding_bytes);
    if (strcmp(key, "large_segment_size_mb") == 0)
        return read_mebibytes(value, LEAST_SEGMENT, &settings->large_segment_bytes);
    if (strcmp(key, "roundup_power2_divisions") == 0)
        return read_roundups(value, settings->roundup_divisions);
    if (strcmp(key, "garbage_collection_threshold") == 0)
        return read_share(value, &settings->collection_threshold);
    if (strcmp(key, "per_process_memory_fraction") == 0)
        return read_share(value, &settings->memory_fraction);
    return true;
}

/* The next "key:value", with a list as its value as one; `*rest_p` is behind it. NULL for no more. */
static char *setting_next(char **rest_p)
{
    char *setting = *rest_p, *end = setting;
    int depth = 0;

    if (!*setting)
        return NULL;
    for (; *end && (depth > 0 || *end != ','); end++)
        depth += (*end == '[') - (*end == ']');
    *rest_p = *end ? end + 1 : end;
    *end = '\0';
    return setting;
}

int ms_torch_parse(const char *text, struct ms_torch_settings *settings, char *error, size_t error_bytes)
{
    char copy[TEXT_MOST] = "", *rest = copy, *setting, *value, *to = copy;

    ms_torch_defaults(settings);
    if (strlen(text) >= sizeof copy) {
        snprintf(error, error_bytes, "settings of PyTorch have at most %zu characters", sizeof copy - 1);
        return -1;
    }
    for (; *text; text++) /* blanks mean nothing anywhere */
        if (!isspace((unsigned char)*text))
            *to++ = *text;
    *to = '\0';
    while ((setting = setting_next(&rest)) != NULL) {
        value = strchr(setting, ':');
        if (value)
            *value++ = '\0';
        if (!value || !*value || !setting_read(setting, value, settings)) {
            snprintf(error, error_bytes, "PyTorch takes no \"%s:%s\"", setting, value ? value : "");
            return -1;
        }
    }
    return 0;
}
