/* display_width.h - how many columns of a terminal a character takes.
 *
 * Floor 4, pure. The C library's wcwidth() says it of the locale's characters alone; reports are UTF-8 in
 * any. */
#ifndef MS_REPORT_TEXT_DISPLAY_WIDTH_H
#define MS_REPORT_TEXT_DISPLAY_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** 0 for what is drawn onto the one before it, 2 for East Asian wide ones and most emoji, else 1. */
size_t ms_wide_columns(uint32_t character);

#endif
