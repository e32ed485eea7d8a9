/* What the core's structures take, as lengths of arrays: `cargo xtask peers` compiles this for a
 * Cortex-M0+ and reads them from the object. */

#include "tcplp.h"

const char tcplp_connection[sizeof(struct tcpcb)] = {0};
const char tcplp_listener[sizeof(struct tcpcb_listen)] = {0};
