/* The host beneath lwIP: an interface that hands packets over, an application that reads and writes by
 * the raw API as ESP-IDF's sockets do, and several lwIPs in one program.
 *
 * All that lwIP knows is in its global variables and in memory that it allocates. The variables lie in
 * two sections (`build.rs`), and before a host is at work their contents are exchanged for its own. What
 * it has allocated is on a list, and goes with the host. */

#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwip/init.h"
#include "lwip/ip6.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"

/* A window of segments, and the ACKs and resets beside it. */
#define PACKETS_MAX 32
/* IPv6 header, TCP header with options, and the MSS. */
#define PACKET_LEN_MAX 1320
/* Every IPv6 link has it at least; no segment here is as long. */
#define MTU 1280

/* Before the memory that lwIP was given, on a list of all that a host's lwIP has. */
union block
{
    struct
    {
        union block *next;
        union block *previous;
    } links;
    max_align_t alignment;
};

struct packet
{
    size_t  length;
    uint8_t bytes[PACKET_LEN_MAX];
};

struct host
{
    /* lwIP's variables, while another host is at work. */
    uint8_t         *variables;
    union block      allocated;
    struct host_seat seat;
    uint32_t         randomness;

    struct netif    interface;
    struct tcp_pcb *connection;
    struct tcp_pcb *listener;
    struct pbuf    *received;
    bool            shut;
    bool            peer_shut;
    bool            closed;

    struct packet packets[PACKETS_MAX];
    size_t        first;
    size_t        count;
};

/* ---- Of the host at work: lwIP's settings and functions of the system take no argument ---- */

uint16_t host_mss;
uint16_t host_window;
uint16_t host_send_size;
uint8_t  host_hop_limit;

static struct host *at_work;
static uint32_t     clock_ms;

uint32_t sys_now(void) { return clock_ms; }

uint32_t host_initial_number(void) { return at_work->seat.seed * UINT32_C(0x9e3779b9); }

/* Marsaglia's xorshift: no zero, no randomness. */
uint32_t host_random(void)
{
    uint32_t x = at_work->randomness;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    at_work->randomness = x;
    return x;
}

void host_panic(const char *message)
{
    fprintf(stderr, "lwIP found a fault of its own: %s\n", message);
    abort();
}

void *host_allocate(size_t length)
{
    union block *block = malloc(sizeof(*block) + length);
    union block *list  = &at_work->allocated;

    if (block == NULL)
    {
        return NULL;
    }
    block->links.previous             = list;
    block->links.next                 = list->links.next;
    list->links.next->links.previous  = block;
    list->links.next                  = block;
    return block + 1;
}

void *host_allocate_zeroed(size_t count, size_t length)
{
    void *memory = length == 0 || count <= SIZE_MAX / length ? host_allocate(count * length) : NULL;

    return memory == NULL ? NULL : memset(memory, 0, count * length);
}

void host_release(void *memory)
{
    union block *block = (union block *)memory - 1;

    block->links.previous->links.next = block->links.next;
    block->links.next->links.previous = block->links.previous;
    free(block);
}

/* ---- Several lwIPs ---- */

extern uint8_t __start_lwip_data[], __stop_lwip_data[];
extern uint8_t __start_lwip_bss[], __stop_lwip_bss[];

static size_t data_length(void) { return (size_t)(__stop_lwip_data - __start_lwip_data); }
static size_t bss_length(void) { return (size_t)(__stop_lwip_bss - __start_lwip_bss); }

static void copy_out(uint8_t *variables)
{
    memcpy(variables, __start_lwip_data, data_length());
    memcpy(variables + data_length(), __start_lwip_bss, bss_length());
}

static void copy_in(const uint8_t *variables)
{
    memcpy(__start_lwip_data, variables, data_length());
    memcpy(__start_lwip_bss, variables + data_length(), bss_length());
}

/* Memory for lwIP's variables, as they are when a program starts. */
static uint8_t *new_variables(void)
{
    static uint8_t *at_start;
    const size_t    length    = data_length() + bss_length();
    uint8_t        *variables = malloc(length);

    if (variables == NULL)
    {
        return NULL;
    }
    if (at_start == NULL)
    {
        at_start = malloc(length);
        if (at_start == NULL)
        {
            free(variables);
            return NULL;
        }
        copy_out(at_start);
    }
    return memcpy(variables, at_start, length);
}

static void enter(struct host *self, uint32_t now)
{
    clock_ms = now;
    if (at_work == self)
    {
        return;
    }
    if (at_work != NULL)
    {
        copy_out(at_work->variables);
    }
    copy_in(self->variables);
    at_work        = self;
    host_mss       = self->seat.mss;
    host_window    = self->seat.receive_size;
    host_send_size = self->seat.send_size;
    host_hop_limit = self->seat.hop_limit;
}

/* ---- What lwIP calls ---- */

static err_t on_packet_out(struct netif *interface, struct pbuf *buffer, const ip6_addr_t *next_hop)
{
    struct host   *self = interface->state;
    struct packet *packet;

    (void)next_hop;
    if (self->count == PACKETS_MAX || buffer->tot_len > PACKET_LEN_MAX)
    {
        return ERR_BUF;
    }
    packet         = &self->packets[(self->first + self->count) % PACKETS_MAX];
    packet->length = pbuf_copy_partial(buffer, packet->bytes, buffer->tot_len, 0);
    self->count++;
    return ERR_OK;
}

static err_t on_interface(struct netif *interface)
{
    interface->output_ip6 = on_packet_out;
    interface->mtu        = MTU;
    interface->name[0]    = 'm';
    interface->name[1]    = 'o';
    return ERR_OK;
}

static err_t on_received(void *argument, struct tcp_pcb *connection, struct pbuf *buffer, err_t error)
{
    struct host *self = argument;

    (void)connection;
    (void)error;
    if (buffer == NULL)
    {
        self->peer_shut = true;
    }
    else if (self->received == NULL)
    {
        self->received = buffer;
    }
    else
    {
        pbuf_cat(self->received, buffer);
    }
    return ERR_OK;
}

/* The connection is over, and its memory free. */
static void on_error(void *argument, err_t error)
{
    struct host *self = argument;

    (void)error;
    self->connection = NULL;
    self->closed     = true;
}

static void adopt(struct host *self, struct tcp_pcb *connection)
{
    self->connection = connection;
    tcp_arg(connection, self);
    tcp_recv(connection, on_received);
    tcp_err(connection, on_error);
}

static err_t on_connected(void *argument, struct tcp_pcb *connection, err_t error)
{
    (void)argument;
    (void)connection;
    (void)error;
    return ERR_OK;
}

static err_t on_accepted(void *argument, struct tcp_pcb *connection, err_t error)
{
    struct host *self = argument;

    if (error != ERR_OK || self->connection != NULL || self->closed)
    {
        return ERR_ABRT;
    }
    adopt(self, connection);
    return ERR_OK;
}

/* What follows once lwIP has returned: within its calls, neither socket may be touched. */
static void settle(struct host *self)
{
    if (self->connection != NULL && self->listener != NULL)
    {
        tcp_close(self->listener);
        self->listener = NULL;
    }
    if (self->connection != NULL && self->connection->state == TIME_WAIT)
    {
        /* lwIP frees it without a word. */
        tcp_arg(self->connection, NULL);
        tcp_recv(self->connection, NULL);
        tcp_err(self->connection, NULL);
        self->connection = NULL;
        self->closed     = true;
    }
}

/* ---- What Rust calls ---- */

static ip_addr_t address_of(const uint8_t bytes[16])
{
    ip_addr_t address;

    memset(&address, 0, sizeof(address));
    memcpy(ip_2_ip6(&address)->addr, bytes, 16);
    return address;
}

static void start(struct host *self)
{
    const ip_addr_t local  = address_of(self->seat.local);
    const ip_addr_t remote = address_of(self->seat.remote);
    struct tcp_pcb *socket;

    lwip_init();
    netif_add(&self->interface, self, on_interface, ip6_input);
    netif_set_default(&self->interface);
    netif_set_up(&self->interface);
    netif_set_link_up(&self->interface);
    netif_ip6_addr_set(&self->interface, 0, ip_2_ip6(&local));
    netif_ip6_addr_set_state(&self->interface, 0, IP6_ADDR_PREFERRED);

    socket = tcp_new_ip_type(IPADDR_TYPE_V6);
    if (socket == NULL || tcp_bind(socket, &local, self->seat.local_port) != ERR_OK)
    {
        host_panic("no socket");
    }
    if (self->seat.opens)
    {
        adopt(self, socket);
        if (tcp_connect(socket, &remote, self->seat.remote_port, on_connected) != ERR_OK)
        {
            host_panic("no connection");
        }
        return;
    }
    self->listener = tcp_listen(socket);
    if (self->listener == NULL)
    {
        host_panic("no listener");
    }
    tcp_arg(self->listener, self);
    tcp_accept(self->listener, on_accepted);
}

struct host *lwip_host_new(const struct host_seat *seat, uint32_t now)
{
    struct host *self = calloc(1, sizeof(*self));

    if (self == NULL)
    {
        return NULL;
    }
    self->variables = new_variables();
    if (self->variables == NULL)
    {
        free(self);
        return NULL;
    }
    self->seat                     = *seat;
    self->randomness               = seat->seed | 1;
    self->allocated.links.next     = &self->allocated;
    self->allocated.links.previous = &self->allocated;
    enter(self, now);
    start(self);
    return self;
}

void lwip_host_free(struct host *self)
{
    union block *block = self->allocated.links.next;

    while (block != &self->allocated)
    {
        union block *next = block->links.next;

        free(block);
        block = next;
    }
    if (at_work == self)
    {
        at_work = NULL;
    }
    free(self->variables);
    free(self);
}

void lwip_host_input(struct host *self, const uint8_t *packet, size_t length, uint32_t now)
{
    struct pbuf *buffer;

    enter(self, now);
    if (length > PACKET_LEN_MAX)
    {
        return;
    }
    buffer = pbuf_alloc(PBUF_RAW, (u16_t)length, PBUF_RAM);
    if (buffer == NULL)
    {
        return;
    }
    pbuf_take(buffer, packet, (u16_t)length);
    ip6_input(buffer, &self->interface);
    settle(self);
}

const uint8_t *lwip_host_output(struct host *self, size_t *length)
{
    const struct packet *packet = &self->packets[self->first];

    if (self->count == 0)
    {
        return NULL;
    }
    self->first = (self->first + 1) % PACKETS_MAX;
    self->count--;
    *length = packet->length;
    return packet->bytes;
}

size_t lwip_host_send(struct host *self, const uint8_t *bytes, size_t length, uint32_t now)
{
    uint8_t flags = TCP_WRITE_FLAG_COPY;
    size_t  room;

    enter(self, now);
    if (!lwip_host_state(self).may_send)
    {
        return 0;
    }
    room = tcp_sndbuf(self->connection);
    if (room < length)
    {
        length = room;
        flags |= TCP_WRITE_FLAG_MORE;
    }
    if (length == 0 || tcp_write(self->connection, bytes, (u16_t)length, flags) != ERR_OK)
    {
        return 0;
    }
    tcp_output(self->connection);
    settle(self);
    return length;
}

size_t lwip_host_receive(struct host *self, uint8_t *bytes, size_t length, uint32_t now)
{
    u16_t taken;

    enter(self, now);
    if (self->received == NULL)
    {
        return 0;
    }
    length         = length < UINT16_MAX ? length : UINT16_MAX;
    taken          = pbuf_copy_partial(self->received, bytes, (u16_t)length, 0);
    self->received = pbuf_free_header(self->received, taken);
    if (self->connection != NULL)
    {
        tcp_recved(self->connection, taken);
    }
    settle(self);
    return taken;
}

void lwip_host_shutdown(struct host *self, uint32_t now)
{
    enter(self, now);
    if (lwip_host_state(self).may_send && tcp_shutdown(self->connection, 0, 1) == ERR_OK)
    {
        self->shut = true;
    }
    settle(self);
}

void lwip_host_poll(struct host *self, uint32_t now)
{
    enter(self, now);
    sys_check_timeouts();
    settle(self);
}

bool lwip_host_deadline(struct host *self, uint32_t now, uint32_t *wait)
{
    enter(self, now);
    *wait = sys_timeouts_sleeptime();
    return *wait != SYS_TIMEOUTS_SLEEPTIME_INFINITE;
}

struct host_state lwip_host_state(struct host *self)
{
    const struct tcp_pcb *connection = self->connection;
    struct host_state     state      = {0};

    if (connection != NULL)
    {
        state.may_send = !self->shut && (connection->state == ESTABLISHED || connection->state == CLOSE_WAIT);
    }
    state.finished = self->peer_shut && self->received == NULL;
    state.closed   = self->closed;
    return state;
}

size_t lwip_host_active_size(void) { return sizeof(struct tcp_pcb); }
size_t lwip_host_passive_size(void) { return sizeof(struct tcp_pcb_listen); }
