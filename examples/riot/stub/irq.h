/* Stands for RIOT's header of the same name: what the example uses of it. */
#ifndef STUB_IRQ_H
#define STUB_IRQ_H

unsigned irq_disable(void);
void irq_restore(unsigned state);

#endif
