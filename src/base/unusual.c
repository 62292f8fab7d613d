/* unusual.c - the word of unusual.h. */
#include "config.h"

#include "base/unusual.h"

_Atomic uint64_t ms_slow_path_word = MS_SLOW_PATH_VOID | MS_SLOW_PATH_SERVICE | MS_SLOW_PATH_RECORD;
