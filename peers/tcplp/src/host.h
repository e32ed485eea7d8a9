/* The host beneath TCPlp's protocol core, as Rust sees it (`src/lib.rs`): one connection, its
 * buffers, its timers, and the segments that it wants sent. Time is in milliseconds. */

#ifndef MOTET_HOST_H_
#define MOTET_HOST_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host;

/* A segment on its way out, without a checksum, behind room for an IPv6 header. */
struct host_segment
{
    uint8_t  source[16];
    uint8_t  destination[16];
    uint8_t *packet;
    uint16_t length; /* Of the segment. */
    uint8_t  ecn;
};

struct host_state
{
    bool established;
    bool may_send;
    bool finished; /* The peer has sent all, and all of it was read. */
    bool closed;
};

struct host *host_new(size_t send_size, size_t receive_size, uint32_t initial_number);
void         host_free(struct host *self);

void host_bind(struct host *self, const uint8_t address[16], uint16_t port);
bool host_connect(struct host *self, const uint8_t address[16], uint16_t port, uint32_t now);
void host_listen(struct host *self, uint32_t now);

/* `packet`: an IPv6 packet whose checksum is right and whose payload is a TCP segment. */
void host_input(struct host *self, const uint8_t *packet, size_t length, uint32_t now);
/* Gives the next segment to send; its bytes stay until the next call. */
bool host_output(struct host *self, struct host_segment *segment);

size_t host_send(struct host *self, const uint8_t *bytes, size_t length, uint32_t now);
size_t host_receive(struct host *self, uint8_t *bytes, size_t length, uint32_t now);
void   host_shutdown(struct host *self, uint32_t now);

/* Runs the timers that are due. */
void host_poll(struct host *self, uint32_t now);
/* Milliseconds until a timer is due; false: none runs. */
bool              host_deadline(const struct host *self, uint32_t now, uint32_t *wait);
struct host_state host_state(const struct host *self);

/* Bytes of the structures of an active and of a passive socket. */
size_t host_active_size(void);
size_t host_passive_size(void);

#endif
