/* A node's frame counters in a file, where there is an operating system. */
#ifndef FILE_STORAGE_H
#define FILE_STORAGE_H

#include <motet.h>

struct file_storage {
    int folder;
    int lock;
    unsigned long long generation;
    char name[80];
    /* Why a call has failed: the end of a sentence. */
    const char *why;
};

/* Opens the counters `name` in `folder`, one name for each key and EUI-64, and takes their lock. Writes what was
 * stored last to `stored`, zeros for a node that has never had the key. Returns 0, or -1: then the node must not
 * send with this key. */
int file_storage_open(struct file_storage *storage, const char *folder, const char *name,
                      struct motet_reservation *stored);

/* Returns 0 when no power cut can take the reservation back, else -1. */
int file_storage_store(struct file_storage *storage, const struct motet_reservation *reservation);

/* Gives the lock back. */
void file_storage_close(struct file_storage *storage);

#endif
