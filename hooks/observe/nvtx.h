/* nvtx.h - what the files of NVTX share.
 *
 * Floor 3, for nvtx.c and nvtx_memory.c. */
#ifndef MS_HOOKS_OBSERVE_NVTX_H
#define MS_HOOKS_OBSERVE_NVTX_H

#include <stdint.h>

/** The place in the record's texts of what NVTX has for a text of that type (MS_NVTX_TEXT_); 0 for none.
 * `keep` is ms_phase_text or ms_phase_text_other. Inside a hook scope. */
uint32_t ms_nvtx_text(unsigned type, const void *text, uint32_t (*keep)(const char *));

#endif
