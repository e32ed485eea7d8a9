/* Records go to the two sectors in turn, so that the one before is whole until the next one is. */
#include "counters.h"

#include <stddef.h>
#include <string.h>

struct record {
    uint32_t generation;
    struct motet_reservation kept;
    uint32_t check;
};

enum state { VALID, ERASED, DAMAGED };

/* What a node reserves at one time: as much as a record that is lost may have allowed. */
#define FRAMES_AT_ONE_TIME 8192
#define REQUESTS_AT_ONE_TIME 64
/* Beyond it a later key may be in use. */
#define COUNTER_MAX (UINT32_C(1) << 31)

/* FNV-1a: finds what flash loses, not who forges. */
static uint32_t check_of(const struct record *record) {
    const uint8_t *byte = (const uint8_t *)record;
    uint32_t sum = 0x811c9dc5;
    size_t i;
    for (i = 0; i < offsetof(struct record, check); i++) {
        sum = (sum ^ byte[i]) * 0x01000193;
    }
    return sum;
}

static uint32_t address_of(const struct counters *counters, uint32_t sector) {
    return sector * counters->flash->pages_per_sector * counters->flash->page_size;
}

static enum state look(const struct counters *counters, uint32_t sector, struct record *record) {
    const uint8_t *byte = (const uint8_t *)record;
    size_t i;
    if (mtd_read(counters->flash, record, address_of(counters, sector), sizeof *record) != 0) {
        return DAMAGED;
    }
    if (record->check == check_of(record) && record->generation % 2 == sector) {
        return VALID;
    }
    for (i = 0; i < sizeof *record; i++) {
        if (byte[i] != 0xff) {
            return DAMAGED;
        }
    }
    return ERASED;
}

int counters_open(struct counters *counters, mtd_dev_t *flash, struct motet_reservation *stored) {
    struct record records[2];
    enum state states[2];
    uint32_t newest;
    memset(stored, 0, sizeof *stored);
    counters->flash = flash;
    counters->generation = 0;
    if (mtd_init(flash) != 0) {
        return -1;
    }
    states[0] = look(counters, 0, &records[0]);
    states[1] = look(counters, 1, &records[1]);
    if (states[0] == ERASED && states[1] == ERASED) {
        return 0;
    }
    if (states[0] != VALID && states[1] != VALID) {
        return -1;
    }
    newest = states[0] != VALID
             || (states[1] == VALID && records[1].generation > records[0].generation);
    *stored = records[newest].kept;
    counters->generation = records[newest].generation;
    if (states[!newest] == DAMAGED) {
        /* It may have been newer, and frames may have been sent with it. */
        if (stored->counter >= COUNTER_MAX || stored->requests >= COUNTER_MAX) {
            return -1;
        }
        stored->counter += FRAMES_AT_ONE_TIME;
        stored->requests += REQUESTS_AT_ONE_TIME;
    }
    return 0;
}

int counters_store(struct counters *counters, const struct motet_reservation *reservation) {
    struct record record, written;
    uint32_t sector;
    memset(&record, 0, sizeof record);
    record.generation = counters->generation + 1;
    record.kept = *reservation;
    record.check = check_of(&record);
    sector = record.generation % 2;
    if (mtd_erase_sector(counters->flash, sector, 1) != 0
        || mtd_write(counters->flash, &record, address_of(counters, sector), sizeof record) != 0
        || mtd_read(counters->flash, &written, address_of(counters, sector), sizeof written) != 0
        || memcmp(&record, &written, sizeof record) != 0) {
        return -1;
    }
    counters->generation = record.generation;
    return 0;
}
