/* small_stacks_paint.c - see small_stacks_paint.h. */
#include "tests/hooks/small_stacks_paint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAINT = 0xa5, NEAR = 384 };

static unsigned char *painted; /* BELOW_BYTES, then a stack */

void *paint_stack(void)
{
    painted =
        mmap(NULL, BELOW_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (painted == MAP_FAILED)
        exit(3);
    memset(painted, PAINT, BELOW_BYTES + STACK_BYTES);
    return painted + BELOW_BYTES;
}

void unpaint_stack(void)
{
    munmap(painted, BELOW_BYTES + STACK_BYTES);
}

size_t paint_first_used(void)
{
    size_t i = 0;

    while (i < BELOW_BYTES + STACK_BYTES && painted[i] == PAINT)
        i++;
    return i;
}

void paint_tell(const char *name, size_t used, int status)
{
    printf("%s %zu %s%s\n", name, used, paint_first_used() < BELOW_BYTES ? "beyond" : "within",
           status ? " failed" : "");
    fflush(stdout);
}

/* The paint goes on without a call, which would take it off again. */
__attribute__((noinline)) size_t paint_used_by(void (*call)(void))
{
    volatile unsigned char *here = __builtin_frame_address(0);

    for (volatile unsigned char *p = painted; p < here - NEAR; p++)
        *p = PAINT;
    call();
    return (size_t)((const unsigned char *)here - painted) - paint_first_used();
}

struct task {
    void (*before)(void), (*call)(void);
    size_t used;
};

static void *run_task(void *arg)
{
    struct task *task = arg;

    if (task->before)
        task->before();
    task->used = paint_used_by(task->call);
    return NULL;
}

bool paint_start(pthread_t *thread_p, void *stack, void *(*body)(void *), void *arg)
{
    pthread_attr_t attr;
    bool good;

    pthread_attr_init(&attr);
    good = pthread_attr_setstack(&attr, stack, STACK_BYTES) == 0 &&
           pthread_create(thread_p, &attr, body, arg) == 0;
    pthread_attr_destroy(&attr);
    return good;
}

void paint_measure(const char *name, void (*before)(void), void (*call)(void), int *status_p)
{
    struct task task = {before, call, 0};
    pthread_t thread;

    *status_p = 0;
    if (!paint_start(&thread, paint_stack(), run_task, &task)) {
        printf("%s 0 impossible\n", name);
        return;
    }
    pthread_join(thread, NULL);
    paint_tell(name, task.used, *status_p);
    unpaint_stack();
}
