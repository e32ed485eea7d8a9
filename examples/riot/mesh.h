/* What a node needs in a mesh with a key: the key itself or one of its own to join with, its counters in
 * flash, and sleep. The build says which, by one of MESH_KEY and MESH_JOIN, and by MESH_SLEEP; without
 * any the node has no key and is always on. */
#ifndef MOTET_RIOT_MESH_H
#define MOTET_RIOT_MESH_H

#include <motet.h>

/* Sets the PAN identifier, where the key's header names it. Call it before motet_node_init. */
void mesh_configure(struct motet_config *config);

/* Gives the node its key, or lets it join, and lets it sleep. Call it after motet_node_init. Returns 0,
 * or a number below it: then the node must not start. */
int mesh_start(struct motet_node *node);

/* Stores what the node asks for: call it when motet_poll has returned 0. Returns 1 where something was
 * stored, or could not be: then call motet_poll again. */
int mesh_store(struct motet_node *node, uint64_t now_us);

/* Prints how far joining is, whenever that has changed. */
void mesh_print(struct motet_node *node);

#endif
