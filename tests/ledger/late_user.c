/* Ends with memory that its library (late.c) still holds, and which that gives back in its destructor; with
 * LATE in the environment in a function that was registered before any library began, and so is called behind
 * all of them. */
#include <stdlib.h>

int late_take(void);
void late_give_back(void);

static void last(int status, void *unused)
{
    (void)status, (void)unused;
    if (getenv("LATE"))
        late_give_back();
}

static void first(void)
{
    on_exit(last, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*const before_all)(void) = first;

int main(void)
{
    return late_take();
}
