/* The flash of examples/riot with the power cut at every byte of each write: what is read afterwards is
 * the last record that was stored, or a later one, never an earlier one. Prints what is wrong and returns
 * 1; returns 0 where all is well. */
#include "../../../examples/riot/counters.c"

#include <stdio.h>
#include <stdlib.h>

enum { SECTOR = 64, LIVES = 400 };

static uint8_t bytes[2 * SECTOR];
/* Bytes that are still written or erased before the power is cut; and whether the flash is broken. */
static long left;
static int is_broken;

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("flash.c:%d: %s\n", __LINE__, #what); \
            exit(1); \
        } \
    } while (0)

int mtd_init(mtd_dev_t *mtd) {
    return mtd == NULL;
}

int mtd_read(mtd_dev_t *mtd, void *dest, uint32_t addr, uint32_t count) {
    (void)mtd;
    memcpy(dest, bytes + addr, count);
    return 0;
}

static int put(uint32_t addr, const uint8_t *src, uint32_t count) {
    uint32_t i;
    for (i = 0; i < count; i++) {
        if (is_broken || left-- <= 0) {
            return -1;
        }
        bytes[addr + i] = src == NULL ? 0xff : src[i];
    }
    return 0;
}

int mtd_write(mtd_dev_t *mtd, const void *src, uint32_t addr, uint32_t count) {
    (void)mtd;
    return put(addr, src, count);
}

int mtd_erase_sector(mtd_dev_t *mtd, uint32_t sector, uint32_t num) {
    (void)mtd;
    return put(sector * SECTOR, NULL, num * SECTOR);
}

static mtd_dev_t flash = { .sector_count = 2, .pages_per_sector = 1, .page_size = SECTOR };

int main(void) {
    struct counters counters;
    struct motet_reservation stored, before = { 0, 0, 0 }, wanted;
    long life;
    memset(bytes, 0xff, sizeof bytes);
    left = 1000000;
    CHECK(counters_open(&counters, &flash, &stored) == 0);
    CHECK(stored.counter == 0 && stored.requests == 0 && stored.sequence == 0);
    /* One record is whole, so that a power cut finds something. */
    wanted = (struct motet_reservation){ 3, FRAMES_AT_ONE_TIME, REQUESTS_AT_ONE_TIME };
    CHECK(counters_store(&counters, &wanted) == 0);
    before = wanted;
    for (life = 0; life < LIVES; life++) {
        int is_stored;
        left = 1000000;
        CHECK(counters_open(&counters, &flash, &stored) == 0);
        CHECK(stored.counter >= before.counter && stored.requests >= before.requests);
        CHECK(stored.counter <= before.counter + 2 * FRAMES_AT_ONE_TIME);
        CHECK(stored.sequence == 3);
        wanted = stored;
        wanted.counter += FRAMES_AT_ONE_TIME;
        wanted.requests += REQUESTS_AT_ONE_TIME;
        left = life % (SECTOR + (long)sizeof(struct record) + 2);
        is_stored = counters_store(&counters, &wanted) == 0;
        CHECK(is_stored == (left >= 0));
        /* A node sends nothing before its first record is stored. */
        before = is_stored ? wanted : before;
    }
    /* Flash that is broken for a while: refused, then stored after all. */
    left = 1000000;
    CHECK(counters_open(&counters, &flash, &stored) == 0);
    is_broken = 1;
    CHECK(counters_store(&counters, &stored) == -1 && counters_store(&counters, &stored) == -1);
    is_broken = 0;
    CHECK(counters_store(&counters, &stored) == 0);
    /* Nothing whole. */
    bytes[4] ^= 1;
    bytes[SECTOR + 4] ^= 1;
    CHECK(counters_open(&counters, &flash, &stored) == -1);
    /* The other sector may have been the newer one, of a later key. */
    memset(bytes, 0xff, sizeof bytes);
    CHECK(counters_open(&counters, &flash, &stored) == 0);
    wanted.counter = COUNTER_MAX;
    CHECK(counters_store(&counters, &wanted) == 0);
    CHECK(counters_open(&counters, &flash, &stored) == 0 && stored.counter == COUNTER_MAX);
    bytes[0] = 0;
    CHECK(counters_open(&counters, &flash, &stored) == -1);
    CHECK(counters_open(&counters, NULL, &stored) == -1);
    return 0;
}
