/* The host beneath lwIP, as Rust sees it (`src/lib.rs`): one connection of one lwIP of its own, its
 * received bytes, and the packets that it wants sent. Time is in milliseconds.
 *
 * One caller at a time: lwIP's variables are those of the host that was called last. */

#ifndef MOTET_LWIP_HOST_H_
#define MOTET_LWIP_HOST_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host;

/* Where an end point sits, and how large it is. */
struct host_seat
{
    uint8_t  local[16];
    uint8_t  remote[16];
    uint16_t local_port;
    uint16_t remote_port;
    uint16_t mss;
    uint16_t send_size;
    uint16_t receive_size;
    uint32_t seed;
    uint8_t  hop_limit;
    bool     opens;
};

struct host_state
{
    bool may_send;
    bool finished; /* The peer has sent all, and all of it was read. */
    bool closed;
};

struct host *lwip_host_new(const struct host_seat *seat, uint32_t now);
void         lwip_host_free(struct host *self);

/* `packet`: an IPv6 packet. */
void lwip_host_input(struct host *self, const uint8_t *packet, size_t length, uint32_t now);
/* Gives the next packet to send, or NULL; its bytes stay until the next call. */
const uint8_t *lwip_host_output(struct host *self, size_t *length);

size_t lwip_host_send(struct host *self, const uint8_t *bytes, size_t length, uint32_t now);
size_t lwip_host_receive(struct host *self, uint8_t *bytes, size_t length, uint32_t now);
void   lwip_host_shutdown(struct host *self, uint32_t now);

/* Runs the timers that are due. */
void lwip_host_poll(struct host *self, uint32_t now);
/* Milliseconds until a timer is due; false: none runs. */
bool              lwip_host_deadline(struct host *self, uint32_t now, uint32_t *wait);
struct host_state lwip_host_state(struct host *self);

/* Bytes of the structures of an active and of a passive socket. */
size_t lwip_host_active_size(void);
size_t lwip_host_passive_size(void);

#endif
