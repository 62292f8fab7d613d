/* stacks.c - numbering what the report mentions of the stack tree.
 *
 * Floor 4. One thread, no lock: the tree and the list of objects are append-only. Numbers follow the tree's
 * ids, so that the order is that of first appearance, and a parent comes before its children. */
#include "config.h"

#include <string.h>
#include <sys/mman.h>

#include "base/objects.h"
#include "report/stacks.h"

enum { MENTIONED = 1 };

uint64_t ms_report_hash(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

int ms_report_stacks_open(struct ms_report_stacks *stacks)
{
    memset(stacks, 0, sizeof *stacks);
    size_t entries = (size_t)ms_stack_count() + 1;
    size_t each = sizeof *stacks->stacks + sizeof *stacks->frames + sizeof *stacks->numbers;
    void *memory = mmap(NULL, entries * each, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    stacks->memory = memory;
    stacks->memory_bytes = entries * each;
    stacks->node_count = (uint32_t)entries - 1;
    stacks->stacks = memory;
    stacks->frames = (void *)(stacks->stacks + entries);
    stacks->numbers = (void *)(stacks->frames + entries);
    return 0;
}

void ms_report_stacks_mention(struct ms_report_stacks *stacks, ms_stack_id id)
{
    ms_stack_id parent;
    uintptr_t frame;
    uint32_t generation;
    while (id && id <= stacks->node_count && stacks->numbers[id] != MENTIONED &&
           ms_stack_node(id, &parent, &frame, &generation) == 0) {
        stacks->numbers[id] = MENTIONED;
        id = parent;
    }
}

/* Frames by (module, rel_pc): open addressing, number + 1 in each place. */
struct frame_index {
    uint32_t *places;
    uint32_t mask;
};

static uint32_t frame_number(struct ms_report_stacks *stacks, struct frame_index *index,
                             const struct ms_report_frame *wanted)
{
    uint64_t h = (wanted->rel_pc ^ (uint64_t)(uint32_t)wanted->module << 40) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t place = (uint32_t)(h >> 32) & index->mask;
    for (; index->places[place]; place = (place + 1) & index->mask) {
        const struct ms_report_frame *frame = &stacks->frames[index->places[place] - 1];
        if (frame->rel_pc == wanted->rel_pc && frame->module == wanted->module)
            return index->places[place] - 1;
    }
    stacks->frames[stacks->frame_count] = *wanted;
    index->places[place] = ++stacks->frame_count;
    return stacks->frame_count - 1;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What stays the same of a frame from run to run. Code in no module moves freely: only its presence
 * counts. */
static uint64_t hash_frame(uint64_t hash, const struct ms_object *object, uint64_t rel_pc)
{
    if (!object)
        return ms_report_hash(hash, "?", 1);
    if (object->build_id_bytes)
        hash = ms_report_hash(hash, object->build_id, object->build_id_bytes);
    else
        hash = ms_report_hash(hash, file_name(object->path), strlen(file_name(object->path)));
    return ms_report_hash(hash, &rel_pc, sizeof rel_pc);
}

static const struct ms_object *find_object(uint64_t address, uint32_t generation, uint32_t *row_p)
{
    const struct ms_object *object = ms_object(*row_p); /* neighbours in the tree mostly lie in one object */
    if (object && object->generation == generation && address >= object->start && address < object->end)
        return object;
    return ms_object_of(address, generation, row_p);
}

void ms_report_stacks_number(struct ms_report_stacks *stacks)
{
    struct frame_index index = {NULL, 1023};
    while (index.mask / 2 < stacks->node_count)
        index.mask = index.mask * 2 + 1;
    size_t index_bytes = ((size_t)index.mask + 1) * sizeof *index.places;
    index.places =
        mmap(NULL, index_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool usable = index.places != MAP_FAILED;
    uint32_t row = 0;
    for (ms_stack_id id = 1; id <= stacks->node_count; id++) {
        ms_stack_id parent;
        uintptr_t address;
        uint32_t generation;
        if (stacks->numbers[id] != MENTIONED)
            continue;
        stacks->numbers[id] = 0;
        if (!usable || ms_stack_node(id, &parent, &address, &generation) != 0)
            continue;
        const struct ms_object *object = find_object(address, generation, &row);
        struct ms_report_frame frame = {object ? address - object->bias : address,
                                        object ? (int32_t)row : -1};
        struct ms_report_stack *stack = &stacks->stacks[++stacks->stack_count];
        stacks->numbers[id] = stacks->stack_count;
        stack->parent = stacks->numbers[parent];
        stack->frame = frame_number(stacks, &index, &frame);
        uint64_t hash = parent ? stacks->stacks[stack->parent].hash : MS_REPORT_HASH_START;
        stack->hash = hash_frame(hash, object, frame.rel_pc);
    }
    if (usable)
        munmap(index.places, index_bytes);
}

uint32_t ms_report_stacks_at(const struct ms_report_stacks *stacks, ms_stack_id id)
{
    return id && id <= stacks->node_count ? stacks->numbers[id] : 0;
}

uint64_t ms_report_stacks_hash(const struct ms_report_stacks *stacks, ms_stack_id id)
{
    uint32_t number = ms_report_stacks_at(stacks, id);
    return number ? stacks->stacks[number].hash : 0;
}

void ms_report_stacks_close(struct ms_report_stacks *stacks)
{
    if (stacks->memory)
        munmap(stacks->memory, stacks->memory_bytes);
    memset(stacks, 0, sizeof *stacks);
}
