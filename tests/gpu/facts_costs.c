/*
 * facts_costs.c: question 6: what calls cost on an idle device. `costs` measures the same with more
 * patience. */
#include "costs.h"
#include "facts.h"

#include <string.h>

#define REPETITIONS 15
#define MOST_MS     250

static void one(enum fact_id id, const struct cost_call *call, size_t most_bytes)
{
    struct cost_figures figures;
    char text[400] = "";
    size_t used = 0;

    for (size_t i = 0; i < (call->sized ? cost_size_count : 1); i++) {
        if (call->sized && cost_sizes[i] > most_bytes)
            break;
        int status = cost_measure(call, cost_sizes[i], REPETITIONS, MOST_MS, &figures);
        if (status != 0) {
            fact_say(id, "- it answers %d", status);
            return;
        }
        if (call->sized)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%zu=%.0f", used ? " " : "",
                                     cost_sizes[i], figures.median_ns);
        else
            snprintf(text, sizeof text, "%.0f", figures.median_ns);
    }
    fact_say(id, "%s", text);
}

void facts_costs(int argc, char **argv)
{
    size_t left, total;

    (void)argc;
    (void)argv;
    kit_begin();
    cost_begin();
    kit_must(cuMemGetInfo_v2(&left, &total));
    _Static_assert(FACT_cudaMemGetInfo_ns - FACT_cudaMalloc_ns == 19,
                   "facts and calls go together, in one order");
    for (size_t i = 0; i < cost_call_count; i++)
        one((enum fact_id)(FACT_cudaMalloc_ns + i), &cost_calls[i], left / 4);
}
