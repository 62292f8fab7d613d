/* stacks.c - numbering what the report mentions of the stack tree.
 *
 * Floor 4. One thread, no lock: the tree and the list of objects are append-only. Numbers follow the tree's
 * ids, so that the order is that of first appearance, and a parent comes before its children. */
#include <string.h>
#include <sys/mman.h>

#include "base/objects/objects.h"
#include "report/write/stacks.h"
#include "base/files.h"
#include "unwind/frame.h"
#include "unwind/python/python.h"

/* The marks that stand in numbers[] until there are numbers. */
enum { MENTIONED = 1, MENTIONED_ITSELF };

/* Bits of `holds`; marks come behind, each at its number. */
enum { HOLDS_PYTHON = 1 };

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
    size_t codes = (size_t)ms_table_rows(MS_TABLE_CODES);
    size_t each = sizeof *stacks->stacks + sizeof *stacks->frames + sizeof *stacks->numbers;
    size_t bytes = entries * each + codes * (sizeof *stacks->codes + sizeof *stacks->code_rows);
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    stacks->memory = memory;
    stacks->memory_bytes = bytes;
    stacks->node_count = (uint32_t)entries - 1;
    stacks->stacks = memory;
    stacks->frames = (void *)(stacks->stacks + entries);
    stacks->numbers = (void *)(stacks->frames + entries);
    stacks->codes = stacks->numbers + entries;
    stacks->code_rows = stacks->codes + codes;
    stacks->code_total = (uint32_t)codes;
    return 0;
}

void ms_report_stacks_mention(struct ms_report_stacks *stacks, ms_stack_id id)
{
    ms_stack_id parent;
    uintptr_t frame;
    uint32_t generation;
    ms_stack_id itself = id;
    while (id && id <= stacks->node_count && !stacks->numbers[id] &&
           ms_stack_node(id, &parent, &frame, &generation) == 0) {
        stacks->numbers[id] = MENTIONED;
        id = parent;
    }
    if (itself && itself <= stacks->node_count && stacks->numbers[itself])
        stacks->numbers[itself] = MENTIONED_ITSELF;
}

/* Frames by (module, rel_pc): open addressing, number + 1 in each place. */
struct frame_index {
    uint32_t *places;
    uint32_t mask;
    uint32_t object; /* the latest that was found: neighbours in the tree mostly lie in one */
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

/* The part of a frame that stays the same from run to run. Code in no module moves freely: only its presence
 * counts. */
static uint64_t hash_frame(uint64_t hash, const struct ms_object *object, uint64_t rel_pc)
{
    if (!object)
        return ms_report_hash(hash, "?", 1);
    if (object->build_id_bytes)
        hash = ms_report_hash(hash, object->build_id, object->build_id_bytes);
    else
        hash = ms_report_hash(hash, ms_file_name(object->path), strlen(ms_file_name(object->path)));
    return ms_report_hash(hash, &rel_pc, sizeof rel_pc);
}

/* The part of a line of Python that stays the same: its function, as lines move with every change of the
 * file. */
static uint64_t hash_python(uint64_t hash, uint64_t frame)
{
    const struct ms_code *code = ms_code_at(ms_frame_code(frame));
    const char *file = code ? ms_code_text(code->file) : "", *name = code ? ms_code_text(code->name) : "";
    hash = ms_report_hash(hash, "python", sizeof "python");
    hash = ms_report_hash(hash, file, strlen(file) + 1);
    return ms_report_hash(hash, name, strlen(name) + 1);
}

/* The part of a mark that stays the same: what it says, and not of whom, as threads are numbered. A mark that
 * was inferred is of another thread's moment, and so another one in each run. */
static uint64_t hash_mark(uint64_t hash, uint64_t frame)
{
    enum ms_pseudo_frame mark = ms_frame_pseudo_of(frame);
    unsigned char byte = (unsigned char)mark;
    return ms_report_hash(mark == MS_PSEUDO_INFERRED ? MS_REPORT_HASH_START : hash, &byte, 1);
}

static const struct ms_object *find_object(uint64_t address, uint32_t generation, uint32_t *row_p)
{
    const struct ms_object *object = ms_object(*row_p);
    if (object && object->generation == generation && address >= object->start && address < object->end)
        return object;
    return ms_object_of(address, generation, row_p);
}

static void mention_code(struct ms_report_stacks *stacks, uint64_t frame)
{
    uint32_t row = ms_frame_code(frame);
    if (row < stacks->code_total && !stacks->codes[row]) {
        stacks->code_rows[stacks->code_count] = row;
        stacks->codes[row] = ++stacks->code_count;
    }
}

/* Returns the hash. */
static uint64_t number_native(struct frame_index *index, uint64_t hash, uint64_t address, uint32_t generation,
                              struct ms_report_frame *frame_p)
{
    const struct ms_object *object = find_object(address, generation, &index->object);
    if (object)
        *frame_p = (struct ms_report_frame){address - object->bias, (int32_t)index->object};
    else
        *frame_p = (struct ms_report_frame){address, -1};
    return hash_frame(hash, object, frame_p->rel_pc);
}

/* A node's frame, hash, and what its path holds. */
static void number_node(struct ms_report_stacks *stacks, struct frame_index *index,
                        struct ms_report_stack *stack, uint64_t address, uint32_t generation)
{
    const struct ms_report_stack *parent = &stacks->stacks[stack->parent];
    struct ms_report_frame frame = {address, MS_REPORT_NOT_NATIVE};
    uint64_t hash = stack->parent ? parent->hash : MS_REPORT_HASH_START;
    stack->holds = parent->holds;
    switch (ms_frame_kind(address)) {
    case MS_FRAME_PYTHON:
        mention_code(stacks, address);
        stack->hash = hash_python(hash, address);
        stack->holds |= HOLDS_PYTHON;
        break;
    case MS_FRAME_PSEUDO:
        stack->hash = hash_mark(hash, address);
        stack->holds |= 1u << (ms_frame_pseudo_of(address) & 31);
        break;
    default:
        stack->hash = number_native(index, hash, address, generation, &frame);
    }
    stack->frame = frame_number(stacks, index, &frame);
}

static void count_python(struct ms_report_python *python, uint32_t holds)
{
    if (holds & 1u << MS_PSEUDO_UNSURE)
        python->unsure++;
    else if (holds & 1u << MS_PSEUDO_INFERRED)
        python->inferred++;
    else if (holds & 1u << MS_PSEUDO_APART)
        python->apart++;
    else if (holds & HOLDS_PYTHON)
        python->merged++;
}

void ms_report_stacks_number(struct ms_report_stacks *stacks)
{
    struct frame_index index = {NULL, 1023, 0};
    while (index.mask / 2 < stacks->node_count)
        index.mask = index.mask * 2 + 1;
    size_t index_bytes = ((size_t)index.mask + 1) * sizeof *index.places;
    index.places =
        mmap(NULL, index_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool usable = index.places != MAP_FAILED;
    for (ms_stack_id id = 1; id <= stacks->node_count; id++) {
        ms_stack_id parent;
        uintptr_t address;
        uint32_t generation, mentioned = stacks->numbers[id];
        if (!mentioned)
            continue;
        stacks->numbers[id] = 0;
        if (!usable || ms_stack_node(id, &parent, &address, &generation) != 0)
            continue;
        struct ms_report_stack *stack = &stacks->stacks[++stacks->stack_count];
        stacks->numbers[id] = stacks->stack_count;
        stack->parent = stacks->numbers[parent];
        number_node(stacks, &index, stack, address, generation);
        if (mentioned == MENTIONED_ITSELF)
            count_python(&stacks->python, stack->holds);
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
