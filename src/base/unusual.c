/* unusual.c - the word of unusual.h. */
#include "config.h"

#include "base/unusual.h"

_Atomic uint32_t ms_unusual_bits = MS_UNUSUAL_SERVICE | MS_UNUSUAL_RECORD;
