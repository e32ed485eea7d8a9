/* Stands for RIOT's header of the same name: what the example uses of it. */
#ifndef STUB_ZTIMER64_H
#define STUB_ZTIMER64_H

#include <stdint.h>

typedef struct ztimer64_clock ztimer64_clock_t;
typedef struct { void *base[4]; void (*callback)(void *arg); void *arg; } ztimer64_t;

extern ztimer64_clock_t *const ZTIMER64_USEC;

uint64_t ztimer64_now(ztimer64_clock_t *clock);
void ztimer64_set_at(ztimer64_clock_t *clock, ztimer64_t *timer, uint64_t at);
void ztimer64_remove(ztimer64_clock_t *clock, ztimer64_t *timer);

#endif
