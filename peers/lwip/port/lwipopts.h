/* lwIP as ESP-IDF ships it (its Kconfig's and lwipopts.h's defaults for TCP), over IPv6 alone, without
 * threads, and with the MSS, the buffers and the hop limit of the stacks that it is compared with. */

#ifndef MOTET_LWIPOPTS_H_
#define MOTET_LWIPOPTS_H_

#include <stddef.h>
#include <stdint.h>

/* ---- What ESP-IDF says ---- */

#define TCP_TMR_INTERVAL 250
#define LWIP_TCP_RTO_TIME 1500
#define TCP_MAXRTX 12
#define TCP_SYNMAXRTX 12
#define TCP_MSL 60000
#define TCP_FIN_WAIT_TIMEOUT 20000
#define TCP_QUEUE_OOSEQ 1
#define TCP_OOSEQ_MAX_PBUFS 4
#define TCP_OOSEQ_TIMEOUT 6
/* Of ESP-IDF it is the MSS; the preprocessor takes a variable for 0. */
#define TCP_OVERSIZE 1220
#define LWIP_TCP_SACK_OUT 0
#define LWIP_TCP_TIMESTAMPS 0
#define LWIP_WND_SCALE 0
#define LWIP_TCP_KEEPALIVE 1
#define TCP_LISTEN_BACKLOG 1
#define MEMP_MEM_MALLOC 1
#define MEM_ALIGNMENT 4

uint32_t host_initial_number(void);
#define LWIP_HOOK_TCP_ISN(local, local_port, remote, remote_port) host_initial_number()

/* ---- What all stacks here have in common ---- */

/* Of the end point that is at work; a byte of the window is a byte of the receive buffer. */
extern uint16_t host_mss;
extern uint16_t host_window;
extern uint16_t host_send_size;
extern uint8_t  host_hop_limit;
#define TCP_MSS host_mss
#define TCP_WND host_window
#define TCP_SND_BUF host_send_size
#define TCP_TTL host_hop_limit
/* A buffer of the pool holds a full segment and its headers. */
#define PBUF_POOL_BUFSIZE 1320
/* Pieces of the send buffer: more than the largest one has. */
#define TCP_SND_QUEUELEN 64
/* The checks of the preprocessor take a variable for 0. */
#define LWIP_DISABLE_TCP_SANITY_CHECKS 1

/* ---- The host ---- */

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0
#define LWIP_TCP 1
#define LWIP_UDP 0
#define LWIP_RAW 0
#define LWIP_IPV4 0
#define LWIP_ARP 0
#define LWIP_ETHERNET 0
#define LWIP_IPV6 1
#define LWIP_IPV6_REASS 0
#define LWIP_IPV6_FRAG 0
#define LWIP_IPV6_MLD 0
#define LWIP_IPV6_AUTOCONFIG 0
#define LWIP_IPV6_SEND_ROUTER_SOLICIT 0
#define LWIP_IPV6_DUP_DETECT_ATTEMPTS 0
#define LWIP_ICMP6 1
#define LWIP_STATS 0

void *host_allocate(size_t length);
void *host_allocate_zeroed(size_t count, size_t length);
void  host_release(void *memory);
#define MEM_CUSTOM_ALLOCATOR 1
#define MEM_CUSTOM_MALLOC host_allocate
#define MEM_CUSTOM_CALLOC host_allocate_zeroed
#define MEM_CUSTOM_FREE host_release

#endif
