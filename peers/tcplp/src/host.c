/* The host beneath TCPlp's protocol core: what OpenThread's `Tcp` and `Message` are to it, for
 * one connection, and no more. Messages are flat; timers are four deadlines; there is no
 * checksum here: Rust verifies and writes it, as OpenThread does outside the core. */

#include "host.h"

#include <stdlib.h>
#include <string.h>

#include <openthread/tcp.h>

#include "tcplp.h"
#include "bsdtcp/tcp_const.h"
#include "bitmap.h"
#include "cbuf.h"
#include "lbuf.h"

/* A window of segments, and the ACKs and resets beside it. */
#define MESSAGES_MAX 32
/* The core's MSS, 474, and the longest header. */
#define MESSAGE_LEN_MAX 544
#define TIMERS 4

struct otMessage
{
    uint8_t      *bytes;
    uint16_t      length;
    otMessageInfo info;
};

struct host
{
    /* First: the core knows a connection by this address. */
    struct tcpcb        tcb;
    struct tcpcb_listen listener;
    uint32_t            expiry[TIMERS];
    uint32_t            initial_number;
    bool                established;
    bool                closed;

    /* What is to be sent: a ring, described to the core by one link for each piece. */
    uint8_t       *send_bytes;
    size_t         send_size;
    size_t         send_at;
    otLinkedBuffer links[2];
    int            link;

    uint8_t *receive_memory;
    size_t   receive_size;

    struct otMessage messages[MESSAGES_MAX];
    uint8_t          storage[MESSAGES_MAX][sizeof(struct ip6_hdr) + MESSAGE_LEN_MAX];
    size_t           first;
    size_t           count;
};

/* Set on every entry: the core's functions for the time, and for a number to start with, take
 * no argument. */
static _Thread_local uint32_t clock_ms;
static _Thread_local uint32_t initial_number;

static void enter(const struct host *self, uint32_t now)
{
    clock_ms       = now;
    initial_number = self->initial_number;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static struct host *host_of(otInstance *instance) { return (struct host *)instance; }

static void start_connection(struct host *self)
{
    struct tcpcb *tcb = &self->tcb;

    memset(tcb, 0, sizeof(*tcb));
    lbuf_init(&tcb->sendbuf);
    cbuf_init(&tcb->recvbuf, self->receive_memory, self->receive_size);
    tcb->reassbmp = self->receive_memory + self->receive_size;
    bmp_init(tcb->reassbmp, BITS_TO_BYTES(self->receive_size));
    initialize_tcb(tcb);
    tcb->instance = (otInstance *)self;
}

struct host *host_new(size_t send_size, size_t receive_size, uint32_t initial_number)
{
    struct host *self = calloc(1, sizeof(*self));

    self->initial_number = initial_number;
    self->send_size      = send_size;
    self->send_bytes     = calloc(1, send_size);
    self->receive_size   = receive_size;
    self->receive_memory = calloc(1, receive_size + BITS_TO_BYTES(receive_size));
    for (size_t i = 0; i < MESSAGES_MAX; i++)
    {
        self->messages[i].bytes = self->storage[i] + sizeof(struct ip6_hdr);
    }
    start_connection(self);
    return self;
}

void host_free(struct host *self)
{
    free(self->send_bytes);
    free(self->receive_memory);
    free(self);
}

void host_bind(struct host *self, const uint8_t address[16], uint16_t port)
{
    memcpy(&self->tcb.laddr, address, 16);
    self->tcb.lport = htons(port);
}

bool host_connect(struct host *self, const uint8_t address[16], uint16_t port, uint32_t now)
{
    struct sockaddr_in6 peer;

    enter(self, now);
    memset(&peer, 0, sizeof(peer));
    memcpy(&peer.sin6_addr, address, 16);
    peer.sin6_port = htons(port);
    return tcp6_usr_connect(&self->tcb, &peer) == 0;
}

void host_listen(struct host *self, uint32_t now)
{
    enter(self, now);
    self->listener.instance = (otInstance *)self;
    self->listener.laddr    = self->tcb.laddr;
    self->listener.lport    = self->tcb.lport;
    self->listener.t_state  = TCP6S_LISTEN;
}

static bool is_for_connection(const struct host *self, const struct ip6_hdr *ip, const struct tcphdr *tcp)
{
    const struct tcpcb *tcb = &self->tcb;

    return tcb->t_state != TCP6S_CLOSED && tcb->lport == tcp->th_dport && tcb->fport == tcp->th_sport &&
           memcmp(&tcb->faddr, &ip->ip6_src, 16) == 0;
}

static void note(struct host *self, const struct tcplp_signals *signals)
{
    self->established |= signals->conn_established;
}

void host_input(struct host *self, const uint8_t *packet, size_t length, uint32_t now)
{
    /* Of the core's own alignment, as the core changes the header's byte order in place. */
    uint32_t             header[15];
    struct ip6_hdr      *ip  = (struct ip6_hdr *)packet;
    struct tcphdr       *tcp = (struct tcphdr *)header;
    struct otMessage     message;
    struct tcplp_signals signals;
    size_t               header_length;

    enter(self, now);
    if (length < sizeof(*ip) + sizeof(*tcp))
    {
        return;
    }
    message.bytes  = (uint8_t *)packet + sizeof(*ip);
    message.length = (uint16_t)(length - sizeof(*ip));
    header_length  = (size_t)(message.bytes[12] >> TH_OFF_SHIFT) << 2;
    if (header_length < sizeof(*tcp) || header_length > message.length)
    {
        return;
    }
    memcpy(header, message.bytes, header_length);
    tcp_fields_to_host(tcp);

    memset(&signals, 0, sizeof(signals));
    if (is_for_connection(self, ip, tcp) &&
        tcplp_input(ip, tcp, &message, &self->tcb, NULL, &signals) != RELOOKUP_REQUIRED)
    {
        note(self, &signals);
        return;
    }
    if (self->listener.t_state == TCP6S_LISTEN && self->listener.lport == tcp->th_dport)
    {
        memset(&signals, 0, sizeof(signals));
        tcplp_input(ip, tcp, &message, NULL, &self->listener, &signals);
        note(self, &signals);
        return;
    }
    tcp_dropwithreset(ip, tcp, NULL, (otInstance *)self, (int)(message.length - header_length), ECONNREFUSED);
}

bool host_output(struct host *self, struct host_segment *segment)
{
    const struct otMessage *message = &self->messages[self->first];

    if (self->count == 0)
    {
        return false;
    }
    memcpy(segment->source, &message->info.mSockAddr, 16);
    memcpy(segment->destination, &message->info.mPeerAddr, 16);
    segment->packet = message->bytes - sizeof(struct ip6_hdr);
    segment->length = message->length;
    segment->ecn    = message->info.mEcn;
    self->first     = (self->first + 1) % MESSAGES_MAX;
    self->count--;
    return true;
}

/* Hands `length` bytes at `send_at`, which lie in one piece, to the core. */
static void append(struct host *self, size_t length)
{
    struct tcpcb   *tcb  = &self->tcb;
    otLinkedBuffer *link = &self->links[self->link];

    if (tcb->sendbuf.tail == link && link->mData + link->mLength == self->send_bytes + self->send_at)
    {
        tcp_usr_send(tcb, 0, NULL, length, NULL);
    }
    else
    {
        self->link ^= 1;
        link          = &self->links[self->link];
        link->mNext   = NULL;
        link->mData   = self->send_bytes + self->send_at;
        link->mLength = length;
        tcp_usr_send(tcb, 0, link, 0, NULL);
    }
    self->send_at = (self->send_at + length) % self->send_size;
}

size_t host_send(struct host *self, const uint8_t *bytes, size_t length, uint32_t now)
{
    size_t taken = 0;

    enter(self, now);
    if (!host_state(self).may_send)
    {
        return 0;
    }
    while (taken < length)
    {
        size_t room  = self->send_size - lbuf_used_space(&self->tcb.sendbuf);
        size_t piece = least(least(length - taken, room), self->send_size - self->send_at);

        if (piece == 0)
        {
            break;
        }
        memcpy(self->send_bytes + self->send_at, bytes + taken, piece);
        append(self, piece);
        taken += piece;
    }
    return taken;
}

size_t host_receive(struct host *self, uint8_t *bytes, size_t length, uint32_t now)
{
    size_t taken;

    enter(self, now);
    taken = cbuf_read(&self->tcb.recvbuf, bytes, 0, length, 1, cbuf_copy_into_buffer);
    if (taken > 0)
    {
        tcp_usr_rcvd(&self->tcb);
    }
    return taken;
}

void host_shutdown(struct host *self, uint32_t now)
{
    enter(self, now);
    if (host_state(self).may_send)
    {
        tcp_usr_shutdown(&self->tcb);
    }
}

static int timer_of(uint32_t flag)
{
    switch (flag)
    {
    case TT_DELACK:
        return 0;
    case TT_REXMT:
    case TT_PERSIST:
        return 1;
    case TT_KEEP:
        return 2;
    default:
        return 3;
    }
}

static const uint32_t timer_flags[TIMERS] = {TT_DELACK, TT_REXMT | TT_PERSIST, TT_KEEP, TT_2MSL};

static void fire(struct tcpcb *tcb, int timer)
{
    switch (timer)
    {
    case 0:
        tcp_timer_delack(tcb);
        break;
    case 1:
        if (tcp_timer_active(tcb, TT_REXMT))
        {
            tcp_timer_rexmt(tcb);
        }
        else
        {
            tcp_timer_persist(tcb);
        }
        break;
    case 2:
        tcp_timer_keep(tcb);
        break;
    default:
        tcp_timer_2msl(tcb);
        break;
    }
}

void host_poll(struct host *self, uint32_t now)
{
    enter(self, now);
    for (int i = 0; i < TIMERS; i++)
    {
        if (tcp_timer_active(&self->tcb, timer_flags[i]) && (int32_t)(self->expiry[i] - now) <= 0)
        {
            fire(&self->tcb, i);
        }
    }
}

bool host_deadline(const struct host *self, uint32_t now, uint32_t *wait)
{
    bool any = false;

    for (int i = 0; i < TIMERS; i++)
    {
        if ((self->tcb.miscflags & timer_flags[i]) != 0)
        {
            int32_t  left = (int32_t)(self->expiry[i] - now);
            uint32_t this = left > 0 ? (uint32_t)left : 0;

            *wait = any && *wait < this ? *wait : this;
            any   = true;
        }
    }
    return any;
}

struct host_state host_state(const struct host *self)
{
    const struct tcpcb *tcb   = &self->tcb;
    struct host_state   state = {0};

    state.established = self->established;
    state.may_send    = (tcb->t_state == TCP6S_ESTABLISHED || tcb->t_state == TCP6S_CLOSE_WAIT) && !tpiscantsend(tcb);
    state.finished    = tpiscantrcv(tcb) && tcb->recvbuf.used == 0;
    state.closed      = self->closed || tcb->t_state == TCP6S_TIME_WAIT;
    return state;
}

size_t host_active_size(void) { return sizeof(struct tcpcb); }
size_t host_passive_size(void) { return sizeof(struct tcpcb_listen); }

/* ---- The functions of OpenThread's messages that the core calls ---- */

otError otMessageSetLength(otMessage *message, uint16_t length)
{
    if (length > MESSAGE_LEN_MAX)
    {
        return OT_ERROR_NO_BUFS;
    }
    message->length = length;
    return OT_ERROR_NONE;
}

uint16_t otMessageGetOffset(const otMessage *message)
{
    (void)message;
    return 0;
}

uint16_t otMessageRead(const otMessage *message, uint16_t offset, void *bytes, uint16_t length)
{
    memcpy(bytes, message->bytes + offset, length);
    return length;
}

int otMessageWrite(otMessage *message, uint16_t offset, const void *bytes, uint16_t length)
{
    memcpy(message->bytes + offset, bytes, length);
    return length;
}

/* ---- The functions of its host that the core calls ---- */

otMessage *tcplp_sys_new_message(otInstance *instance)
{
    struct host *self = host_of(instance);

    return self->count == MESSAGES_MAX ? NULL : &self->messages[(self->first + self->count) % MESSAGES_MAX];
}

void tcplp_sys_free_message(otInstance *instance, otMessage *message)
{
    /* Not queued yet: its place stays the next one. */
    (void)instance;
    (void)message;
}

void tcplp_sys_send_message(otInstance *instance, otMessage *message, otMessageInfo *info)
{
    message->info = *info;
    host_of(instance)->count++;
}

uint32_t tcplp_sys_get_ticks(void) { return clock_ms; }

uint32_t tcplp_sys_get_millis(void) { return clock_ms; }

void tcplp_sys_set_timer(struct tcpcb *tcb, uint8_t flag, uint32_t delay)
{
    host_of(tcb->instance)->expiry[timer_of(flag)] = clock_ms + delay;
}

void tcplp_sys_stop_timer(struct tcpcb *tcb, uint8_t flag)
{
    /* The core has cleared the timer's flag, which alone counts. */
    (void)tcb;
    (void)flag;
}

struct tcpcb *tcplp_sys_accept_ready(struct tcpcb_listen *listener, struct in6_addr *address, uint16_t port)
{
    struct host *self = host_of(listener->instance);

    (void)address;
    (void)port;
    if (self->tcb.t_state != TCP6S_CLOSED)
    {
        return NULL;
    }
    start_connection(self);
    self->tcb.accepted_from = listener;
    return &self->tcb;
}

bool tcplp_sys_accepted_connection(struct tcpcb_listen *listener,
                                   struct tcpcb        *accepted,
                                   struct in6_addr     *address,
                                   uint16_t             port)
{
    (void)accepted;
    (void)address;
    (void)port;
    host_of(listener->instance)->listener.t_state = TCP6S_CLOSED;
    return true;
}

void tcplp_sys_connection_lost(struct tcpcb *tcb, uint8_t error)
{
    (void)error;
    host_of(tcb->instance)->closed = true;
}

void tcplp_sys_on_state_change(struct tcpcb *tcb, int state)
{
    (void)tcb;
    (void)state;
}

void tcplp_sys_log(const char *format, ...) { (void)format; }

void tcplp_sys_panic(const char *format, ...)
{
    /* As in OpenThread without assertions: the core goes on. It comes here when the last gap of
     * a full receive window closes while the window wraps inside a byte of the bitmap: the
     * count of bytes held then runs over, and the next step cuts it back. */
    (void)format;
}

bool tcplp_sys_autobind(otInstance       *instance,
                        const otSockAddr *peer,
                        otSockAddr       *local,
                        bool              address,
                        bool              port)
{
    /* `host_bind` has said both. */
    (void)instance;
    (void)peer;
    (void)local;
    (void)address;
    (void)port;
    return false;
}

uint32_t tcplp_sys_generate_isn(void) { return initial_number; }

uint16_t tcplp_sys_hostswap16(uint16_t value) { return __builtin_bswap16(value); }

uint32_t tcplp_sys_hostswap32(uint32_t value) { return __builtin_bswap32(value); }
