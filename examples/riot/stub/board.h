/* Stands for a board's header: what the example uses of it. */
#ifndef STUB_BOARD_H
#define STUB_BOARD_H

#include <mtd.h>

extern mtd_dev_t flash;

#define MTD_0 (&flash)

#endif
