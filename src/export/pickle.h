/* pickle.h - a pickle of protocol 2, written as it comes: numbers, texts, lists and dicts, and what is
 * written once and meant again.
 *
 * Floor 4, command line only. Reference: pickletools.py of CPython. Only the opcodes that PyTorch's
 * MemoryViz.js reads as well: no global, no number of more than 8 bytes, lists in batches. */
#ifndef MS_EXPORT_PICKLE_H
#define MS_EXPORT_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

void ms_pickle_begin(FILE *out);
void ms_pickle_end(FILE *out);
void ms_pickle_number(FILE *out, int64_t value);
void ms_pickle_flag(FILE *out, bool value);
void ms_pickle_text(FILE *out, const char *text);

/** Keep what was just written under this number, and write it again. */
void ms_pickle_keep(FILE *out, uint32_t number);
void ms_pickle_again(FILE *out, uint32_t number);

/** A dict: begin, then a key and a value each, end. */
void ms_pickle_dict(FILE *out);
void ms_pickle_dict_end(FILE *out);

struct ms_pickle_list {
    size_t batch; /* members since the last batch was closed */
};
/** A list: begin, `next` before each member, end. */
struct ms_pickle_list ms_pickle_list(FILE *out);
void ms_pickle_next(FILE *out, struct ms_pickle_list *list);
void ms_pickle_list_end(FILE *out);
/** The tuple (0, 0). */
void ms_pickle_pair(FILE *out);

#endif
