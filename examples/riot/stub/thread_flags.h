/* Stands for RIOT's header of the same name: what the example uses of it. */
#ifndef STUB_THREAD_FLAGS_H
#define STUB_THREAD_FLAGS_H

#include <stdint.h>
#include <thread.h>

typedef uint16_t thread_flags_t;

void thread_flags_set(thread_t *thread, thread_flags_t mask);
thread_flags_t thread_flags_wait_any(thread_flags_t mask);

#endif
