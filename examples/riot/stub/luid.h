/* Stands for RIOT's header of the same name: what the example uses of it. */
#ifndef STUB_LUID_H
#define STUB_LUID_H

#include <stddef.h>

void luid_get(void *out, size_t len);

#endif
