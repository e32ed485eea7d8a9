/* Stands for RIOT's header of the same name: what the example uses of it. */
#ifndef STUB_RANDOM_H
#define STUB_RANDOM_H

#include <stddef.h>
#include <stdint.h>

void random_bytes(uint8_t *out, size_t len);

#endif
