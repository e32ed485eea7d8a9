#include "mesh.h"

#include <stdio.h>
#include <string.h>

#if defined(MESH_KEY) || defined(MESH_JOIN)
#include <board.h>

#include "counters.h"

/* More than motet_key_size and motet_join_key_size say for 16 neighbours. */
#define KEY_MEMORY 4000

static uint64_t memory[KEY_MEMORY / sizeof(uint64_t)];
static struct counters counters;
#endif

#ifdef MESH_KEY
/* motet keys network team.key --format c > key.h */
#include "key.h"
#endif

#ifdef MESH_JOIN
/* motet keys device team.key EUI64 --format c > join_key.h */
static const uint8_t join_key[16] =
#include "join_key.h"
    ;
#endif

void mesh_configure(struct motet_config *config) {
#ifdef MESH_KEY
    config->pan = pan;
#else
    (void)config;
#endif
}

#if defined(MESH_KEY)
static int set_key(struct motet_node *node, const struct motet_reservation *stored) {
    struct motet_key key = { .sequence = key_sequence, .stored = *stored, .neighbors = 16 };
    memcpy(key.network, network_key, sizeof key.network);
    return motet_set_key(node, memory, sizeof memory, &key);
}
#elif defined(MESH_JOIN)
static int set_key(struct motet_node *node, const struct motet_reservation *stored) {
    struct motet_join_key key = { .stored = *stored, .neighbors = 16 };
    memcpy(key.key, join_key, sizeof key.key);
    return motet_set_join_key(node, memory, sizeof memory, &key);
}
#endif

int mesh_start(struct motet_node *node) {
    int result = 0;
#if defined(MESH_KEY) || defined(MESH_JOIN)
    struct motet_reservation stored;
    if (counters_open(&counters, MTD_0, &stored) != 0) {
        puts("the counters in flash are lost: the node needs another key");
        return -1;
    }
    result = set_key(node, &stored);
#endif
#ifdef MESH_SLEEP
    if (result == 0) {
        struct motet_sleep sleep;
        motet_sleep_init(&sleep);
        result = motet_set_sleep(node, &sleep);
    }
#endif
    (void)node;
    return result;
}

int mesh_store(struct motet_node *node, uint64_t now_us) {
#if defined(MESH_KEY) || defined(MESH_JOIN)
    struct motet_reservation wanted;
    if (motet_poll_reservation(node, now_us, &wanted) != 1) {
        return 0;
    }
    motet_on_reserved(node, &wanted, counters_store(&counters, &wanted) == 0, now_us);
    return 1;
#else
    (void)node;
    (void)now_us;
    return 0;
#endif
}

void mesh_print(struct motet_node *node) {
#ifdef MESH_JOIN
    static int before = -1;
    int state = motet_join_state(node);
    if (state != before) {
        printf("joining: %s\n", motet_join_words(state));
        before = state;
    }
#else
    (void)node;
#endif
}
