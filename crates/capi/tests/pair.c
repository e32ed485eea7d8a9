/* Two nodes of Motet in one program of C, over an air that this program plays. Prints what is wrong
 * and returns 1; returns 0 where all is well. */
#include <motet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRANSFER 10000
#define EVENTS 32
#define MEMORY 40000

enum what { PRELOADED, ASSESSED, TRANSMITTED, HEARD, SENT };

struct event {
    uint64_t at;
    enum what what;
    int node;
    uint8_t len;
    uint8_t psdu[127];
};

static struct event events[EVENTS];
static int pending;
static uint64_t now;
static uint64_t on_air_until[2];
static struct { uint8_t len, psdu[127]; } preloaded[2];
static uint64_t memory[2][MEMORY / 8];
static struct motet_node *nodes[2];
/* Whether the radios do CSMA and take ACKs by themselves; and how often each outcome came. */
static int is_whole, attempts, outcomes[5];

#define CHECK(what) check((what), #what, __LINE__)
static void check(int holds, const char *what, int line) {
    if (!holds) {
        printf("pair.c:%d: not so: %s\n", line, what);
        exit(1);
    }
}

static void put(uint64_t at, enum what what, int node, const uint8_t *psdu, size_t len) {
    CHECK(pending < EVENTS && len <= 127);
    events[pending].at = at;
    events[pending].what = what;
    events[pending].node = node;
    events[pending].len = (uint8_t)len;
    if (len > 0) {
        memcpy(events[pending].psdu, psdu, len);
    }
    pending++;
}

static void transmit(int node, const uint8_t *psdu, size_t len, uint64_t start) {
    uint64_t end = start + (6 + len) * 32;
    int other = 1 - node;
    int collides = on_air_until[other] > start;
    on_air_until[node] = end;
    put(end, TRANSMITTED, node, NULL, 0);
    if (!collides) {
        put(end, HEARD, other, psdu, len);
    }
}

/* A whole attempt of a radio: some find the channel busy, some frames and some ACKs are lost. */
static void attempt(int node, const uint8_t *psdu, size_t len) {
    int other = 1 - node, asks = (psdu[0] & 0x20) != 0, is_heard = 1;
    uint8_t outcome = asks ? MOTET_ACKED : MOTET_DONE;
    uint64_t start = now + 1120 + 128 + 192, end;
    attempts++;
    if (on_air_until[other] > start) {
        start = on_air_until[other] + 320;
    }
    end = start + (6 + len) * 32;
    if (attempts % 11 == 0) {
        outcome = MOTET_BUSY;
    } else if (attempts % 97 == 0) {
        outcome = MOTET_FAILED;
    } else if (asks && attempts % 13 == 0) {
        is_heard = 0;
        outcome = MOTET_NO_ACK;
    } else if (asks && attempts % 17 == 0) {
        outcome = MOTET_NO_ACK;
    }
    outcomes[outcome]++;
    if (outcome == MOTET_BUSY || outcome == MOTET_FAILED) {
        put(now + 10000, SENT, node, &outcome, 1);
        return;
    }
    on_air_until[node] = asks ? end + 544 : end;
    if (is_heard) {
        put(end, HEARD, other, psdu, len);
    }
    put(on_air_until[node], SENT, node, &outcome, 1);
}

static void perform(int node) {
    struct motet_action action;
    int result;
    while ((result = motet_poll(nodes[node], now, &action)) == 1) {
        switch (action.kind) {
        case MOTET_PRELOAD:
            preloaded[node].len = (uint8_t)action.len;
            memcpy(preloaded[node].psdu, action.bytes, action.len);
            put(now, PRELOADED, node, NULL, 0);
            break;
        case MOTET_ASSESS:
            CHECK(!is_whole);
            put(now + 128, ASSESSED, node, NULL, 0);
            break;
        case MOTET_FIRE:
            if (is_whole) {
                attempt(node, preloaded[node].psdu, preloaded[node].len);
                break;
            }
            transmit(node, preloaded[node].psdu, preloaded[node].len, now + 192);
            break;
        case MOTET_TRANSMIT:
            CHECK(!is_whole);
            transmit(node, action.bytes, action.len, action.at_us);
            break;
        default:
            break;
        }
    }
    CHECK(result == 0);
}

/* Goes on to what is next, and tells a node of it where it is an event. */
static void advance(void) {
    uint64_t next = UINT64_MAX, deadline;
    int node, i, first = -1;
    for (node = 0; node < 2; node++) {
        if (motet_next_deadline(nodes[node], &deadline) == 1 && deadline < next) {
            next = deadline;
        }
    }
    for (i = 0; i < pending; i++) {
        if (events[i].at <= next) {
            next = events[i].at;
            first = i;
        }
    }
    CHECK(next != UINT64_MAX);
    now = next > now ? next : now;
    if (first >= 0) {
        struct event event = events[first];
        pending--;
        memmove(&events[first], &events[first + 1], (size_t)(pending - first) * sizeof event);
        switch (event.what) {
        case PRELOADED:
            CHECK(motet_on_preloaded(nodes[event.node], now) == 0);
            break;
        case ASSESSED:
            CHECK(motet_on_assessed(nodes[event.node], on_air_until[1 - event.node] <= now, now) == 0);
            break;
        case TRANSMITTED:
            CHECK(motet_on_transmitted(nodes[event.node], event.at, now) == 0);
            break;
        case HEARD:
            CHECK(motet_on_frame(nodes[event.node], event.psdu, event.len, -50, 255, 26, event.at,
                                 now) == 0);
            break;
        case SENT:
            CHECK(motet_on_sent(nodes[event.node], event.psdu[0], false, event.at, now) == 0);
            break;
        }
    }
    perform(0);
    perform(1);
}

static void configure(struct motet_config *config, uint8_t number) {
    CHECK(motet_config_init(config) == 0);
    config->eui64[0] = 2;
    config->eui64[7] = number;
    config->pan = 0x4d54;
    config->seed[0] = number;
    config->datagrams_len = 512;
    config->assesses = config->takes_acks = config->auto_ack = (uint8_t)is_whole;
}

static void start(int node) {
    struct motet_config config;
    configure(&config, (uint8_t)(node + 1));
    CHECK(motet_node_size(&config) <= MEMORY);
    CHECK(motet_node_init(memory[node], sizeof memory[node], &config, now, &nodes[node]) == 0);
}

/* A node that cannot be is refused, and nothing is written. */
static void refuse_bad_memory(void) {
    struct motet_config config;
    struct motet_node *node = (struct motet_node *)memory;
    static uint64_t room[MEMORY / 8];
    size_t size, i;
    uint8_t *bytes = (uint8_t *)room;
    configure(&config, 1);
    size = motet_node_size(&config);
    CHECK(size > 0 && size % motet_node_align() == 0 && motet_node_size(NULL) == 0);
    memset(room, 0xa5, sizeof room);
    CHECK(motet_config_init(NULL) == -MOTET_EFAULT);
    CHECK(motet_node_init(NULL, size, &config, 0, &node) == -MOTET_EFAULT);
    CHECK(motet_node_init(room, size, NULL, 0, &node) == -MOTET_EFAULT);
    CHECK(motet_node_init(room, size, &config, 0, NULL) == -MOTET_EFAULT);
    CHECK(motet_node_init(bytes + 1, size, &config, 0, &node) == -MOTET_EFAULT);
    CHECK(motet_node_init(room, size - 1, &config, 0, &node) == -MOTET_ENOMEM);
    CHECK(motet_node_init(room, 0, &config, 0, &node) == -MOTET_ENOMEM);
    config.channel = 27;
    CHECK(motet_node_size(&config) == 0);
    CHECK(motet_node_init(room, size, &config, 0, &node) == -MOTET_EINVAL);
    /* No ACK of software can leave while the radio backs off by itself. */
    configure(&config, 1);
    config.assesses = 1;
    CHECK(motet_node_size(&config) == 0);
    CHECK(motet_node_init(room, size, &config, 0, &node) == -MOTET_EINVAL);
    configure(&config, 1);
    config.connections = 0;
    CHECK(motet_node_init(room, size, &config, 0, &node) == -MOTET_EINVAL);
    for (i = 0; i < sizeof room; i++) {
        CHECK(bytes[i] == 0xa5);
    }
    CHECK(node == (struct motet_node *)memory);
    /* Not one byte behind the size is written. */
    configure(&config, 1);
    CHECK(motet_node_init(room, size, &config, 0, &node) == 0);
    for (i = size; i < sizeof room; i++) {
        CHECK(bytes[i] == 0xa5);
    }
    CHECK(motet_node_end(node) == 0);
    CHECK(motet_node_end(node) == -MOTET_EBADF);
}

/* A handle that is no handle is refused, and nothing is written. */
static void refuse_bad_handles(int listener, int connection, int port) {
    static uint64_t copy[MEMORY / 8];
    struct motet_node *node = nodes[0];
    struct motet_action action;
    struct motet_source source;
    uint8_t byte = 7, address[16];
    uint64_t at = 5;
    int numbers[6], i;
    memcpy(copy, memory[0], sizeof copy);
    memset(&action, 0x5a, sizeof action);
    CHECK(motet_poll(NULL, now, &action) == -MOTET_EFAULT);
    CHECK(motet_poll((struct motet_node *)copy, now, &action) == -MOTET_EBADF);
    CHECK(motet_poll((struct motet_node *)((uint8_t *)memory[0] + 4), now, &action) == -MOTET_EFAULT);
    CHECK(motet_poll(node, now, NULL) == -MOTET_EFAULT);
    CHECK(action.kind == 0x5a && action.len == 0x5a5a);
    CHECK(motet_next_deadline(NULL, &at) == -MOTET_EFAULT && at == 5);
    CHECK(motet_address(node, 9, &address) == -MOTET_ENOENT);
    CHECK(motet_address(node, 0, NULL) == -MOTET_EFAULT);
    CHECK(motet_on_frame(node, NULL, 10, 0, 0, 26, now, now) == -MOTET_EFAULT);
    CHECK(motet_on_frame(node, &byte, 128, 0, 0, 26, now, now) == -MOTET_EINVAL);
    CHECK(motet_on_sent(NULL, MOTET_ACKED, false, now, now) == -MOTET_EFAULT);
    CHECK(motet_on_sent(node, MOTET_UNKNOWN + 1, false, now, now) == -MOTET_EINVAL);
    const uint64_t beyond[] = {(uint64_t)1 << 63, UINT64_MAX};
    for (size_t i = 0; i < 2; i++) {
        CHECK(motet_poll(node, beyond[i], &action) == -MOTET_EINVAL);
        CHECK(motet_on_preloaded(node, beyond[i]) == -MOTET_EINVAL);
    }
    numbers[0] = 0;
    numbers[1] = -1;
    numbers[2] = INT32_MAX;
    numbers[3] = connection ^ (1 << 20); /* stale */
    numbers[4] = listener;
    numbers[5] = port;
    for (i = 0; i < 6; i++) {
        CHECK(motet_tcp_send(node, numbers[i], &byte, 1, now) == -MOTET_EBADF);
        CHECK(motet_tcp_recv(node, numbers[i], &byte, 1) == -MOTET_EBADF && byte == 7);
        CHECK(motet_tcp_shutdown(node, numbers[i], now) == -MOTET_EBADF);
        CHECK(motet_tcp_abort(node, numbers[i]) == -MOTET_EBADF);
        CHECK(motet_tcp_unacknowledged(node, numbers[i]) == -MOTET_EBADF);
        CHECK(motet_tcp_connected(node, numbers[i]) == -MOTET_EBADF);
        if (i < 4) {
            CHECK(motet_close(node, numbers[i], now) == -MOTET_EBADF);
        }
        if (i != 4) {
            CHECK(motet_tcp_accept(node, numbers[i], now) == -MOTET_EBADF);
        }
        if (i != 5) {
            CHECK(motet_udp_recv(node, numbers[i], &byte, 1, &source) == -MOTET_EBADF);
        }
    }
    /* Of another node. */
    CHECK(motet_tcp_send(nodes[1], connection, &byte, 1, now) == -MOTET_EBADF);
    CHECK(motet_tcp_accept(nodes[1], listener, now) == -MOTET_EBADF);
    CHECK(motet_close(nodes[1], port, now) == -MOTET_EBADF);
    CHECK(motet_tcp_send(node, connection, NULL, 1, now) == -MOTET_EFAULT);
    CHECK(motet_tcp_recv(node, connection, NULL, 1) == -MOTET_EFAULT);
    CHECK(motet_tcp_recv(node, connection, &byte, 0) == -MOTET_EINVAL);
    CHECK(motet_udp_recv(node, port, &byte, 1, NULL) == -MOTET_EFAULT && byte == 7);
    CHECK(motet_udp_recv(node, port, &byte, 1, &source) == -MOTET_EAGAIN);
}

static void refuse_bad_ends(const uint8_t (*peer)[16]) {
    static const uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1};
    static const uint8_t global[16] = {0xfd, 1};
    static const uint8_t group[16] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    CHECK(motet_tcp_connect(nodes[0], NULL, 7, 0, now) == -MOTET_EFAULT);
    CHECK(motet_tcp_connect(nodes[0], peer, 0, 0, now) == -MOTET_EINVAL);
    CHECK(motet_tcp_connect(nodes[0], &mapped, 7, 0, now) == -MOTET_EINVAL);
    CHECK(motet_tcp_connect(nodes[0], &group, 7, 0, now) == -MOTET_EINVAL);
    CHECK(motet_tcp_connect(nodes[0], &global, 7, 0, now) == -MOTET_ENETUNREACH);
    CHECK(motet_tcp_listen(nodes[0], 0) == -MOTET_EINVAL);
}

/* Sends TRANSFER bytes each way over one connection. */
static void exchange(const uint8_t (*peer)[16], int listener) {
    size_t sent[2] = {0, 0}, received[2] = {0, 0}, i;
    uint8_t bytes[300];
    int sockets[2] = {-1, -1}, node, count;
    struct motet_change change;
    sockets[0] = motet_tcp_connect(nodes[0], peer, 7, 0, now);
    CHECK(sockets[0] > 0);
    while (received[0] < TRANSFER || received[1] < TRANSFER) {
        if (sockets[1] < 0) {
            sockets[1] = motet_tcp_accept(nodes[1], listener, now);
            CHECK(sockets[1] > 0 || sockets[1] == -MOTET_EAGAIN);
        }
        for (node = 0; node < 2 && sockets[node] > 0; node++) {
            while (sent[node] < TRANSFER) {
                size_t len = TRANSFER - sent[node] < sizeof bytes ? TRANSFER - sent[node] : sizeof bytes;
                for (i = 0; i < len; i++) {
                    bytes[i] = (uint8_t)((sent[node] + i) % 251 + (size_t)node);
                }
                count = motet_tcp_send(nodes[node], sockets[node], bytes, len, now);
                if (count == -MOTET_EAGAIN) {
                    break;
                }
                CHECK(count > 0);
                sent[node] += (size_t)count;
            }
            while ((count = motet_tcp_recv(nodes[node], sockets[node], bytes, sizeof bytes)) > 0) {
                for (i = 0; i < (size_t)count; i++) {
                    CHECK(bytes[i] == (uint8_t)((received[node] + i) % 251 + (size_t)(1 - node)));
                }
                received[node] += (size_t)count;
            }
            CHECK(count == -MOTET_EAGAIN || received[node] == TRANSFER);
            CHECK(motet_tcp_connected(nodes[node], sockets[node]) >= 0);
        }
        perform(0);
        perform(1);
        while ((count = motet_poll_changed(nodes[0], &change)) == 1) {
            CHECK(change.socket == sockets[0] && change.events != 0);
        }
        CHECK(count == 0);
        advance();
        CHECK(now < 600000000);
    }
    CHECK(motet_close(nodes[0], sockets[0], now) == 0);
    CHECK(motet_tcp_recv(nodes[0], sockets[0], bytes, 1) == -MOTET_EBADF);
    while ((count = motet_tcp_recv(nodes[1], sockets[1], bytes, 1)) == -MOTET_EAGAIN) {
        perform(0);
        perform(1);
        advance();
    }
    CHECK(count == 0);
    CHECK(motet_close(nodes[1], sockets[1], now) == 0);
    perform(0);
    perform(1);
}

static void exchange_datagrams(const uint8_t (*peer)[16], int port, int there) {
    struct motet_source source;
    uint8_t bytes[16];
    int count;
    CHECK(motet_udp_send(nodes[0], port, peer, 90, 0, (const uint8_t *)"ping", 4) == 0);
    while ((count = motet_udp_recv(nodes[1], there, bytes, sizeof bytes, &source)) == -MOTET_EAGAIN) {
        perform(0);
        advance();
    }
    CHECK(count == 4 && memcmp(bytes, "ping", 4) == 0 && source.port == 80);
    CHECK(motet_udp_send(nodes[1], there, (const uint8_t (*)[16])&source.address, source.port,
                         source.zone, bytes, 4) == 0);
    while ((count = motet_udp_recv(nodes[0], port, bytes, sizeof bytes, &source)) == -MOTET_EAGAIN) {
        perform(1);
        advance();
    }
    CHECK(count == 4 && source.port == 90);
}

/* Radios that make whole attempts, over a channel that is often busy or loses something. */
static void exchange_by_whole_attempts(void) {
    uint8_t address[16];
    const uint8_t (*peer)[16] = (const uint8_t (*)[16])&address;
    int listener, port, there, i;
    CHECK(motet_node_end(nodes[0]) == 0 && motet_node_end(nodes[1]) == 0);
    is_whole = 1;
    pending = 0;
    start(0);
    start(1);
    CHECK(motet_address(nodes[1], 0, &address) == 0);
    listener = motet_tcp_listen(nodes[1], 7);
    port = motet_udp_open(nodes[0], 80);
    there = motet_udp_open(nodes[1], 90);
    exchange_datagrams(peer, port, there);
    for (i = 0; i < 5; i++) {
        exchange(peer, listener);
    }
    for (i = 0; i < 5; i++) {
        CHECK(outcomes[i] > 0);
    }
}

int main(void) {
    uint8_t address[16];
    const uint8_t (*peer)[16] = (const uint8_t (*)[16])&address;
    int listener, here, connection, port, there, i, refused;
    refuse_bad_memory();
    start(0);
    start(1);
    CHECK(motet_address(nodes[1], 0, &address) == 0 && address[0] == 0xfe);
    refuse_bad_ends(peer);
    listener = motet_tcp_listen(nodes[1], 7);
    here = motet_tcp_listen(nodes[0], 9);
    port = motet_udp_open(nodes[0], 80);
    there = motet_udp_open(nodes[1], 90);
    CHECK(listener > 0 && here > 0 && port > 0 && there > 0);
    CHECK(motet_tcp_listen(nodes[0], 9) == -MOTET_EADDRINUSE);
    CHECK(motet_tcp_listen(nodes[0], 10) == -MOTET_ENFILE);
    CHECK(motet_udp_open(nodes[0], 80) == -MOTET_EADDRINUSE);
    exchange_datagrams(peer, port, there);
    /* More than there are places: each becomes free. */
    for (i = 0; i < 20; i++) {
        exchange(peer, listener);
    }
    connection = motet_tcp_connect(nodes[0], peer, 8, 0, now);
    CHECK(connection > 0);
    refuse_bad_handles(here, connection, port);
    perform(0);
    while ((refused = motet_tcp_connected(nodes[0], connection)) == 0) {
        advance();
    }
    CHECK(refused == -MOTET_ECONNREFUSED);
    CHECK(motet_tcp_abort(nodes[0], connection) == 0);
    /* Both places, and no third; what was lent to a listener in vain counts as free. */
    CHECK(motet_tcp_accept(nodes[0], here, now) == -MOTET_EAGAIN);
    CHECK(motet_tcp_connect(nodes[0], peer, 7, 0, now) > 0);
    CHECK(motet_tcp_connect(nodes[0], peer, 7, 0, now) > 0);
    CHECK(motet_tcp_connect(nodes[0], peer, 7, 0, now) == -MOTET_ENFILE);
    CHECK(motet_close(nodes[0], port, now) == 0 && motet_close(nodes[0], here, now) == 0);
    CHECK(motet_udp_send(nodes[0], port, peer, 90, 0, NULL, 0) == -MOTET_EBADF);
    exchange_by_whole_attempts();
    printf("%llu us\n", (unsigned long long)now);
    return 0;
}
