/* unusual.c - the word of unusual.h. */
#include "config.h"

#include "base/unusual.h"

_Atomic uint64_t ms_unusual_word = MS_UNUSUAL_VOID | MS_UNUSUAL_SERVICE | MS_UNUSUAL_RECORD;
