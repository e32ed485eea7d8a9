/*
 * An echo node in C: one radio, one listener, two connections of 2 KiB each way. Its linked image is
 * what `cargo xtask apps` measures of the C interface; nobody runs it.
 *
 * The radio is made up, a block of registers whose accesses are volatile, so that nothing that the
 * node computes for it can be optimised away.
 */
#include "motet.h"

struct registers {
    uint32_t clock_us, clock_wraps, seed[4], eui64[2];
    uint32_t events, frame_len, frame_at, channel, action, action_at;
    uint8_t frame[127], sent[127];
};

#define RADIO ((volatile struct registers *)0x40000000u)
#define PRELOADED 1u
#define ASSESSED_CLEAR 2u
#define ASSESSED_BUSY 4u
#define TRANSMITTED 8u
#define RECEIVED 16u

/* A peer that says nothing for so long makes room for another one. */
#define IDLE_MAX_US (120 * 1000000ULL)

static uint64_t memory[2900];
static uint8_t psdu[127];
/* When the peer last sent something that was taken. */
static uint64_t active_us;

static uint64_t now_us(void)
{
    return (uint64_t)RADIO->clock_wraps << 32 | RADIO->clock_us;
}

static void perform(const motet_action *action)
{
    uint16_t i;

    for (i = 0; i < action->len; i++)
        RADIO->sent[i] = action->bytes[i];
    RADIO->action_at = (uint32_t)action->at_us;
    RADIO->channel = action->channel;
    RADIO->action = action->kind;
}

static void report(motet_node *node)
{
    uint32_t events = RADIO->events, i, len;

    if (events & PRELOADED)
        motet_on_preloaded(node, now_us());
    if (events & (ASSESSED_CLEAR | ASSESSED_BUSY))
        motet_on_assessed(node, events & ASSESSED_CLEAR, now_us());
    if (events & TRANSMITTED)
        motet_on_transmitted(node, RADIO->frame_at, now_us());
    if (events & RECEIVED) {
        len = RADIO->frame_len & 127;
        for (i = 0; i < len; i++)
            psdu[i] = RADIO->frame[i];
        motet_on_frame(node, psdu, len, -60, 255, 26, RADIO->frame_at, now_us());
    }
}

static int32_t echo(motet_node *node, int32_t listener, int32_t peer)
{
    uint8_t bytes[64];
    int32_t count;

    if (peer < 0) {
        active_us = now_us();
        return motet_tcp_accept(node, listener, now_us());
    }
    count = motet_tcp_recv(node, peer, bytes, sizeof bytes);
    if (count > 0) {
        motet_tcp_send(node, peer, bytes, (uintptr_t)count, now_us());
        active_us = now_us();
    }
    if (now_us() - active_us >= IDLE_MAX_US) {
        motet_tcp_abort(node, peer);
        return -1;
    }
    if (count > 0 || count == -MOTET_EAGAIN)
        return peer;
    motet_close(node, peer, now_us());
    return -1;
}

int main(void)
{
    motet_config config;
    motet_node *node;
    motet_action action;
    uint64_t at;
    int32_t listener, peer = -1;
    int i;

    motet_config_init(&config);
    for (i = 0; i < 8; i++)
        config.eui64[i] = (uint8_t)(RADIO->eui64[i / 4] >> 8 * (i % 4));
    config.seed[0] = (uint64_t)RADIO->seed[0] << 32 | RADIO->seed[1];
    config.seed[1] = (uint64_t)RADIO->seed[2] << 32 | RADIO->seed[3];
    config.pan = 0x4d54;
    if (motet_node_init(memory, sizeof memory, &config, now_us(), &node) < 0)
        return 1;
    listener = motet_tcp_listen(node, 7);
    for (;;) {
        report(node);
        peer = echo(node, listener, peer);
        while (motet_poll(node, now_us(), &action) == 1)
            perform(&action);
        if (motet_next_deadline(node, &at) != 1)
            at = UINT64_MAX;
        if (peer >= 0 && at > active_us + IDLE_MAX_US)
            at = active_us + IDLE_MAX_US;
        if (at != UINT64_MAX)
            RADIO->action_at = (uint32_t)at;
    }
}
