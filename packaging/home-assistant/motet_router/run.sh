#!/bin/sh
# Runs the router while its interface is there, and waits for the interface while it is not: the
# border router's add-on may start later, or again.
set -eu

options=${MOTET_OPTIONS:-/data/options.json}
interface=$(jq --raw-output '.interface // "wpan0"' "$options")
policy=$(jq --raw-output '.policy // "relay"' "$options")

router=
# The daemon takes its rules out before it ends.
end() {
    if [ -n "$router" ]; then
        kill -TERM "$router" 2>/dev/null || true
        wait "$router" || true
    fi
    exit 0
}
trap end TERM INT

has_waited=
while :; do
    if [ ! -e "/sys/class/net/$interface" ]; then
        if [ -z "$has_waited" ]; then
            echo "there is no interface $interface yet: the border router's add-on makes it"
            has_waited=yes
        fi
        sleep 5 &
        wait $!
        continue
    fi
    has_waited=
    motet router --nfqueue auto --interface "$interface" --rules install \
        --policy "$policy" &
    router=$!
    wait "$router" || echo "the router has ended: it starts again in five seconds"
    router=
    sleep 5 &
    wait $!
done
