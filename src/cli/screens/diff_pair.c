/* diff_pair.c - which call sites of two reports are the same place in the program; see diff.h.
 *
 * Floor 5. From the surest to the least sure: each way looks only at what those before it left alone, so that
 * a site which is known for sure is never another's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/screens/diff.h"

/* How two sites are compared. */
enum way { BY_HASH, BY_LINES, BY_FILES, BY_NAMES, WAYS };

/* Two lists of one key are laid against each other only up to so many pairs: beyond that they stay alone. */
enum { CELLS_MAX = 1 << 20 };

struct entry {
    uint64_t key;
    size_t site;
    const struct ms_model *model;
};

static uint64_t add_bytes(uint64_t sum, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)text[i]) * 0x100000001b3u;
    return (sum ^ 0x1f) * 0x100000001b3u;
}

static uint64_t add_text(uint64_t sum, const char *text)
{
    return add_bytes(sum, text, strlen(text));
}

/* A frame without a function is its module: addresses move. */
static uint64_t add_name(uint64_t sum, const struct ms_model_frame *frame)
{
    const char *plus = frame->module ? strstr(frame->name, "+0x") : NULL;

    return add_bytes(sum, frame->name, plus ? (size_t)(plus - frame->name) : strlen(frame->name));
}

static uint64_t diff_pair_key_of(const struct ms_model *model, size_t i, enum way way)
{
    const struct ms_model_site *site = &model->sites[i];
    uint64_t sum = add_text(0xcbf29ce484222325u, ms_report_text(site->json, "kind"));

    sum = add_text(sum, site->place);
    if (way == BY_HASH)
        return add_text(sum, ms_report_text(site->json, "hash"));
    for (size_t k = 0; k < site->depth; k++) {
        const struct ms_model_frame *frame = &model->frames[model->path[site->first + k]];

        sum = add_name(sum, frame);
        if (way != BY_NAMES)
            sum = add_text(sum, frame->file);
        if (way == BY_LINES)
            sum = add_bytes(sum, (const char *)&frame->line, sizeof(frame->line));
    }
    return sum;
}

/* By key, and within one in the order of lines, from the inside of the stack. */
static int diff_pair_compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const struct ms_model_site *left = &x->model->sites[x->site], *right = &y->model->sites[y->site];

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    for (size_t k = 1; k <= left->depth && k <= right->depth; k++) {
        json_int_t p = x->model->frames[x->model->path[left->first + left->depth - k]].line;
        json_int_t q = y->model->frames[y->model->path[right->first + right->depth - k]].line;

        if (p != q)
            return p < q ? -1 : 1;
    }
    return x->site < y->site ? -1 : x->site > y->site;
}

/* Sites that nobody has yet, sorted. */
static size_t diff_pair_list(const struct ms_model *model, const unsigned char *taken, enum way way,
                             struct entry *entries)
{
    size_t count = 0;

    for (size_t i = 0; i < model->site_count; i++) {
        if (taken[i] || (way == BY_HASH && !*ms_report_text(model->sites[i].json, "hash")))
            continue;
        entries[count++] = (struct entry){diff_pair_key_of(model, i, way), i, model};
    }
    if (count)
        qsort(entries, count, sizeof(*entries), diff_pair_compare);
    return count;
}

static json_int_t block_bytes(const struct entry *entry)
{
    const struct ms_model_site *site = &entry->model->sites[entry->site];

    return site->values[MS_VALUE_COUNT] ? site->values[MS_VALUE_TOTAL] / site->values[MS_VALUE_COUNT] : 0;
}

struct pairing {
    size_t *pairs;
    unsigned char *taken[MS_DIFF_SIDES];
};

static void pair(struct pairing *pairing, const struct entry *before, const struct entry *after)
{
    pairing->pairs[before->site] = after->site;
    pairing->taken[MS_DIFF_BEFORE][before->site] = 1;
    pairing->taken[MS_DIFF_AFTER][after->site] = 1;
}

/* As many of both, between two that are known: each is its counterpart. */
static void pair_gap(struct pairing *pairing, const struct entry *before, size_t n, const struct entry *after,
                     size_t m)
{
    for (size_t i = 0; n == m && i < n; i++)
        pair(pairing, &before[i], &after[i]);
}

/* Sites of one key: the longest run of blocks of equal sizes, in the order of lines, is held for the same,
 * and what lies between by its number. */
static int pair_group(struct pairing *pairing, const struct entry *before, size_t n,
                      const struct entry *after, size_t m)
{
    size_t i, k, from = 0, to = 0;
    uint32_t *best;

    if (n == 1 && m == 1) {
        pair(pairing, before, after);
        return 0;
    }
    if (n > CELLS_MAX / m)
        return 0;
    best = calloc((n + 1) * (m + 1), sizeof(*best));
    if (!best)
        return -1;
    for (i = n; i-- > 0;)
        for (k = m; k-- > 0;) {
            uint32_t down = best[(i + 1) * (m + 1) + k], right = best[i * (m + 1) + k + 1];

            best[i * (m + 1) + k] = block_bytes(&before[i]) == block_bytes(&after[k])
                                        ? best[(i + 1) * (m + 1) + k + 1] + 1
                                    : down > right ? down
                                                   : right;
        }
    for (i = 0, k = 0; i < n && k < m;) {
        if (block_bytes(&before[i]) == block_bytes(&after[k])) {
            pair_gap(pairing, before + from, i - from, after + to, k - to);
            pair(pairing, &before[i++], &after[k++]);
            from = i, to = k;
        } else if (best[(i + 1) * (m + 1) + k] >= best[i * (m + 1) + k + 1]) {
            i++;
        } else {
            k++;
        }
    }
    pair_gap(pairing, before + from, n - from, after + to, m - to);
    free(best);
    return 0;
}

static size_t end_of(const struct entry *entries, size_t count, size_t from)
{
    size_t to = from;

    while (to < count && entries[to].key == entries[from].key)
        to++;
    return to;
}

static int pair_way(struct pairing *pairing, const struct ms_model *before, const struct ms_model *after,
                    enum way way, struct entry *left, struct entry *right)
{
    size_t n = diff_pair_list(before, pairing->taken[MS_DIFF_BEFORE], way, left);
    size_t m = diff_pair_list(after, pairing->taken[MS_DIFF_AFTER], way, right), i = 0, k = 0;
    int status = 0;

    while (i < n && k < m && status == 0) {
        size_t i_end = end_of(left, n, i), k_end = end_of(right, m, k);

        if (left[i].key < right[k].key) {
            i = i_end;
        } else if (left[i].key > right[k].key) {
            k = k_end;
        } else {
            status = pair_group(pairing, left + i, i_end - i, right + k, k_end - k);
            i = i_end, k = k_end;
        }
    }
    return status;
}

int ms_diff_pair(const struct ms_model *before, const struct ms_model *after, size_t *pairs)
{
    struct pairing pairing = {pairs, {calloc(before->site_count + 1, 1), calloc(after->site_count + 1, 1)}};
    struct entry *left = calloc(before->site_count + 1, sizeof(*left));
    struct entry *right = calloc(after->site_count + 1, sizeof(*right));
    int status = left && right && pairing.taken[0] && pairing.taken[1] ? 0 : -1;

    for (size_t i = 0; i < before->site_count; i++)
        pairs[i] = SIZE_MAX;
    for (unsigned way = 0; way < WAYS && status == 0; way++)
        status = pair_way(&pairing, before, after, (enum way)way, left, right);
    free(left);
    free(right);
    free(pairing.taken[0]);
    free(pairing.taken[1]);
    return status;
}
