/* A node of Motet on RIOT: echoes what it is sent at port 7, and counts what it echoes.
 *
 * The thread that runs main is the node's: it tells the node what the radio reports, carries out
 * what the node wants, serves, and sleeps until the next event or deadline. */
#include <stdio.h>

#include <luid.h>
#include <random.h>
#include <thread.h>
#include <thread_flags.h>
#include <ztimer64.h>

#ifdef MODULE_SOCKET_ZEP
#include <socket_zep.h>
#include <socket_zep_params.h>
#endif
#ifdef MODULE_NRF802154
#include <nrf802154.h>
#endif

#include "flags.h"
#include "mesh.h"
#include "radio.h"

#define NODE_MEMORY 24000
#ifndef PAN
#define PAN 0x4d54
#endif
#define PORT 7
/* A peer that says nothing for so long makes room for another one. */
#define IDLE_MAX_US (120 * 1000000ULL)

static uint64_t memory[NODE_MEMORY / sizeof(uint64_t)];
static ieee802154_dev_t dev;

static uint64_t now_us(void) {
    return ztimer64_now(ZTIMER64_USEC);
}

static void set_up_radio(void) {
#ifdef MODULE_SOCKET_ZEP
    static socket_zep_t zep;
    socket_zep_hal_setup(&zep, &dev);
    socket_zep_setup(&zep, &socket_zep_params[0]);
#endif
#ifdef MODULE_NRF802154
    nrf802154_hal_setup(&dev);
    nrf802154_init();
#endif
}

static void configure(struct motet_config *config) {
    motet_config_init(config);
    luid_get(config->eui64, sizeof config->eui64);
    /* Locally administered, and no group. */
    config->eui64[0] = (uint8_t)((config->eui64[0] | 2) & ~1);
    config->pan = PAN;
    random_bytes((uint8_t *)config->seed, sizeof config->seed);
    mesh_configure(config);
    radio_describe(&dev, config);
}

/* What the peer has sent and what of it was sent back, and when it last got on. */
static struct { uint8_t bytes[64]; int len, sent; uint64_t active_us; } echo;

/* Serves one peer; returns its socket, or one below 0 where there is none. */
static int serve(struct motet_node *node, int listener, int socket) {
    if (socket < 0) {
        echo.len = echo.sent = 0;
        echo.active_us = now_us();
        return motet_tcp_accept(node, listener, now_us());
    }
    for (;;) {
        int result = 0;
        while (echo.sent < echo.len) {
            result = motet_tcp_send(node, socket, echo.bytes + echo.sent,
                                    (size_t)(echo.len - echo.sent), now_us());
            if (result < 0) {
                break;
            }
            echo.sent += result;
            echo.active_us = now_us();
        }
        if (result >= 0) {
            result = motet_tcp_recv(node, socket, echo.bytes, sizeof echo.bytes);
        }
        if (result == -MOTET_EAGAIN) {
            if (now_us() - echo.active_us < IDLE_MAX_US) {
                return socket; /* Goes on when the peer has sent or taken something. */
            }
            motet_tcp_abort(node, socket);
            return -1;
        }
        if (result <= 0) {
            motet_close(node, socket, now_us());
            return -1;
        }
        echo.len = result;
        echo.sent = 0;
        echo.active_us = now_us();
        printf("echoing %d bytes\n", result);
    }
}

static void on_deadline(void *thread) {
    thread_flags_set(thread, FLAG_TIME);
}

static void print_address(struct motet_node *node) {
    uint8_t address[16];
    int i;
    if (motet_address(node, 0, &address) == 0) {
        for (i = 0; i < 16; i++) {
            printf("%02x%s", address[i], i % 2 && i < 15 ? ":" : "");
        }
        printf(" port %d\n", PORT);
    }
}

int main(void) {
    struct motet_config config;
    struct motet_node *node;
    struct motet_action action;
    ztimer64_t timer = { .callback = on_deadline, .arg = thread_get_active() };
    int listener, socket = -1, result;
    set_up_radio();
    configure(&config);
    result = motet_node_init(memory, sizeof memory, &config, now_us(), &node);
    if (result < 0) {
        printf("the node does not start: %d, it needs %u bytes\n", result,
               (unsigned)motet_node_size(&config));
        return 1;
    }
    result = mesh_start(node);
    if (result < 0) {
        printf("the node gets no key, or does not sleep: %d\n", result);
        return 1;
    }
    result = radio_start(&dev, &config);
    if (result < 0) {
        printf("the radio does not start: %d\n", result);
        return 1;
    }
    listener = motet_tcp_listen(node, PORT);
    print_address(node);
    for (;;) {
        uint64_t at;
        radio_report(node);
        while (motet_poll(node, now_us(), &action) == 1) {
            radio_perform(&action);
        }
        socket = serve(node, listener, socket);
        /* What the service said, and what the radio was asked that answers at once. */
        while (motet_poll(node, now_us(), &action) == 1) {
            radio_perform(&action);
        }
        mesh_print(node);
        if (mesh_store(node, now_us()) || radio_has_report()) {
            continue;
        }
        at = UINT64_MAX;
        motet_next_deadline(node, &at);
        if (socket >= 0 && at > echo.active_us + IDLE_MAX_US) {
            at = echo.active_us + IDLE_MAX_US;
        }
        if (at != UINT64_MAX) {
            ztimer64_set_at(ZTIMER64_USEC, &timer, at);
        }
        thread_flags_wait_any(FLAG_RADIO | FLAG_TIME);
        ztimer64_remove(ZTIMER64_USEC, &timer);
    }
}
