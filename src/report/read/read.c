/* read.c - a report read back from its file; see read.h.
 *
 * Floor 4, command line only. */
#include "report/read/read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/files.h"
#include "report/read/parse.h"

#define SCHEMA_MAJOR 1

json_int_t ms_report_int(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

const char *ms_report_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

bool ms_report_bool(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

json_t *ms_report_array(const json_t *object, const char *key)
{
    json_t *array = json_object_get(object, key);

    return json_is_array(array) ? array : NULL;
}

json_int_t ms_report_sum(json_int_t a, json_int_t b)
{
    json_int_t sum;

    if (__builtin_add_overflow(a, b, &sum))
        return a < 0 ? LLONG_MIN : LLONG_MAX;
    return sum;
}

/* The place of the row with an id. */
struct place {
    json_int_t id;
    size_t row;
};

struct ms_report_index {
    size_t count;
    struct place places[];
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static struct ms_report_index *make_index(const json_t *rows)
{
    struct ms_report_index *index = malloc(sizeof(*index) + json_array_size(rows) * sizeof(struct place));
    json_t *row;
    size_t i;

    if (!index)
        return NULL;
    index->count = 0;
    json_array_foreach (rows, i, row) {
        json_t *own = json_object_get(row, "id");

        if (json_is_integer(own))
            index->places[index->count++] = (struct place){json_integer_value(own), i};
    }
    if (index->count)
        qsort(index->places, index->count, sizeof(struct place), compare_places);
    return index;
}

/* Ids are positions in every report that memshim writes; a file put together by hand may order its rows
 * otherwise. They are put in order once, the first time that one is not at its place. */
static json_t *row_by_id(json_t *rows, struct ms_report_index **index_p, json_int_t id)
{
    json_t *row = id < 0 ? NULL : json_array_get(rows, (size_t)id);
    size_t low = 0, high;

    if (row && json_is_integer(json_object_get(row, "id")) && ms_report_int(row, "id") == id)
        return row;
    if (!*index_p)
        *index_p = make_index(rows);
    high = *index_p ? (*index_p)->count : 0;
    while (low < high) { /* the first that is not less */
        size_t middle = low + (high - low) / 2;

        if ((*index_p)->places[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (!*index_p || low == (*index_p)->count || (*index_p)->places[low].id != id)
        return NULL;
    return json_array_get(rows, (*index_p)->places[low].row);
}

json_t *ms_report_site(const struct ms_report *report, json_int_t id)
{
    return row_by_id(report->sites, &((struct ms_report *)report)->site_index, id);
}

json_t *ms_report_module(const struct ms_report *report, json_int_t id)
{
    return row_by_id(report->modules, &((struct ms_report *)report)->module_index, id);
}

/* A stack is walked for each site and by several, so its nodes are numbers. */
struct node {
    int32_t parent, frame; /* -1: none */
};

struct ms_report_nodes {
    size_t count;
    struct node list[];
};

static int32_t node_number(const json_t *value, size_t rows)
{
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;

    return number >= 0 && number < INT32_MAX && (size_t)number < rows ? (int32_t)number : -1;
}

static struct ms_report_nodes *make_nodes(const struct ms_report *report)
{
    size_t count = json_array_size(report->stacks), frames = json_array_size(report->frames), i;
    struct ms_report_nodes *nodes = malloc(sizeof(*nodes) + count * sizeof(struct node));
    json_t *row;

    if (!nodes)
        return NULL;
    nodes->count = count;
    json_array_foreach (report->stacks, i, row)
        nodes->list[i] = (struct node){.parent = node_number(json_array_get(row, 0), count),
                                       .frame = node_number(json_array_get(row, 1), frames)};
    return nodes;
}

json_t *ms_report_stack_next(const struct ms_report *report, json_int_t *stack_p, size_t *row_p)
{
    struct ms_report_nodes **nodes_p = &((struct ms_report *)report)->nodes;
    const struct node *node;

    if (!*nodes_p)
        *nodes_p = make_nodes(report);
    if (!*nodes_p || *stack_p <= 0 || (size_t)*stack_p >= (*nodes_p)->count)
        return NULL;
    node = &(*nodes_p)->list[*stack_p];
    if (node->frame < 0)
        return NULL;
    *row_p = (size_t)node->frame;
    *stack_p = node->parent;
    return json_array_get(report->frames, *row_p);
}

size_t ms_report_stack(const struct ms_report *report, json_int_t stack, json_t **frames, size_t max)
{
    size_t count = 0, row;

    while (count < max && (frames[count] = ms_report_stack_next(report, &stack, &row)) != NULL)
        count++;
    return count;
}

const char *ms_report_device_api(const json_t *row)
{
    const char *api = ms_report_text(row, "device_api");

    return *api ? api : "cuda";
}

json_int_t ms_report_reserved(const json_t *device)
{
    json_int_t held = ms_report_int(device, "peak_held_bytes"),
               live = ms_report_int(device, "peak_live_bytes"),
               pool = ms_report_int(device, "peak_reserved_bytes");

    held = held > live ? held : live;
    return held > pool ? held : pool;
}

json_int_t ms_report_held(const json_t *device)
{
    json_int_t live = ms_report_int(device, "live_bytes"), pool = ms_report_int(device, "reserved_bytes");

    return json_object_get(device, "held_bytes") ? ms_report_int(device, "held_bytes")
           : live > pool                         ? live
                                                 : pool;
}

const char *ms_report_device_prefix(const json_t *row)
{
    const char *api = ms_report_device_api(row);

    if (!strcmp(api, "hip"))
        return "hip ";
    return !strcmp(api, "acl") ? "acl " : "";
}

/* A device as rows name it. */
struct device_key {
    const char *api;
    json_int_t number;
    size_t row; /* of devices[] */
};

struct ms_report_device_index {
    size_t count;
    struct device_key keys[];
};

static int compare_devices(const void *a, const void *b)
{
    const struct device_key *x = a, *y = b;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return strcmp(x->api, y->api);
}

static int compare_device_rows(const void *a, const void *b)
{
    const struct device_key *x = a, *y = b;
    int order = compare_devices(a, b);

    return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

static struct ms_report_device_index *make_device_index(const struct ms_report *report)
{
    json_t *devices = ms_report_array(report->root, "devices"), *device;
    struct ms_report_device_index *index =
        malloc(sizeof(*index) + json_array_size(devices) * sizeof(struct device_key));
    size_t i;

    if (!index)
        return NULL;
    index->count = json_array_size(devices);
    json_array_foreach (devices, i, device) {
        const char *api = ms_report_text(device, "api");

        index->keys[i] = (struct device_key){*api ? api : "cuda", ms_report_int(device, "index"), i};
    }
    if (index->count)
        qsort(index->keys, index->count, sizeof(struct device_key), compare_device_rows);
    return index;
}

static size_t read_device_row(const struct ms_report *report, const char *api, json_int_t number)
{
    struct ms_report_device_index **index_p = &((struct ms_report *)report)->device_index;
    struct device_key wanted = {api, number, 0};
    size_t low = 0, high;

    if (!*index_p)
        *index_p = make_device_index(report);
    high = *index_p ? (*index_p)->count : 0;
    while (low < high) { /* the first that is not less */
        size_t middle = low + (high - low) / 2;

        if (compare_devices(&(*index_p)->keys[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (!*index_p || low == (*index_p)->count || compare_devices(&(*index_p)->keys[low], &wanted) != 0)
        return SIZE_MAX;
    return (*index_p)->keys[low].row;
}

size_t ms_report_device_of(const struct ms_report *report, const json_t *row)
{
    return read_device_row(report, ms_report_device_api(row), ms_report_int(row, "device"));
}

size_t ms_report_device_first(const struct ms_report *report, const json_t *device)
{
    const char *api = ms_report_text(device, "api");

    return read_device_row(report, *api ? api : "cuda", ms_report_int(device, "index"));
}

bool ms_report_is_device_memory(const json_t *site)
{
    static const char *const others[] = {"pinned", "registered", "imported"};
    const char *kind = ms_report_text(site, "kind");

    for (size_t i = 0; i < MS_ARRAY_LEN(others); i++) {
        if (!strcmp(kind, others[i]))
            return false;
    }
    return true;
}

static int check_version(const json_t *root, const char *path, char *error, size_t error_bytes)
{
    const char *version = ms_report_text(root, "schema_version");
    char *end;
    long major = strtol(version, &end, 10);

    if (!json_is_object(root) || end == version || *end != '.') {
        snprintf(error, error_bytes, "%s: no memshim report: it has no schema_version", path);
        return -1;
    }
    if (major != SCHEMA_MAJOR) {
        snprintf(error, error_bytes, "%s: report of schema version %.16s; this memshim reads version %d",
                 path, version, SCHEMA_MAJOR);
        return -1;
    }
    return 0;
}

/* True if the path is one that the user's own shell made, such as <(command), which may be a pipe. */
static bool is_inherited(const char *path)
{
    return !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/proc/self/fd/", 14) ||
           !strcmp(path, "/dev/stdin");
}

/* In a directory that others can write to a name may be a pipe that never ends or a device: neither is
 * opened. */
static int open_input(const char *path, char *error, size_t error_bytes)
{
    struct stat st;
    int fd;

    if (!strcmp(path, "-"))
        return dup(STDIN_FILENO);
    fd = is_inherited(path) ? open(path, O_RDONLY | O_CLOEXEC) : ms_file_open_regular(path, &st);
    if (fd < 0)
        snprintf(error, error_bytes, "cannot read %s: %s", path,
                 errno == EINVAL ? "no regular file" : strerror(errno));
    return fd;
}

int ms_report_read_fd(int fd, const char *path, struct ms_report *report_p, char *error, size_t error_bytes)
{
    struct ms_parse_fault fault;
    json_t *root = ms_parse_fd(fd, &fault);

    close(fd);
    if (!root && !fault.line)
        snprintf(error, error_bytes, "cannot read %s: %s", path, fault.text);
    else if (!root)
        snprintf(error, error_bytes, "%s: no JSON: line %zu, column %zu: %s", path, fault.line, fault.column,
                 fault.text);
    if (!root)
        return -1;
    if (check_version(root, path, error, error_bytes) < 0) {
        json_decref(root);
        return -1;
    }
    *report_p = (struct ms_report){
        .root = root,
        .sites = ms_report_array(root, "sites"),
        .stacks = ms_report_array(root, "stacks"),
        .frames = ms_report_array(root, "frames"),
        .modules = ms_report_array(root, "modules"),
    };
    return 0;
}

int ms_report_read(const char *path, struct ms_report *report_p, char *error, size_t error_bytes)
{
    int fd = open_input(path, error, error_bytes);

    return fd < 0 ? -1 : ms_report_read_fd(fd, path, report_p, error, error_bytes);
}

void ms_report_changed(struct ms_report *report)
{
    free(report->nodes);
    free(report->folds);
    free(report->site_rows);
    free(report->callers);
    report->callers = NULL;
    report->nodes = NULL;
    report->folds = NULL;
    report->site_rows = NULL;
}

void ms_report_close(struct ms_report *report)
{
    ms_report_changed(report);
    json_decref(report->root);
    free(report->site_index);
    free(report->module_index);
    free(report->device_index);
    memset(report, 0, sizeof(*report));
}
