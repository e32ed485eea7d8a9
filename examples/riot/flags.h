/* Why the node's thread wakes. */
#ifndef MOTET_RIOT_FLAGS_H
#define MOTET_RIOT_FLAGS_H

#define FLAG_RADIO (1u << 0)
#define FLAG_TIME (1u << 1)

#endif
