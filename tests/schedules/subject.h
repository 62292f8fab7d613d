/* subject.h - put before every source that runs under the engine.
 *
 * A pause of the processor's would be for nothing: one task runs. gcc says that ThreadSanitizer does not know
 * fences. The engine does. What is read on purpose while it changes (MS_UNSYNCHRONIZED) lies in a section of
 * its own, so that weak.c knows it, also where it would be inline. The processor's counter is the engine's
 * clock (world.c). */
#define MS_SCHEDULES           1
#define __builtin_ia32_pause() ((void)0)
unsigned long long world_ticks(void);
#define __builtin_ia32_rdtsc() world_ticks()
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#pragma GCC diagnostic ignored "-Wattributes"
#endif
