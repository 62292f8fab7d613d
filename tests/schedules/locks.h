/* locks.h - which of memshim's locks a task holds, and whether the vendor may be called under them; locks.c.
 */
#ifndef MS_TESTS_SCHEDULES_LOCKS_H
#define MS_TESTS_SCHEDULES_LOCKS_H

/** At each call of the vendor's: fails where a lock is held that is not to be. */
void locks_at_vendor(void);

#endif
