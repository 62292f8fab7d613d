/*
 * facts.h: how the questions of `facts` say what they found. Each question has a file of its own.
 */
#ifndef MS_TESTS_GPU_FACTS_H
#define MS_TESTS_GPU_FACTS_H

#include "kit.h"

enum fact_id {
#define X(question, item, name, asked) FACT_##name,
#include "facts.def"
#undef X
    FACT_COUNT
};

/** One fact. Values are words without blanks around them; one that begins with "- " is the reason why there
 * is none. */
#define fact(name, ...) fact_say(FACT_##name, __VA_ARGS__)
__attribute__((format(printf, 2, 3))) void fact_say(enum fact_id id, const char *format, ...);

/** A status and the pointer that came with it, the form of all facts about allocations. */
const char *fact_status(int status, const void *pointer);

void facts_routes(int argc, char **argv);
void facts_lookups(int argc, char **argv);
void facts_nothing(int argc, char **argv);
void facts_async(int argc, char **argv);
void facts_waits(int argc, char **argv);
void facts_sticky(int argc, char **argv);
void facts_reset(int argc, char **argv);
void facts_costs(int argc, char **argv);
void facts_sizes(int argc, char **argv);
void facts_pools(int argc, char **argv);
void facts_frees(int argc, char **argv);
void facts_ipc(int argc, char **argv);
void facts_ipc_importer(int argc, char **argv);
void facts_capture(int argc, char **argv);
void facts_covers(int argc, char **argv);
void facts_hangs(int argc, char **argv);

#endif
