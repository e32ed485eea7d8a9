/* Stands for RIOT's header of the same name: what the example uses of it. */
#ifndef STUB_RADIO_H
#define STUB_RADIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { uint8_t uint8[8]; } eui64_t;
typedef struct iolist { struct iolist *iol_next; void *iol_base; size_t iol_len; } iolist_t;
typedef struct ieee802154_dev ieee802154_dev_t;

typedef enum {
    IEEE802154_RADIO_INDICATION_RX_START,
    IEEE802154_RADIO_INDICATION_CRC_ERROR,
    IEEE802154_RADIO_INDICATION_TX_START,
    IEEE802154_RADIO_INDICATION_RX_DONE,
    IEEE802154_RADIO_CONFIRM_TX_DONE,
    IEEE802154_RADIO_CONFIRM_CCA
} ieee802154_trx_ev_t;

struct ieee802154_dev {
    const void *driver;
    void *priv;
    void (*cb)(ieee802154_dev_t *dev, ieee802154_trx_ev_t event);
};

typedef enum {
    TX_STATUS_SUCCESS, TX_STATUS_FRAME_PENDING, TX_STATUS_NO_ACK, TX_STATUS_MEDIUM_BUSY
} ieee802154_tx_status_t;
typedef enum { IEEE802154_PHY_OQPSK = 3 } ieee802154_phy_mode_t;
typedef enum { IEEE802154_FILTER_ACCEPT } ieee802154_filter_mode_t;
typedef enum { IEEE802154_AF_EXT_ADDR = 1, IEEE802154_AF_PANID } ieee802154_af_cmd_t;
enum { IEEE802154_CAP_AUTO_ACK = 1 << 2 };

typedef struct { ieee802154_tx_status_t status; int8_t retrans; } ieee802154_tx_info_t;
typedef struct { uint8_t rssi, lqi; uint64_t timestamp; } ieee802154_rx_info_t;
typedef struct { uint8_t min, max; } ieee802154_csma_be_t;
typedef struct {
    ieee802154_phy_mode_t phy_mode;
    uint16_t channel;
    uint8_t page;
    int8_t pow;
} ieee802154_phy_conf_t;

bool ieee802154_radio_has_capability(ieee802154_dev_t *dev, uint32_t cap);
bool ieee802154_radio_has_auto_csma(ieee802154_dev_t *dev);
bool ieee802154_radio_has_frame_retrans(ieee802154_dev_t *dev);
bool ieee802154_radio_has_irq_ack_timeout(ieee802154_dev_t *dev);
bool ieee802154_radio_has_irq_cca_done(ieee802154_dev_t *dev);
bool ieee802154_radio_has_irq_tx_done(ieee802154_dev_t *dev);
int ieee802154_radio_request_on(ieee802154_dev_t *dev);
int ieee802154_radio_confirm_on(ieee802154_dev_t *dev);
int ieee802154_radio_config_phy(ieee802154_dev_t *dev, const ieee802154_phy_conf_t *conf);
int ieee802154_radio_set_frame_filter_mode(ieee802154_dev_t *dev, ieee802154_filter_mode_t mode);
int ieee802154_radio_config_addr_filter(ieee802154_dev_t *dev, ieee802154_af_cmd_t cmd,
                                        const void *value);
int ieee802154_radio_set_frame_retrans(ieee802154_dev_t *dev, uint8_t retrans);
int ieee802154_radio_set_csma_params(ieee802154_dev_t *dev, const ieee802154_csma_be_t *be,
                                     int8_t retries);
int ieee802154_radio_set_rx(ieee802154_dev_t *dev);
int ieee802154_radio_set_idle(ieee802154_dev_t *dev, bool force);
int ieee802154_radio_write(ieee802154_dev_t *dev, const iolist_t *psdu);
int ieee802154_radio_request_transmit(ieee802154_dev_t *dev);
int ieee802154_radio_confirm_transmit(ieee802154_dev_t *dev, ieee802154_tx_info_t *info);
int ieee802154_radio_request_cca(ieee802154_dev_t *dev);
int ieee802154_radio_confirm_cca(ieee802154_dev_t *dev);
int ieee802154_radio_len(ieee802154_dev_t *dev);
int ieee802154_radio_read(ieee802154_dev_t *dev, void *out, size_t size, ieee802154_rx_info_t *info);

#endif
