/* wrap.h - screens on a terminal: lines that are longer than it is wide go on below, at a space.
 *
 * Floor 5. What is piped, or written to a file, keeps a line for each row. */
#ifndef MS_CLI_WRAP_H
#define MS_CLI_WRAP_H

/** From now on, if standard output is a terminal: `stdout` wraps. JSON stays as it is. Allocates. */
void ms_wrap_screen(void);
/** Puts out the line that has no end yet. */
void ms_wrap_end(void);

#endif
