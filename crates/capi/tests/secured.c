/* Two nodes with a key, their counters in files: restarts, failures and refusals. The air is pair.c's. */
#define _GNU_SOURCE
#define main pair_main
#include "pair.c"
#undef main
#include "../../../examples/c/file_storage.h"

#include <signal.h>
#include <sys/resource.h>

#define NONCES 40000

static struct file_storage storages[2];
static uint64_t keys[2][4000 / 8];
static int refuses;

static struct { uint64_t nonce; uint8_t len, psdu[127]; } seen[NONCES];
static size_t seen_count;

/* Sender, counter and key index of a sealed frame: no two frames share them. */
static void look(const uint8_t *psdu, size_t len) {
    uint64_t nonce;
    size_t i;
    if (len < 32 || (psdu[0] & 7) == 2) {
        return;
    }
    CHECK(psdu[0] & 8);
    /* Frame control 2, number 1, PAN 2, destination 2 or 8, source 8, security control 1, counter 4, index 1. */
    i = 5 + ((psdu[1] & 0x0c) == 0x0c ? 8 : 2);
    nonce = (uint64_t)psdu[i] << 40 | (uint64_t)psdu[i + 13] << 32;
    nonce |= (uint64_t)psdu[i + 9] | (uint64_t)psdu[i + 10] << 8 | (uint64_t)psdu[i + 11] << 16 |
             (uint64_t)psdu[i + 12] << 24;
    for (i = 0; i < seen_count; i++) {
        if (seen[i].nonce == nonce) {
            CHECK(seen[i].len == len && memcmp(seen[i].psdu, psdu, len) == 0);
            return;
        }
    }
    CHECK(seen_count < NONCES);
    seen[seen_count].nonce = nonce;
    seen[seen_count].len = (uint8_t)len;
    memcpy(seen[seen_count].psdu, psdu, len);
    seen_count++;
}

static int answer(int node) {
    struct motet_reservation wanted;
    int is_stored;
    if (motet_poll_reservation(nodes[node], now, &wanted) != 1) {
        return 0;
    }
    is_stored = !refuses && file_storage_store(&storages[node], &wanted) == 0;
    CHECK(motet_on_reserved(nodes[node], &wanted, is_stored, now) == 0);
    return 1;
}

/* One step of both nodes and of the air. */
static void step(void) {
    int node, i;
    for (node = 0; node < 2; node++) {
        do {
            perform(node);
        } while (answer(node));
    }
    for (i = 0; i < pending; i++) {
        if (events[i].what == HEARD) {
            look(events[i].psdu, events[i].len);
        }
    }
    advance();
}

static void give(int node, const char *folder) {
    struct motet_key key;
    char name[8];
    memset(&key, 0, sizeof key);
    memcpy(key.network, "sixteen bytes of", 16);
    key.neighbors = 16;
    snprintf(name, sizeof name, "node%d", node);
    CHECK(file_storage_open(&storages[node], folder, name, &key.stored) == 0);
    CHECK(motet_key_size(&key) > 0 && motet_key_size(&key) <= sizeof keys[node]);
    CHECK(motet_set_key(nodes[node], keys[node], motet_key_size(&key) - 1, &key) == -MOTET_ENOMEM);
    CHECK(motet_set_key(nodes[node], NULL, sizeof keys[node], &key) == -MOTET_EFAULT);
    CHECK(motet_set_key(nodes[node], keys[node], sizeof keys[node], NULL) == -MOTET_EFAULT);
    CHECK(motet_set_key(nodes[node], keys[node], sizeof keys[node], &key) == 0);
    CHECK(motet_set_key(nodes[node], keys[node], sizeof keys[node], &key) == -MOTET_EINVAL);
    key.neighbors = 0;
    CHECK(motet_key_size(&key) == 0 && motet_key_size(NULL) == 0);
}

static void begin(const char *folder) {
    int node;
    pending = 0;
    on_air_until[0] = on_air_until[1] = 0;
    for (node = 0; node < 2; node++) {
        start(node);
        give(node, folder);
    }
}

static void end(void) {
    int node;
    for (node = 0; node < 2; node++) {
        CHECK(motet_node_end(nodes[node]) == 0);
        file_storage_close(&storages[node]);
    }
}

/* A datagram there, within so many seconds of virtual time; says whether it came. */
static int speak(int seconds) {
    uint8_t peer[16], bytes[16];
    struct motet_source source;
    uint64_t until = now + (uint64_t)seconds * 1000000, again = now;
    int port = motet_udp_open(nodes[0], 80), there = motet_udp_open(nodes[1], 90), count = -1;
    CHECK(port > 0 && there > 0);
    CHECK(motet_address(nodes[1], 0, &peer) == 0);
    while (count < 0 && now < until) {
        if (now >= again) {
            motet_udp_send(nodes[0], port, (const uint8_t (*)[16])&peer, 90, 0,
                           (const uint8_t *)"ping", 4);
            again = now + 500000;
        }
        step();
        count = motet_udp_recv(nodes[1], there, bytes, sizeof bytes, &source);
    }
    CHECK(motet_close(nodes[0], port, now) == 0 && motet_close(nodes[1], there, now) == 0);
    return count == 4;
}

static void shell(const char *folder, const char *words) {
    char line[400];
    snprintf(line, sizeof line, "cd %s && %s", folder, words);
    CHECK(system(line) == 0);
}

static void is_refused(const char *folder, const char *why) {
    struct file_storage storage;
    struct motet_reservation stored;
    CHECK(file_storage_open(&storage, folder, "node0", &stored) == -1);
    if (strstr(storage.why, why) == NULL) {
        printf("refused because it %s\n", storage.why);
        exit(1);
    }
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : ".";
    int life;
    size_t before;
    /* Lives that end wherever they are. */
    for (life = 0; life < 8; life++) {
        begin(folder);
        CHECK(speak(60));
        is_refused(folder, "in use");
        end();
    }
    CHECK(seen_count > 20);
    /* A disk that is full: no file may grow, as this kernel says it. */
    {
        struct rlimit none, usual;
        signal(SIGXFSZ, SIG_IGN);
        CHECK(getrlimit(RLIMIT_FSIZE, &usual) == 0);
        none = usual;
        none.rlim_cur = 0;
        begin(folder);
        CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
        before = seen_count;
        CHECK(!speak(25) && seen_count == before);
        CHECK(setrlimit(RLIMIT_FSIZE, &usual) == 0);
        CHECK(strstr(storages[0].why, "cannot be written") != NULL);
        CHECK(speak(30));
        end();
        shell(folder, "test ! -e node0.new && test ! -e node1.new");
    }
    /* Put back, cut short, gone. */
    shell(folder, "cp -p node0 kept");
    begin(folder);
    CHECK(speak(60));
    end();
    shell(folder, "cp -p node0 newest && cat kept > node0");
    is_refused(folder, "a copy, or an older state");
    shell(folder, "mv kept node0");
    is_refused(folder, "a copy, or an older state");
    shell(folder, "truncate -s -1 node0");
    is_refused(folder, "damaged");
    shell(folder, ": > node0");
    is_refused(folder, "damaged");
    shell(folder, "rm node0");
    is_refused(folder, "is missing");
    return 0;
}
