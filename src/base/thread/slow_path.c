/* slow_path.c - the word of slow_path.h. */
#include "base/thread/slow_path.h"

_Atomic uint64_t ms_slow_path_word = MS_SLOW_PATH_VOID | MS_SLOW_PATH_SERVICE | MS_SLOW_PATH_RECORD;
