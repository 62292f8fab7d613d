/* listeners.c - see listeners.h. */
#include "hooks/lookup/listeners.h"

#include <stdatomic.h>

#include "base/objects/objects.h"

static atomic_bool came, unseen;

void ms_listener_came(void)
{
    if (!atomic_exchange(&came, true))
        ms_objects_changed(); /* by which every thread learns anew */
}

void ms_listener_unseen(void)
{
    if (!atomic_exchange(&unseen, true))
        ms_objects_changed();
}

bool ms_listener_is_there(bool loaded)
{
    return atomic_load(&came) || (loaded && atomic_load(&unseen));
}
