/* The HAL's requests are asynchronous, and its events come from interrupts: they set flags here,
 * and everything else is done by the node's thread. A request that the HAL cannot confirm by an
 * event is confirmed by asking until it is done, which takes microseconds. */
#include "radio.h"

#include <errno.h>
#include <string.h>

#include <irq.h>
#include <thread.h>
#include <thread_flags.h>
#include <ztimer64.h>

#include "flags.h"

#define FRAME_LEN 127

static ieee802154_dev_t *radio;
static thread_t *owner;
static volatile bool received, transmitted, assessed;
static struct { uint8_t len, bytes[FRAME_LEN]; } preloaded;
static uint8_t channel;
/* Whether the radio waits for ACKs by itself. */
static bool takes_acks;
/* Whether what is sent is an ACK of the node's own, and whether the radio has refused a frame. */
static bool is_ack, is_refused;
static bool is_preload_due, is_sending, is_answer_due, is_clear;

static uint64_t now_us(void) {
    return ztimer64_now(ZTIMER64_USEC);
}

/* Whether it was set since the last time. */
static bool take(volatile bool *flag) {
    unsigned state = irq_disable();
    bool was_set = *flag;
    *flag = false;
    irq_restore(state);
    return was_set;
}

/* In an interrupt, or in the thread of native's sockets. */
static void on_event(ieee802154_dev_t *dev, ieee802154_trx_ev_t event) {
    (void)dev;
    switch (event) {
    case IEEE802154_RADIO_INDICATION_RX_DONE:
    case IEEE802154_RADIO_INDICATION_CRC_ERROR:
        received = true;
        break;
    case IEEE802154_RADIO_CONFIRM_TX_DONE:
        transmitted = true;
        break;
    case IEEE802154_RADIO_CONFIRM_CCA:
        assessed = true;
        break;
    default:
        return;
    }
    thread_flags_set(owner, FLAG_RADIO);
}

void radio_describe(ieee802154_dev_t *dev, struct motet_config *config) {
    config->auto_ack = ieee802154_radio_has_capability(dev, IEEE802154_CAP_AUTO_ACK);
#ifdef MODULE_SOCKET_ZEP
    /* It sends ACKs and does not say so. */
    config->auto_ack = 1;
#endif
    config->fcs_by_radio = 1;
    takes_acks = ieee802154_radio_has_irq_ack_timeout(dev)
                 || ieee802154_radio_has_frame_retrans(dev);
    config->takes_acks = takes_acks;
    /* Radios of this HAL may have one buffer; a frame that is copied again costs less than one that
     * is lost. */
    config->shared_buffer = 1;
    config->stamp_delay_max_us = RADIO_STAMP_DELAY_MAX_US;
    config->channel_switch_us = 192;
}

int radio_start(ieee802154_dev_t *dev, const struct motet_config *config) {
    ieee802154_phy_conf_t phy = { .phy_mode = IEEE802154_PHY_OQPSK, .channel = config->channel };
    eui64_t eui64;
    int result;
    radio = dev;
    channel = config->channel;
    owner = thread_get_active();
    dev->cb = on_event;
    memcpy(eui64.uint8, config->eui64, sizeof eui64.uint8);
    result = ieee802154_radio_request_on(dev);
    if (result < 0) {
        return result;
    }
    while ((result = ieee802154_radio_confirm_on(dev)) == -EAGAIN) {
    }
    if (result < 0) {
        return result;
    }
    ieee802154_radio_config_phy(dev, &phy);
    ieee802154_radio_set_frame_filter_mode(dev, IEEE802154_FILTER_ACCEPT);
    ieee802154_radio_config_addr_filter(dev, IEEE802154_AF_PANID, &config->pan);
    ieee802154_radio_config_addr_filter(dev, IEEE802154_AF_EXT_ADDR, &eui64);
    if (ieee802154_radio_has_frame_retrans(dev)) {
        /* Retries are the node's. */
        ieee802154_radio_set_frame_retrans(dev, 0);
    }
    if (ieee802154_radio_has_auto_csma(dev) || ieee802154_radio_has_frame_retrans(dev)) {
        ieee802154_radio_set_csma_params(dev, NULL, -1);
    }
    return ieee802154_radio_set_rx(dev);
}

static void transmit(const uint8_t *frame, size_t len) {
    iolist_t list = { .iol_next = NULL, .iol_base = (void *)(uintptr_t)frame, .iol_len = len };
    ieee802154_radio_set_idle(radio, true);
    is_sending = ieee802154_radio_write(radio, &list) >= 0
                 && ieee802154_radio_request_transmit(radio) >= 0;
    if (!is_sending) {
        /* The node tunes and starts the radio anew: at once, or when an answer is overdue. */
        is_refused = takes_acks && !is_ack;
        ieee802154_radio_set_rx(radio);
    }
}

void radio_perform(const struct motet_action *action) {
    ieee802154_phy_conf_t phy = { .phy_mode = IEEE802154_PHY_OQPSK };
    int result;
    switch (action->kind) {
    case MOTET_PRELOAD:
        /* An attempt that has no answer yet was given up. */
        is_sending = false;
        preloaded.len = (uint8_t)(action->len < FRAME_LEN ? action->len : FRAME_LEN);
        memcpy(preloaded.bytes, action->bytes, preloaded.len);
        is_preload_due = true;
        break;
    case MOTET_ASSESS:
        result = ieee802154_radio_request_cca(radio);
        if (result < 0) {
            /* A radio that cannot tell hears nobody, as far as the node is concerned. */
            is_answer_due = true;
            is_clear = result == -ENOTSUP;
        } else if (!ieee802154_radio_has_irq_cca_done(radio)) {
            assessed = true;
        }
        break;
    case MOTET_FIRE:
        is_ack = false;
        transmit(preloaded.bytes, preloaded.len);
        break;
    case MOTET_TRANSMIT:
        while (now_us() < action->at_us) {
        }
        is_ack = true;
        transmit(action->bytes, action->len);
        break;
    case MOTET_LISTEN:
        ieee802154_radio_set_rx(radio);
        break;
    case MOTET_SLEEP:
        ieee802154_radio_set_idle(radio, true);
        break;
    case MOTET_CHANGE_CHANNEL:
        channel = action->channel;
        phy.channel = channel;
        ieee802154_radio_set_idle(radio, true);
        ieee802154_radio_config_phy(radio, &phy);
        ieee802154_radio_set_rx(radio);
        break;
    default:
        break;
    }
}

static void report_received(struct motet_node *node) {
    uint8_t frame[FRAME_LEN];
    ieee802154_rx_info_t info = { 0 };
    uint64_t at = now_us();
    int len;
    ieee802154_radio_set_idle(radio, false);
    len = ieee802154_radio_len(radio);
    /* Some radios take no other size than the frame's. */
    if (len > 0 && len <= FRAME_LEN) {
        len = ieee802154_radio_read(radio, frame, (size_t)len, &info);
    } else {
        ieee802154_radio_read(radio, NULL, 0, NULL);
        len = 0;
    }
    ieee802154_radio_set_rx(radio);
    if (len > 0) {
        /* The HAL counts from -174 dBm. */
        int dbm = (int)info.rssi - 174;
        motet_on_frame(node, frame, (size_t)len, (int8_t)(dbm < -128 ? -128 : dbm), info.lqi,
                       channel, at, now_us());
    }
}

/* How the attempt ended. Of a frame that asks for no ACK, MOTET_ACKED means what MOTET_DONE does. */
static uint8_t outcome_of(const ieee802154_tx_info_t *info) {
    switch (info->status) {
    case TX_STATUS_SUCCESS:
    case TX_STATUS_FRAME_PENDING:
        return MOTET_ACKED;
    case TX_STATUS_NO_ACK:
        return MOTET_NO_ACK;
    case TX_STATUS_MEDIUM_BUSY:
        return MOTET_BUSY;
    default:
        return MOTET_FAILED;
    }
}

static void report_transmitted(struct motet_node *node) {
    ieee802154_tx_info_t info = { .status = TX_STATUS_SUCCESS };
    uint64_t at = now_us();
    if (ieee802154_radio_confirm_transmit(radio, &info) == -EAGAIN) {
        return;
    }
    is_sending = false;
    ieee802154_radio_set_rx(radio);
    if (takes_acks && !is_ack) {
        bool pending = info.status == TX_STATUS_FRAME_PENDING;
        motet_on_sent(node, outcome_of(&info), pending, at, now_us());
    } else {
        motet_on_transmitted(node, at, now_us());
    }
}

void radio_report(struct motet_node *node) {
    if (is_preload_due) {
        is_preload_due = false;
        motet_on_preloaded(node, now_us());
    }
    if (is_refused) {
        is_refused = false;
        motet_on_sent(node, MOTET_FAILED, false, now_us(), now_us());
    }
    if (is_answer_due) {
        is_answer_due = false;
        motet_on_assessed(node, is_clear, now_us());
    }
    if (is_sending && !ieee802154_radio_has_irq_tx_done(radio)) {
        transmitted = true;
    }
    if (take(&transmitted) && is_sending) {
        report_transmitted(node);
    }
    if (take(&assessed)) {
        int clear;
        while ((clear = ieee802154_radio_confirm_cca(radio)) == -EAGAIN) {
        }
        ieee802154_radio_set_rx(radio);
        motet_on_assessed(node, clear > 0, now_us());
    }
    if (take(&received)) {
        report_received(node);
    }
}

bool radio_has_report(void) {
    return is_preload_due || is_answer_due || is_refused || assessed
           || (is_sending && !ieee802154_radio_has_irq_tx_done(radio));
}
