/* Stands for RIOT's header of the same name: what the example uses of it. */
#ifndef STUB_THREAD_H
#define STUB_THREAD_H

typedef struct _thread thread_t;

thread_t *thread_get_active(void);

#endif
