/* slabs.h - memory for the values of a report that is read.
 *
 * Floor 4, command line only: one thread. */
#ifndef MS_REPORT_READ_SLABS_H
#define MS_REPORT_READ_SLABS_H

/** Between these two jansson takes its memory from slabs: what is read. Afterwards it takes malloc()'s again,
 * so that free() may have the text of json_dumps(); values of either kind are given back as ever. What was in
 * slabs is used again for values of the same size, and not returned to the system before the process ends. A
 * build with a sanitizer leaves jansson with malloc(), which that watches. */
void ms_slabs_begin(void);
void ms_slabs_end(void);

#endif
