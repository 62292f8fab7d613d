/* scopes.c - see scopes.h.
 *
 * Floor 4, command line only. */
#include "report/symbols/scopes.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/compiler.h"

/* A stretch of code of a function; one that was split has several. */
struct function {
    Dwarf_Addr start, end;
    Dwarf_Die die;
};

struct ms_scopes_unit {
    struct ms_scopes_unit *next;
    const void *address; /* of the unit's entry, which no other has */
    struct function *functions;
    size_t count;
};

/* The file is not trusted: what names itself as its own part ends somewhere. */
enum { DEPTH_MAX = 256 };

static bool scopes_add(struct ms_scopes_unit *unit, const struct function *function)
{
    size_t count = unit->count;

    if (!(count & (count - 1))) { /* full: capacities are powers of two */
        struct function *grown = realloc(unit->functions, (count ? 2 * count : 1) * sizeof(*grown));

        if (!grown)
            return false;
        unit->functions = grown;
    }
    unit->functions[unit->count++] = *function;
    return true;
}

static bool add_function(struct ms_scopes_unit *unit, Dwarf_Die *die)
{
    struct function function = {.die = *die};
    ptrdiff_t offset = 0;
    Dwarf_Addr base;

    while ((offset = dwarf_ranges(die, offset, &base, &function.start, &function.end)) > 0)
        if (function.start < function.end && !scopes_add(unit, &function))
            return false;
    return true;
}

/* Functions stand in the unit itself, or in namespaces and classes. */
static bool scopes_collect(struct ms_scopes_unit *unit, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die child;
    bool more = true;

    if (depth == DEPTH_MAX || dwarf_child(parent, &child) != 0)
        return true;
    do {
        switch (dwarf_tag(&child)) {
        case DW_TAG_subprogram:
            more = add_function(unit, &child);
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
            more = scopes_collect(unit, &child, depth + 1);
            break;
        default:
            break;
        }
    } while (more && dwarf_siblingof(&child, &child) == 0);
    return more;
}

static int scopes_compare(const void *a, const void *b)
{
    const struct function *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static struct ms_scopes_unit *look_into(struct ms_scopes *scopes, Dwarf_Die *die)
{
    uint64_t hash = (uint64_t)(uintptr_t)die->addr * 0x9e3779b97f4a7c15u >> 48;
    struct ms_scopes_unit **first = &scopes->units[hash % MS_ARRAY_LEN(scopes->units)];
    struct ms_scopes_unit *unit = *first;

    while (unit && unit->address != die->addr)
        unit = unit->next;
    if (unit || !(unit = calloc(1, sizeof(*unit))))
        return unit;
    unit->address = die->addr;
    unit->next = *first;
    *first = unit;
    scopes_collect(unit, die, 0);
    if (unit->count)
        qsort(unit->functions, unit->count, sizeof(*unit->functions), scopes_compare);
    return unit;
}

static const struct function *function_at(const struct ms_scopes_unit *unit, Dwarf_Addr pc)
{
    size_t low = 0, high = unit->count;

    while (low < high) { /* the first that starts behind pc */
        size_t middle = low + (high - low) / 2;

        if (unit->functions[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low && pc < unit->functions[low - 1].end ? &unit->functions[low - 1] : NULL;
}

/* The part of `parent` that has the address. */
static bool step_in(Dwarf_Die *parent, Dwarf_Addr pc, Dwarf_Die *child_p)
{
    if (dwarf_child(parent, child_p) != 0)
        return false;
    do {
        switch (dwarf_tag(child_p)) {
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
        case DW_TAG_with_stmt:
        case DW_TAG_entry_point:
        case DW_TAG_inlined_subroutine:
            if (dwarf_haspc(child_p, pc) > 0)
                return true;
            break;
        default:
            break;
        }
    } while (dwarf_siblingof(child_p, child_p) == 0);
    return false;
}

size_t ms_scopes_find(struct ms_scopes *scopes, Dwarf_Die *unit, Dwarf_Addr pc, Dwarf_Die *chain, size_t max)
{
    const struct ms_scopes_unit *known = look_into(scopes, unit);
    const struct function *function = known ? function_at(known, pc) : NULL;
    size_t count = 0;

    if (!function || !max)
        return 0;
    chain[count++] = function->die;
    while (count < max && step_in(&chain[count - 1], pc, &chain[count]))
        count++;
    return count;
}

void ms_scopes_free(struct ms_scopes *scopes)
{
    for (size_t i = 0; i < MS_ARRAY_LEN(scopes->units); i++) {
        for (struct ms_scopes_unit *unit = scopes->units[i], *next; unit; unit = next) {
            next = unit->next;
            free(unit->functions);
            free(unit);
        }
    }
}
