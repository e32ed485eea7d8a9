/* A radio of RIOT's ieee802154_radio HAL, driven for a node of Motet. */
#ifndef MOTET_RIOT_RADIO_H
#define MOTET_RIOT_RADIO_H

#include <motet.h>
#include <net/ieee802154/radio.h>

/* How late this driver may stamp the end of a frame, us: the HAL gives no receive time, so the
 * clock is read when the event is handled. Chosen for an unloaded device; on native for a process
 * among others, and for ACKs that take no time on the air. */
#ifdef MODULE_SOCKET_ZEP
#define RADIO_STAMP_DELAY_MAX_US 5000
#else
#define RADIO_STAMP_DELAY_MAX_US 500
#endif

/* Says in `config` what the radio can do. */
void radio_describe(ieee802154_dev_t *dev, struct motet_config *config);

/* Switches the radio on, with the addresses and the channel of `config`. Returns 0 or an errno. */
int radio_start(ieee802154_dev_t *dev, const struct motet_config *config);

/* Carries out what the node wants. */
void radio_perform(const struct motet_action *action);

/* Whether radio_report has something to tell at once, of which no flag is set. */
bool radio_has_report(void);

/* Tells the node what has happened since the last call. */
void radio_report(struct motet_node *node);

#endif
