/* subject.h - put before every source that runs under the engine.
 *
 * gcc says that ThreadSanitizer does not know fences. The engine does. */
#define MS_SCHEDULES 1
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif
