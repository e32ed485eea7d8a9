/* What lwIP asks of its compiler and its system: numbers that look random, and an end to a program
 * whose lwIP has found a fault of its own. */

#ifndef MOTET_LWIP_CC_H_
#define MOTET_LWIP_CC_H_

#include <stdint.h>

uint32_t host_random(void);
void     host_panic(const char *message) __attribute__((noreturn));

#define LWIP_RAND() host_random()
#define LWIP_PLATFORM_ASSERT(message) host_panic(message)
#define LWIP_PLATFORM_DIAG(message)

#endif
