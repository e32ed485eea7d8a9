/* Stands for RIOT's header of the same name: what the example uses of it. */
#ifndef STUB_MTD_H
#define STUB_MTD_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t sector_count;
    uint32_t pages_per_sector;
    uint32_t page_size;
} mtd_dev_t;

int mtd_init(mtd_dev_t *mtd);
int mtd_read(mtd_dev_t *mtd, void *dest, uint32_t addr, uint32_t count);
int mtd_write(mtd_dev_t *mtd, const void *src, uint32_t addr, uint32_t count);
int mtd_erase_sector(mtd_dev_t *mtd, uint32_t sector, uint32_t num);

#endif
