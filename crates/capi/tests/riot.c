/* The service of examples/riot, whose peer is played here: nothing of what it sent may be lost while
 * there is no room to send it back. Prints what is wrong and returns 1; returns 0 where all is well. */
#include <stdlib.h>
#define main riot_main
#include "../../../examples/riot/main.c"
#undef main

#define TOTAL 1000

static size_t received, returned;
static int turn, is_closed, is_reset;
static uint64_t now;

ztimer64_clock_t *const ZTIMER64_USEC = NULL;

uint64_t ztimer64_now(ztimer64_clock_t *clock) {
    (void)clock;
    return now;
}

int32_t motet_tcp_accept(struct motet_node *node, int32_t listener, uint64_t now_us) {
    (void)node;
    (void)now_us;
    return listener + 1;
}

/* Each third call has nothing. */
int32_t motet_tcp_recv(struct motet_node *node, int32_t socket, uint8_t *data, size_t len) {
    size_t i, left = TOTAL - received;
    (void)node;
    (void)socket;
    if (left > 0 && ++turn % 3 == 0) {
        return -MOTET_EAGAIN;
    }
    len = len < left ? len : left;
    for (i = 0; i < len; i++) {
        data[i] = (uint8_t)(received++ % 251);
    }
    return (int32_t)len;
}

/* Takes seven bytes, then has no room for once. */
int32_t motet_tcp_send(struct motet_node *node, int32_t socket, const uint8_t *data, size_t len,
                       uint64_t now_us) {
    size_t i;
    (void)node;
    (void)socket;
    (void)now_us;
    if (++turn % 2 == 0) {
        return -MOTET_EAGAIN;
    }
    for (i = 0; i < len && i < 7; i++) {
        if (data[i] != (uint8_t)(returned++ % 251)) {
            printf("riot.c: byte %u is another one\n", (unsigned)returned - 1);
            exit(1);
        }
    }
    return (int32_t)i;
}

int32_t motet_close(struct motet_node *node, int32_t socket, uint64_t now_us) {
    (void)node;
    (void)socket;
    (void)now_us;
    is_closed = 1;
    return 0;
}

int32_t motet_tcp_abort(struct motet_node *node, int32_t socket) {
    (void)node;
    (void)socket;
    is_reset = 1;
    return 0;
}

int main(void) {
    int calls, socket = serve(NULL, 2, -1);
    for (calls = 0; calls < 10 * TOTAL && socket > 0; calls++) {
        now += 1000000; /* Slowly: each call gets on. */
        socket = serve(NULL, 2, socket);
    }
    if (returned != TOTAL || !is_closed || is_reset) {
        printf("riot.c: %u bytes came back, closed: %d, reset: %d\n", (unsigned)returned, is_closed,
               is_reset);
        return 1;
    }
    /* The next peer says nothing. */
    socket = serve(NULL, 2, -1);
    received = 0;
    turn = 2;
    now += IDLE_MAX_US - 1;
    socket = serve(NULL, 2, socket);
    if (socket < 0 || is_reset) {
        printf("riot.c: an idle peer is reset too early\n");
        return 1;
    }
    now += 1;
    turn = 2;
    socket = serve(NULL, 2, socket);
    if (socket >= 0 || !is_reset) {
        printf("riot.c: an idle peer keeps its place\n");
        return 1;
    }
    return 0;
}
