/* cxx.h - names of functions in C++ as demanglers spell them, and what people and rules want of them.
 *
 * Floor 4, command line only. Names come out of reports: any text is answered. */
#ifndef MS_REPORT_SYMBOLS_CXX_H
#define MS_REPORT_SYMBOLS_CXX_H

/** `name` without template arguments, for the caller to free(); as it is where its brackets do not match, and
 * where it begins with one. NULL without memory. */
char *ms_cxx_plain(const char *name);

/** The function alone, qualified by what it is in: without template arguments, parameters, the type it
 * returns, and what compilers put behind it. "rmm::mr::pool_memory_resource::allocate" of
 * "void* rmm::mr::pool_memory_resource<U>::allocate(unsigned long) const [clone .cold]". To be freed, or
 * NULL. */
char *ms_cxx_function(const char *name);

#endif
