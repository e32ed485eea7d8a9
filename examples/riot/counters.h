/* A node's counters in the first two sectors of a flash, which nothing else uses. */
#ifndef MOTET_RIOT_COUNTERS_H
#define MOTET_RIOT_COUNTERS_H

#include <motet.h>
#include <mtd.h>

struct counters {
    mtd_dev_t *flash;
    /* Counts the records; the sector of the newest one is the number's last bit. */
    uint32_t generation;
};

/* Writes what was stored last to `stored`, zeros for flash that is erased. Returns 0, or -1 where that is not
 * known: then the node must not send with this key. */
int counters_open(struct counters *counters, mtd_dev_t *flash, struct motet_reservation *stored);

/* Returns 0 when no power cut can take the reservation back, else -1. It may take the time of an erased
 * sector, some 100 ms: the node waits for nothing meanwhile but its own thread. */
int counters_store(struct counters *counters, const struct motet_reservation *reservation);

#endif
