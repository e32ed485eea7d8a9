/* Motet for C. Written by cbindgen from crates/capi/src: `MOTET_WRITE_HEADER=1 cargo test -p
 * motet-c --test header` writes it anew.
 *
 * A driver loops over three calls: an event (motet_on_...), motet_poll until it returns 0, and
 * motet_next_deadline. Calls of one node must not run at one time: not from an interrupt and a
 * thread. Times are microseconds of the driver's clock, which never goes back. Failures are negative
 * MOTET_E numbers; a call that failed has changed nothing and written nowhere. */

#ifndef MOTET_H
#define MOTET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * No such address.
 */
#define MOTET_ENOENT 2

/**
 * No such socket: it was closed, is of another kind, or is another node's. Or no such node.
 */
#define MOTET_EBADF 9

/**
 * Nothing now: try again after a change.
 */
#define MOTET_EAGAIN 11

/**
 * The memory is smaller than motet_node_size says.
 */
#define MOTET_ENOMEM 12

/**
 * A null pointer, or one that is misaligned.
 */
#define MOTET_EFAULT 14

/**
 * A value that cannot be.
 */
#define MOTET_EINVAL 22

/**
 * Every connection, listener or port is in use.
 */
#define MOTET_ENFILE 23

/**
 * This end has closed the connection for sending.
 */
#define MOTET_EPIPE 32

/**
 * Longer than a packet may be, or than the configuration's queue_len.
 */
#define MOTET_EMSGSIZE 90

/**
 * The port is in use.
 */
#define MOTET_EADDRINUSE 98

/**
 * No address of this node fits.
 */
#define MOTET_EADDRNOTAVAIL 99

/**
 * No route leads there.
 */
#define MOTET_ENETUNREACH 101

/**
 * The connection was aborted at this end.
 */
#define MOTET_ECONNABORTED 103

/**
 * The peer reset the connection.
 */
#define MOTET_ECONNRESET 104

/**
 * The connection is over.
 */
#define MOTET_ENOTCONN 107

/**
 * The peer does not answer.
 */
#define MOTET_ETIMEDOUT 110

/**
 * The peer has no listener at that port.
 */
#define MOTET_ECONNREFUSED 111

/**
 * The network says that the peer cannot be reached.
 */
#define MOTET_EHOSTUNREACH 113

/**
 * The radio cannot say that something waits: its node is no parent of nodes that sleep.
 */
#define MOTET_PENDING_NONE 0

/**
 * One flag for the ACKs of all data requests.
 */
#define MOTET_PENDING_ONE_FOR_ALL 1

/**
 * A table of neighbours (source match table): the ACKs of all their frames say so.
 */
#define MOTET_PENDING_PER_NEIGHBOUR 2

/**
 * Copy this frame into the radio; answer by motet_on_preloaded.
 */
#define MOTET_PRELOAD 0

/**
 * Assess the channel once, 128 us; answer by motet_on_assessed. Does not occur where `assesses` is
 * set.
 */
#define MOTET_ASSESS 1

/**
 * Transmit what is preloaded, 192 us from now; answer by motet_on_transmitted. Of a radio with
 * `assesses` or `takes_acks`: make one attempt, with no retries of its own; answer by
 * motet_on_sent, unless another frame was preloaded meanwhile.
 */
#define MOTET_FIRE 2

/**
 * Transmit this frame, an ACK, without assessing the channel: its first symbol at `at_us`. Answer
 * by motet_on_transmitted.
 */
#define MOTET_TRANSMIT 3

/**
 * Receive from now on.
 */
#define MOTET_LISTEN 4

/**
 * Switch the receiver off.
 */
#define MOTET_SLEEP 5

/**
 * Tune to `channel`.
 */
#define MOTET_CHANGE_CHANNEL 6

/**
 * From now on the ACKs that the radio sends by itself say that something waits (frame pending bit)
 * for the neighbour whose address is `bytes`: `len` is 8 (EUI-64) or 2 (short address), most
 * significant byte first, or 0 (all data requests). Occurs where `pending` and `children` are set.
 */
#define MOTET_SET_PENDING 7

/**
 * The same, but nothing waits any more.
 */
#define MOTET_CLEAR_PENDING 8

/**
 * The frame was sent and acknowledged.
 */
#define MOTET_ACKED 0

/**
 * The frame was sent. It asks for no ACK, or its ACK comes by motet_on_frame (`takes_acks` is 0).
 */
#define MOTET_DONE 1

/**
 * The frame was sent, asks for an ACK, and none came.
 */
#define MOTET_NO_ACK 2

/**
 * The channel was not found clear: the frame was not sent.
 */
#define MOTET_BUSY 3

/**
 * The radio refused the frame, or does not know what became of it. It is tuned and switched on
 * again.
 */
#define MOTET_FAILED 4

/**
 * The frame was sent, asks for an ACK, and the radio does not tell whether one came. It says
 * nothing of the link, and shows nobody to be there; a node that sleeps cannot use such a radio.
 */
#define MOTET_UNKNOWN 5

/**
 * The node asks for the key, and has had no answer: no neighbour with the key is in reach, or the
 * registrar does not know this EUI-64 and join key. It asks again, at first after 2 s, then ever
 * more rarely, up to 18 s.
 */
#define MOTET_JOIN_ASKS 0

/**
 * The node has the network's key.
 */
#define MOTET_JOINED 1

/**
 * The registrar refuses: the PAN identifier is another mesh's. It asks again.
 */
#define MOTET_JOIN_REFUSED 2

/**
 * An answer came that another key sealed: the join key is wrong, or a neighbour forges. It asks
 * again.
 */
#define MOTET_JOIN_FORGED 3

/**
 * An answer came that is none of this protocol. It asks again.
 */
#define MOTET_JOIN_MALFORMED 4

/**
 * The node does not ask before the program has stored the number of its requests:
 * motet_poll_reservation gives it, motet_on_reserved answers.
 */
#define MOTET_JOIN_UNSTORED 5

/**
 * Each number of a request was used: the device needs another join key.
 */
#define MOTET_JOIN_EXHAUSTED 6

/**
 * The receiver is always on.
 */
#define MOTET_AWAKE 0

/**
 * Asks the parent each `interval_ms` (TCPlp appendix C.1).
 */
#define MOTET_SLEEP_FIXED 1

/**
 * Asks each 240 s, and each 100 ms while an answer is due (TCPlp section 9.2).
 */
#define MOTET_SLEEP_PAPER 2

/**
 * Asks 20 ms after a packet, then after ever longer times, up to 5 s (TCPlp appendix C.2).
 */
#define MOTET_SLEEP_ADAPTIVE 3

/**
 * Asks each `interval_ms`, and when TCP or motet_expect_answer expect an answer.
 */
#define MOTET_SLEEP_HINTED 4

/**
 * There is something to read: bytes, the end of the stream, or why there will be none. Of a
 * listener: a peer that waits to be accepted.
 */
#define MOTET_READABLE 1

/**
 * There is room again to send; at first: the handshake is done, or has failed.
 */
#define MOTET_WRITABLE 2

/**
 * The peer has all that was sent.
 */
#define MOTET_ALL_ACKNOWLEDGED 4

/**
 * The connection is over: motet_close it.
 */
#define MOTET_OVER 8

/**
 * A node. Opaque: it lives in memory of motet_node_size bytes, and must not be moved or copied.
 */
typedef struct motet_node motet_node;

/**
 * What a node is, and how much of everything it has. motet_config_init fills it with values for a
 * leaf; addresses and seed are the caller's to set.
 */
typedef struct motet_config {
    /**
     * 128 bits that no other node and no other start has, from a true source of randomness.
     */
    uint64_t seed[2];
    /**
     * EUI-64, most significant byte first.
     */
    uint8_t eui64[8];
    /**
     * PAN identifier.
     */
    uint16_t pan;
    /**
     * Channel, 11 to 26.
     */
    uint8_t channel;
    /**
     * TCP connections at one time, 1 to 255.
     */
    uint8_t connections;
    /**
     * Listeners at one time, 0 to 16.
     */
    uint8_t listeners;
    /**
     * Handshakes at one time, as many as listeners at least.
     */
    uint8_t half_open;
    /**
     * Frames that wait for the air, 4 at least.
     */
    uint8_t frames;
    /**
     * Neighbours that the node knows at one time.
     */
    uint8_t neighbors;
    /**
     * Packets that arrive in fragments at one time, 1 at least.
     */
    uint8_t records;
    /**
     * Bytes each way of each connection, 128 at least.
     */
    uint16_t buffer_len;
    /**
     * Bytes of UDP datagrams that wait, each with 46 bytes more; 0: no UDP.
     */
    uint16_t datagrams_len;
    /**
     * Bytes of whole packets that wait; a datagram takes 54 more than its payload.
     */
    uint16_t queue_len;
    /**
     * Idle time before a peer is asked whether it is there, s; 0: never.
     */
    uint16_t keepalive_idle_s;
    /**
     * Time without progress before a connection fails, ms; 0: as TCP's retransmissions end.
     */
    uint32_t user_timeout_ms;
    /**
     * Not 0: wait for more to send (Nagle's algorithm).
     */
    uint8_t nagle;
    /**
     * Not 0: the radio has one buffer for both directions: a preloaded frame is lost with each reception.
     */
    uint8_t shared_buffer;
    /**
     * Not 0: the radio answers frames with ACKs by itself.
     */
    uint8_t auto_ack;
    /**
     * Not 0: the radio appends and checks the FCS, and frames here are without it.
     */
    uint8_t fcs_by_radio;
    /**
     * Not 0: the radio does CSMA-CA by itself, and answers MOTET_FIRE by motet_on_sent. Then
     * auto_ack has to be set as well.
     */
    uint8_t assesses;
    /**
     * Not 0: the radio waits for the ACK of a frame by itself, and answers MOTET_FIRE by
     * motet_on_sent. stamp_delay_max_us is then of no effect.
     */
    uint8_t takes_acks;
    /**
     * The longest time from the end of a frame to its time stamp, us; 0: hardware takes the time.
     */
    uint32_t stamp_delay_max_us;
    /**
     * Time to change the channel, us.
     */
    uint32_t channel_switch_us;
    /**
     * Short address (16 bits) of the node in its PAN; 0xffff: none. Frames to it are accepted; a radio
     * that filters frames has to be given it, too. Nobody assigns one: each node's is set here.
     */
    uint16_t short_address;
    /**
     * Not 0: frames name the short address as their source, 6 bytes less in each, and the node's
     * IPv6 addresses follow from it. A node with a key cannot do so: its nonces need the EUI-64.
     */
    uint8_t short_source;
    /**
     * How a radio with auto_ack shows in its ACKs that something waits: MOTET_PENDING_NONE or one of
     * the others. Only a node with children needs it.
     */
    uint8_t pending;
    /**
     * Nodes below this one at most, whether they sleep or not; 0: a leaf. With any it is a router of the
     * mesh: it takes part in RPL, passes on the packets of others, and needs `frames` of 12, as
     * many `neighbors` as children, and some 2,600 bytes in `queue_len`. Takes the feature `relay`.
     */
    uint8_t children;
    /**
     * Bytes of packets that wait for children that sleep, with 7 bytes more for each packet; 0: it
     * serves none.
     */
    uint16_t children_len;
} motet_config;

/**
 * What the radio shall do next.
 */
typedef struct motet_action {
    /**
     * When, for MOTET_TRANSMIT.
     */
    uint64_t at_us;
    /**
     * The frame, for MOTET_PRELOAD and MOTET_TRANSMIT, or an address; the node's until the next call
     * of it.
     */
    const uint8_t *bytes;
    /**
     * Its length.
     */
    uint16_t len;
    /**
     * MOTET_PRELOAD or one of the others.
     */
    uint8_t kind;
    /**
     * 11 to 26, for MOTET_CHANGE_CHANNEL.
     */
    uint8_t channel;
} motet_action;

/**
 * What the program stores so that it outlives the power, for each key and each EUI-64. Two frames
 * of one key with one counter betray both: what is stored must be what is read after a power cut
 * at any moment, never something older. A store that is damaged, or not the last one, needs
 * another key.
 */
typedef struct motet_reservation {
    /**
     * The key sequence that the node has.
     */
    uint32_t sequence;
    /**
     * The first frame counter that it has not used when it starts again.
     */
    uint32_t counter;
    /**
     * The first number that no request to join has had when it starts again; of a node that does
     * not join, 0.
     */
    uint32_t requests;
} motet_reservation;

/**
 * A network key: what `motet keys network` prints of a key file, for nodes of a mesh whose router
 * has that file (`motet router --key`).
 */
typedef struct motet_key {
    /**
     * The key's bytes.
     */
    uint8_t network[16];
    /**
     * Which link key to begin with; motes follow a router to later ones.
     */
    uint32_t sequence;
    /**
     * The last reservation that was stored; zeros for a node that has never had this key.
     */
    struct motet_reservation stored;
    /**
     * Neighbours whose frame counters are kept, 4 at least; 16 suit a mote.
     */
    uint8_t neighbors;
} motet_key;

/**
 * A key of the device's own, with which it gets that of the network: what `motet keys device`
 * prints for this EUI-64, for a mesh whose router lets devices join
 * (`motet router --key FILE --joining cojp`).
 */
typedef struct motet_join_key {
    /**
     * The key's bytes.
     */
    uint8_t key[16];
    /**
     * Address of the registrar, to which a router of the mesh passes on the requests of others;
     * zeros: the root of its mesh, as `motet router` is. A leaf with zeros takes no further key
     * from the registrar: started again, it joins anew.
     */
    uint8_t registrar[16];
    /**
     * The last reservation that was stored; zeros for a device that has never had this join key.
     */
    struct motet_reservation stored;
    /**
     * Neighbours whose frame counters are kept, 4 at least; 16 suit a mote.
     */
    uint8_t neighbors;
} motet_join_key;

/**
 * How a node sleeps. motet_sleep_init fills it for a parent that runs Motet.
 */
typedef struct motet_sleep {
    /**
     * Time between requests at rest, ms, for MOTET_SLEEP_FIXED and MOTET_SLEEP_HINTED: what a peer
     * sends unasked, such as a SYN, waits so long. 60,000 for a node that listens on a port.
     */
    uint32_t interval_ms;
    /**
     * How long the node listens for a packet that its parent has promised, ms; 250 where the parent's
     * radio is behind a line.
     */
    uint16_t answer_timeout_ms;
    /**
     * MOTET_AWAKE or one of the others.
     */
    uint8_t policy;
    /**
     * Not 0: the parent sends all that waits upon one request; else one frame (OpenThread).
     */
    uint8_t drained;
    /**
     * Not 0: the parent says in the ACK of any frame that something waits, not only of a request.
     * Not every radio does: 0 where the parent is `motet router` or `motet mote` on a dongle.
     */
    uint8_t rides;
    /**
     * Not 0: the node's own frames wait while it listens for those that were promised.
     */
    uint8_t alternates;
} motet_sleep;

/**
 * What became possible at a socket.
 */
typedef struct motet_change {
    /**
     * The socket.
     */
    int32_t socket;
    /**
     * MOTET_READABLE and the others, added up.
     */
    uint8_t events;
} motet_change;

/**
 * Where a datagram came from.
 */
typedef struct motet_source {
    /**
     * The address.
     */
    uint8_t address[16];
    /**
     * The port.
     */
    uint16_t port;
    /**
     * Of a link-local address: which link, as motet_udp_send takes it back.
     */
    uint8_t zone;
} motet_source;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Fills a configuration with values for a leaf with two connections of 2 KiB each way.
 */
int32_t motet_config_init(struct motet_config *config);

/**
 * What is wrong with a configuration that cannot be, in words; null: nothing. A program that does
 * not call it has none of the words in its flash.
 */
const char *motet_config_fault(const struct motet_config *config);

/**
 * Bytes of memory that a node with this configuration takes; 0: the configuration cannot be.
 */
size_t motet_node_size(const struct motet_config *config);

/**
 * What the address of that memory has to be a multiple of.
 */
size_t motet_node_align(void);

/**
 * Starts a node in memory that is the node's from then on, until motet_node_end; writes where it
 * is to `node`. Returns 0, or -MOTET_EFAULT, EINVAL (the configuration or the clock),
 * ENOMEM (too small). Every now_us is of one clock that never goes back; a call with 2^63 or more
 * does nothing and returns -MOTET_EINVAL.
 */
int32_t motet_node_init(void *memory,
                        size_t size,
                        const struct motet_config *config,
                        uint64_t now_us,
                        struct motet_node **node);

/**
 * Ends a node: its memory is the caller's again, and every socket of it is closed. Peers hear
 * nothing of it. Returns 0 or -MOTET_EBADF.
 */
int32_t motet_node_end(struct motet_node *node);

/**
 * A frame was received; its last symbol was on the air at `at_us`. Returns 0, or -MOTET_EFAULT,
 * EBADF, EINVAL (longer than 127 bytes).
 */
int32_t motet_on_frame(struct motet_node *node,
                       const uint8_t *psdu,
                       size_t len,
                       int8_t rssi_dbm,
                       uint8_t lqi,
                       uint8_t channel,
                       uint64_t at_us,
                       uint64_t now_us);

/**
 * The frame of the last MOTET_PRELOAD is in the radio. Returns 0, or -MOTET_EFAULT, EBADF.
 */
int32_t motet_on_preloaded(struct motet_node *node, uint64_t now_us);

/**
 * The answer to MOTET_ASSESS. Returns 0, or -MOTET_EFAULT, EBADF.
 */
int32_t motet_on_assessed(struct motet_node *node, bool clear, uint64_t now_us);

/**
 * What MOTET_FIRE or MOTET_TRANSMIT asked for was sent; its last symbol left at `at_us`. Returns 0,
 * or -MOTET_EFAULT, EBADF.
 */
int32_t motet_on_transmitted(struct motet_node *node, uint64_t at_us, uint64_t now_us);

/**
 * How the attempt ended that MOTET_FIRE asked for, where the radio has `assesses` or `takes_acks`:
 * MOTET_ACKED or one of the others. `pending`: whether the ACK said that something waits for this
 * node (frame pending bit); `at_us`: when the frame's last symbol left, or the time of the radio's
 * answer. Returns 0, or -MOTET_EFAULT, EBADF, EINVAL (no such outcome).
 */
int32_t motet_on_sent(struct motet_node *node,
                      uint8_t outcome,
                      bool pending,
                      uint64_t at_us,
                      uint64_t now_us);

/**
 * Writes what the radio shall do next to `action`; call until it returns 0. Returns 1, 0 (nothing),
 * or -MOTET_EFAULT, EBADF.
 */
int32_t motet_poll(struct motet_node *node, uint64_t now_us, struct motet_action *action);

/**
 * Writes when to call motet_poll again though nothing happened to `at_us`. Returns 1, 0 (never), or
 * -MOTET_EFAULT, EBADF.
 */
int32_t motet_next_deadline(struct motet_node *node, uint64_t *at_us);

/**
 * Writes the node's address number `index`, from 0 on, to the 16 bytes at `address`: the first is
 * that on the link, then those of the mesh's prefix. Returns 0, or -MOTET_EFAULT, EBADF, ENOENT.
 */
int32_t motet_address(struct motet_node *node, size_t index, uint8_t (*address)[16]);

/**
 * Bytes of memory that a key with this configuration takes; 0: it cannot be. Of an archive with
 * the feature `security`, as all functions with a key or a reservation.
 */
size_t motet_key_size(const struct motet_key *key);

/**
 * What is wrong with a key that cannot be, in words; null: nothing.
 */
const char *motet_key_fault(const struct motet_key *key);

/**
 * Gives a node a key, after motet_node_init and before any other call of it: from then on every
 * frame is sealed, and no other believed. Nothing is sent before the first reservation is stored
 * (motet_poll_reservation). The memory, aligned as the node's, is the node's until its end.
 * Returns 0, or -MOTET_EFAULT, EBADF, EINVAL (motet_key_fault says what is wrong; or the node has a
 * key, or short_source), ENOMEM (too small).
 */
int32_t motet_set_key(struct motet_node *node,
                      void *memory,
                      size_t size,
                      const struct motet_key *key);

/**
 * Writes what the program shall store next to `wanted`; call it whenever motet_poll has returned
 * 0. Each is asked once, and answered by motet_on_reserved, at once or later: flash may be slow, and
 * the node goes on meanwhile with the counters stored before. At its start and at another key it
 * has none and sends nothing; later it asks when half of 8,192 are left. A record may overwrite
 * those that were asked for before it, answered or not. Returns 1, 0 (nothing), or
 * -MOTET_EFAULT, EBADF.
 */
int32_t motet_poll_reservation(struct motet_node *node,
                               uint64_t now_us,
                               struct motet_reservation *wanted);

/**
 * The reservation of motet_poll_reservation is stored, and no power cut takes it back; or it could
 * not be stored, or nobody knows: then the node stops when the counters before are used up, and
 * asks again after 10 s; it never asks a second time what has no answer. Call motet_poll then.
 * Returns 0, or -MOTET_EFAULT, EBADF.
 */
int32_t motet_on_reserved(struct motet_node *node,
                          const struct motet_reservation *answered,
                          bool is_stored,
                          uint64_t now_us);

/**
 * Bytes of memory that a join key with this configuration takes; 0: it cannot be. Of an archive
 * with the feature `join`, as all functions of joining.
 */
size_t motet_join_key_size(const struct motet_join_key *key);

/**
 * What is wrong with a join key that cannot be, in words; null: nothing.
 */
const char *motet_join_key_fault(const struct motet_join_key *key);

/**
 * Lets a node join, after motet_node_init and before any other call of it: it sends only requests
 * for the network's key, to all neighbours, until a registrar has answered; then it is as after
 * motet_set_key. No request is sent before its number is stored (motet_poll_reservation), which the
 * program does as for frame counters. The memory, aligned as the node's, is the node's until its
 * end. Returns 0, or -MOTET_EFAULT, EBADF, EINVAL (motet_join_key_fault says what is wrong; or the
 * node has a key, or short_source), ENOMEM (too small).
 */
int32_t motet_set_join_key(struct motet_node *node,
                           void *memory,
                           size_t size,
                           const struct motet_join_key *key);

/**
 * How far joining is: MOTET_JOIN_ASKS or one of the others; or -MOTET_EFAULT, EBADF, EINVAL (the
 * node does not join). What it says of a failure is of the last answer, and may change.
 */
int32_t motet_join_state(struct motet_node *node);

/**
 * What a value of motet_join_state means, in words.
 */
const char *motet_join_words(int32_t state);

/**
 * Fills the settings of sleep with values for a parent that runs Motet: MOTET_SLEEP_HINTED, 60 s. Of
 * an archive with the feature `sleepy`, as all functions of sleep. Returns 0 or -MOTET_EFAULT.
 */
int32_t motet_sleep_init(struct motet_sleep *sleep);

/**
 * What is wrong with settings of sleep that cannot be, in words; null: nothing.
 */
const char *motet_sleep_fault(const struct motet_sleep *sleep);

/**
 * Makes a node sleep, or with MOTET_AWAKE stay awake, from now on; call motet_poll then. Its receiver
 * stays on until a router has answered and become its parent. It asks that one at the times of the
 * policy, by frames of its own: the program asks nothing. Returns 0, or -MOTET_EFAULT, EBADF, EINVAL
 * (motet_sleep_fault says what is wrong, or the node is a router of the mesh).
 */
int32_t motet_set_sleep(struct motet_node *node,
                        const struct motet_sleep *sleep);

/**
 * Says that the answer to a datagram comes by `until_us` or not at all: until then a node that sleeps
 * asks its parent ten times a second, unless its policy is MOTET_SLEEP_FIXED or
 * MOTET_SLEEP_ADAPTIVE. 0: no answer is expected any more. Call it after motet_udp_send, and
 * motet_poll then; what TCP expects the node knows. Returns 0, or -MOTET_EFAULT, EBADF, EINVAL (the
 * clock).
 */
int32_t motet_expect_answer(struct motet_node *node,
                            uint64_t until_us);

/**
 * Writes the next thing that became possible at a socket to `change`, each once: ask when
 * motet_poll returns 0, until this returns 0. Returns 1, 0 (nothing), or -MOTET_EFAULT, EBADF.
 */
int32_t motet_poll_changed(struct motet_node *node, struct motet_change *change);

/**
 * Closes a socket of any kind; its number is of no use from then on. What a connection has sent
 * still arrives; of a listener, peers that were not accepted are reset. Returns 0 or -MOTET_EBADF.
 */
int32_t motet_close(struct motet_node *node, int32_t socket, uint64_t now_us);

/**
 * Takes connections to `port`. Returns a socket, or -MOTET_EFAULT, EBADF (the node), EINVAL (port 0),
 * EADDRINUSE, ENFILE.
 */
int32_t motet_tcp_listen(struct motet_node *node,
                         uint16_t port);

/**
 * The peer that has waited longest. Where none waits, buffers are lent to the next one if there are
 * any, so that nothing that it sends first is lost. Returns a socket, or -MOTET_EFAULT, EBADF,
 * EAGAIN (none waits, or there are no buffers for it).
 */
int32_t motet_tcp_accept(struct motet_node *node, int32_t listener, uint64_t now_us);

/**
 * Begins a connection to a port of `address`, 16 bytes; `zone`: 0. MOTET_WRITABLE says when the
 * handshake is done; data may be sent before. Returns a socket, or -MOTET_EFAULT, EBADF (the node),
 * EINVAL (port 0, a group, an IPv4 address), ENETUNREACH, EADDRNOTAVAIL, ENFILE.
 */
int32_t motet_tcp_connect(struct motet_node *node,
                          const uint8_t (*address)[16],
                          uint16_t port,
                          uint8_t zone,
                          uint64_t now_us);

/**
 * Takes bytes to send. Returns how many, or -MOTET_EFAULT, EBADF, EAGAIN (no room), EPIPE,
 * ECONNREFUSED, ECONNRESET, ECONNABORTED, ETIMEDOUT, EHOSTUNREACH.
 */
int32_t motet_tcp_send(struct motet_node *node,
                       int32_t socket,
                       const uint8_t *data,
                       size_t len,
                       uint64_t now_us);

/**
 * Writes received bytes to `data`, `len` at the most. Returns how many, 0 where the peer has sent
 * everything, or -MOTET_EFAULT, EBADF, EAGAIN (nothing yet), EINVAL (`len` is 0) and the failures
 * of motet_tcp_send.
 */
int32_t motet_tcp_recv(struct motet_node *node, int32_t socket, uint8_t *data, size_t len);

/**
 * Says that no more will be sent; receiving goes on. Returns 0, or -MOTET_EFAULT, EBADF.
 */
int32_t motet_tcp_shutdown(struct motet_node *node, int32_t socket, uint64_t now_us);

/**
 * Resets a connection and closes its socket. Returns 0, or -MOTET_EFAULT, EBADF.
 */
int32_t motet_tcp_abort(struct motet_node *node, int32_t socket);

/**
 * Bytes that the peer's TCP has not acknowledged yet. Returns -MOTET_EFAULT, EBADF where there is no
 * such connection.
 */
int32_t motet_tcp_unacknowledged(struct motet_node *node,
                                 int32_t socket);

/**
 * Whether the handshake is done: 1 or 0; or -MOTET_EFAULT, EBADF and the failures of
 * motet_tcp_send.
 */
int32_t motet_tcp_connected(struct motet_node *node, int32_t socket);

/**
 * Opens a port. Returns a socket, or -MOTET_EFAULT, EBADF (the node), EINVAL (port 0), EADDRINUSE,
 * ENFILE (four are open, or the configuration has no memory for datagrams).
 */
int32_t motet_udp_open(struct motet_node *node, uint16_t port);

/**
 * Sends a datagram of `len` bytes to a port of `address`, 16 bytes; `zone`: 0, or that of a source.
 * Returns 0, or -MOTET_EFAULT, EBADF, EINVAL, ENETUNREACH, EADDRNOTAVAIL, EMSGSIZE, EAGAIN (the link
 * has no room now).
 */
int32_t motet_udp_send(struct motet_node *node,
                       int32_t socket,
                       const uint8_t (*address)[16],
                       uint16_t port,
                       uint8_t zone,
                       const uint8_t *data,
                       size_t len);

/**
 * Writes the oldest datagram for a port to `data`, cut to `len` bytes, and its source to `source`.
 * Returns how many bytes, or -MOTET_EFAULT, EBADF, EAGAIN (none).
 */
int32_t motet_udp_recv(struct motet_node *node,
                       int32_t socket,
                       uint8_t *data,
                       size_t len,
                       struct motet_source *source);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MOTET_H */
