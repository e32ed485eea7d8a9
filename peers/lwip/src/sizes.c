/* What lwIP's structures take, as lengths of arrays: `cargo xtask peers` compiles this for a
 * Cortex-M0+ and reads them from the object. */

#include "lwip/tcp.h"

const char lwip_connection[sizeof(struct tcp_pcb)] = {0};
const char lwip_listener[sizeof(struct tcp_pcb_listen)] = {0};
