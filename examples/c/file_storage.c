/* A new file is written, brought to the disk and renamed; then the folder is brought to the disk. The record names
 * the moment when its own file was made, which no copy has. The lock file, written in place, counts records. */
#define _GNU_SOURCE
#include "file_storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE = 160, COUNT = 34 };

static int fail(struct file_storage *storage, const char *why) {
    storage->why = why;
    return -1;
}

static const char *with(const struct file_storage *storage, const char *end, char path[96]) {
    snprintf(path, 96, "%s%s", storage->name, end);
    return path;
}

/* FNV-1a: finds what a disk loses, not who forges. */
static unsigned long long check(const char *text, size_t len) {
    unsigned long long sum = 0xcbf29ce484222325u;
    while (len-- > 0) {
        sum = (sum ^ (unsigned char)*text++) * 0x100000001b3u;
    }
    return sum;
}

/* When a file was made; zeros where the file system keeps no such time. */
static int born(int file, char text[40]) {
    struct statx made;
    memset(&made, 0, sizeof made);
    if (statx(file, "", AT_EMPTY_PATH, STATX_BTIME, &made) != 0) {
        return -1;
    }
    snprintf(text, 40, "%lld.%09u", (long long)made.stx_btime.tv_sec,
             (unsigned)made.stx_btime.tv_nsec);
    return 0;
}

static int emit(const struct file_storage *storage, const struct motet_reservation *reservation,
                const char *born_at, char line[LINE]) {
    int len = snprintf(line, LINE, "motet-c-counters 2 %llu %lu %lu %lu %s ", storage->generation,
                       (unsigned long)reservation->sequence, (unsigned long)reservation->counter,
                       (unsigned long)reservation->requests, born_at);
    return len + snprintf(line + len, LINE - (size_t)len, "%016llx\n", check(line, (size_t)len));
}

/* The generation that the lock file has twice; what a power cut has cut short counts for nothing. */
static unsigned long long counted(int lock) {
    char text[COUNT + 1] = "";
    unsigned long long first = 0, second = 0;
    if (pread(lock, text, COUNT, 0) != COUNT ||
        sscanf(text, "%16llx %16llx", &first, &second) != 2 || first != second) {
        return 0;
    }
    return first;
}

static int read_record(struct file_storage *storage, struct motet_reservation *stored) {
    char line[LINE] = "", same[LINE], born_at[40], path[96];
    unsigned long sequence, counter, requests;
    unsigned long long newest = counted(storage->lock);
    int file = openat(storage->folder, with(storage, "", path), O_RDONLY | O_CLOEXEC);
    ssize_t len;
    memset(stored, 0, sizeof *stored);
    storage->generation = 0;
    if (file < 0) {
        if (errno != ENOENT) {
            return fail(storage, "cannot be read");
        }
        return newest == 0 ? 0 : fail(storage, "is missing: the node needs another key");
    }
    len = read(file, line, LINE - 1);
    if (len < 0 || born(file, born_at) != 0) {
        close(file);
        return fail(storage, "cannot be read");
    }
    close(file);
    if (sscanf(line, "motet-c-counters 2 %llu %lu %lu %lu", &storage->generation, &sequence, &counter,
               &requests) != 4) {
        return fail(storage, "is damaged: the node needs another key");
    }
    stored->sequence = (uint32_t)sequence;
    stored->counter = (uint32_t)counter;
    stored->requests = (uint32_t)requests;
    /* What is read is what would be written into this very file. */
    if (emit(storage, stored, born_at, same) == len && memcmp(line, same, (size_t)len) == 0 &&
        storage->generation >= newest) {
        return 0;
    }
    return fail(storage, "is damaged, a copy, or an older state: the node needs another key");
}

int file_storage_open(struct file_storage *storage, const char *folder, const char *name,
                      struct motet_reservation *stored) {
    char path[96];
    memset(storage, 0, sizeof *storage);
    storage->lock = -1;
    snprintf(storage->name, sizeof storage->name, "%s", name);
    storage->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (storage->folder >= 0) {
        storage->lock = openat(storage->folder, with(storage, ".lock", path),
                               O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    if (storage->lock < 0) {
        file_storage_close(storage);
        return fail(storage, "cannot be written");
    }
    if (flock(storage->lock, LOCK_EX | LOCK_NB) != 0) {
        file_storage_close(storage);
        return fail(storage, "is in use by another process");
    }
    if (read_record(storage, stored) != 0) {
        file_storage_close(storage);
        return -1;
    }
    return 0;
}

static int write_record(struct file_storage *storage, const struct motet_reservation *reservation) {
    char line[LINE], born_at[40], from[96], to[96];
    int len, is_written;
    int file = openat(storage->folder, with(storage, ".new", from),
                      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) {
        return -1;
    }
    len = born(file, born_at) == 0 ? emit(storage, reservation, born_at, line) : -1;
    is_written = len > 0 && write(file, line, (size_t)len) == len && fsync(file) == 0;
    return close(file) == 0 && is_written &&
                   renameat(storage->folder, from, storage->folder, with(storage, "", to)) == 0 &&
                   fsync(storage->folder) == 0
               ? 0
               : -1;
}

int file_storage_store(struct file_storage *storage, const struct motet_reservation *reservation) {
    char text[COUNT + 1], path[96];
    /* One that a power cut has left. */
    unlinkat(storage->folder, with(storage, ".new", path), 0);
    storage->generation++;
    if (write_record(storage, reservation) != 0) {
        unlinkat(storage->folder, with(storage, ".new", path), 0);
        return fail(storage, "cannot be written");
    }
    snprintf(text, sizeof text, "%016llx %016llx\n", storage->generation, storage->generation);
    if (pwrite(storage->lock, text, COUNT, 0) != COUNT || fsync(storage->lock) != 0) {
        return fail(storage, "cannot be written");
    }
    return 0;
}

void file_storage_close(struct file_storage *storage) {
    if (storage->lock >= 0) {
        close(storage->lock);
    }
    if (storage->folder >= 0) {
        close(storage->folder);
    }
    storage->lock = storage->folder = -1;
}
