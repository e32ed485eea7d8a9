#!/usr/bin/env python3
"""bumble as a judge of Motet over Bluetooth LE.

bumble's virtual controllers are below both ends: `motet up --hci` drives one of them over H4 and TCP,
bumble's own host with its own L2CAP the other. Above bumble's channel of IPv6 (IPSP, RFC 7668) lies this
machine's kernel, joined by a TUN interface: its TCP is the other end. What is bridged here is RFC 6282's
header compression alone, restored in all its stateless forms and emitted with everything in line.

In each role of the mote, 100 kB go each way. Up: the mote's character generator, whose text RFC 864
defines. Down: random bytes, of which the mote's echo says what it received.

Runs in a network namespace of its own, as root there. Prints one line a role and direction, JSON with
--json, and ends with status 1 where bytes were lost, changed or late.
"""

import argparse
import asyncio
import fcntl
import hashlib
import ipaddress
import json
import os
import struct
import subprocess
import sys

from bumble.controller import Controller
from bumble.core import UUID, AdvertisingData
from bumble.device import Device
from bumble.hci import Address
from bumble.host import Host
from bumble.l2cap import LeCreditBasedChannelSpec
from bumble.link import LocalLink
from bumble.transport import open_transport

BYTES = 100_000
TUN = 'ble0'
OWN = 'C2:4D:6F:74:FF:01'
IPSP = LeCreditBasedChannelSpec(psm=0x0023, mtu=1280, mps=247, max_credits=32)
IPSS = bytes(AdvertisingData([
    (AdvertisingData.FLAGS, bytes([6])),
    (AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS, bytes(UUID.from_16_bits(0x1820))),
]))
# A step that takes longer has failed.
STEP_S = 60


def iid(address):
    """The identifier of a device's addresses (RFC 7668 §3.2.2)."""
    octets = bytes.fromhex(address.replace(':', ''))
    return octets[:3] + b'\xff\xfe' + octets[3:]


def link_local(address):
    return b'\xfe\x80' + bytes(6) + iid(address)


def compress(packet):
    """A packet as an SDU: IPHC with everything in line (RFC 6282 §3.1)."""
    flow, length, next_header, hops = struct.unpack_from('!IHBB', packet)
    assert flow >> 28 == 6 and length == len(packet) - 40
    dispatch = 0x6000
    head = b''
    if flow & 0x0fffffff:
        # Traffic class and flow label: ECN first.
        traffic_class, label = flow >> 20 & 0xff, flow & 0xfffff
        ecn_first = (traffic_class & 3) << 6 | traffic_class >> 2
        head = bytes([ecn_first]) + label.to_bytes(3, 'big')
    else:
        dispatch |= 0x1800
    source, destination = packet[8:24], packet[24:40]
    if destination[0] == 0xff:
        dispatch |= 0x0008
    head += bytes([next_header, hops]) + source + destination
    return struct.pack('!H', dispatch) + head + packet[40:]


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        piece = self.data[self.at:self.at + count]
        if len(piece) < count:
            raise ValueError('the compressed header is cut short')
        self.at += count
        return piece

    def rest(self):
        return self.data[self.at:]


def unicast(reader, mode, device):
    """An address of the stateless modes (RFC 6282 §3.2.1)."""
    prefix = b'\xfe\x80' + bytes(6)
    if mode == 0:
        return reader.take(16)
    if mode == 1:
        return prefix + reader.take(8)
    if mode == 2:
        return prefix + bytes([0, 0, 0, 0xff, 0xfe, 0]) + reader.take(2)
    return prefix + iid(device)


def multicast(reader, mode):
    if mode == 0:
        return reader.take(16)
    if mode == 1:
        scope, group = reader.take(1), reader.take(5)
        return b'\xff' + scope + bytes(9) + group
    if mode == 2:
        scope, group = reader.take(1), reader.take(3)
        return b'\xff' + scope + bytes(11) + group
    return b'\xff\x02' + bytes(13) + reader.take(1)


def decompress(sdu, sender, receiver):
    """An SDU as a packet."""
    reader = Reader(sdu)
    (dispatch,) = struct.unpack('!H', reader.take(2))
    if dispatch >> 13 != 3:
        raise ValueError(f'{dispatch >> 8:#04x} begins no IPHC')
    if dispatch & 0x04c4:
        # A compressed next header, or a context: of neither does this end know.
        raise ValueError(f'IPHC {dispatch:#06x} goes beyond what a peer knows by itself')
    form = dispatch >> 11 & 3
    traffic_class = label = 0
    if form in (0, 1, 2):
        first = reader.take(1)[0]
        if form == 2:
            traffic_class = (first & 0x3f) << 2 | first >> 6
        elif form == 0:
            traffic_class = (first & 0x3f) << 2 | first >> 6
            label = int.from_bytes(reader.take(3), 'big') & 0xfffff
        else:
            traffic_class = first >> 6
            label = (first & 0x0f) << 16 | int.from_bytes(reader.take(2), 'big')
    next_header = reader.take(1)[0]
    hops = {1: 1, 2: 64, 3: 255}.get(dispatch >> 8 & 3) or reader.take(1)[0]
    source = unicast(reader, dispatch >> 4 & 3, sender)
    if dispatch & 8:
        destination = multicast(reader, dispatch & 3)
    else:
        destination = unicast(reader, dispatch & 3, receiver)
    payload = reader.rest()
    flow = 6 << 28 | traffic_class << 20 | label
    return struct.pack('!IHBB', flow, len(payload), next_header, hops) + source + destination + payload


class Bridge:
    """The kernel's packets to bumble's channel and back."""

    def __init__(self):
        self.tun = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
        no_header, is_tun, tunsetiff = 0x1000, 0x0001, 0x400454ca
        fcntl.ioctl(self.tun, tunsetiff, struct.pack('16sH22x', TUN.encode(), is_tun | no_header))
        address = ipaddress.IPv6Address(link_local(OWN))
        for words in (
            f'link set {TUN} mtu 1280 addrgenmode none',
            f'link set {TUN} up',
            f'-6 addr add {address}/64 dev {TUN} nodad',
        ):
            subprocess.run(['ip', *words.split()], check=True)
        self.channel = None
        self.refused = []
        asyncio.get_running_loop().add_reader(self.tun, self.from_kernel)

    def open(self, channel, peer):
        self.channel, self.peer = channel, peer
        channel.sink = self.from_air

    def from_air(self, sdu):
        try:
            os.write(self.tun, decompress(bytes(sdu), self.peer, OWN))
        except ValueError as error:
            self.refused.append(str(error))

    def from_kernel(self):
        packet = os.read(self.tun, 2048)
        if self.channel is not None and packet[0] >> 4 == 6:
            self.channel.write(compress(packet))


async def bumble(link):
    """A device of bumble's, host and controller."""
    controller = Controller('bumble', link=link)
    controller.le_acl_data_packet_length = 251
    device = Device(name='bumble', address=Address(OWN), host=Host())
    device.host.controller = controller
    await device.power_on()
    return device


async def channel_of(device, role):
    """The channel of IPv6 to the mote, which has this role, and the mote's address."""
    if role == 'central':
        opened = asyncio.get_running_loop().create_future()
        device.create_l2cap_server(spec=IPSP, handler=opened.set_result)
        device.advertising_data = IPSS
        await device.start_advertising(auto_restart=True)
        channel = await opened
        return channel, str(channel.connection.peer_address)
    found = asyncio.get_running_loop().create_future()

    def on_advertisement(advertisement):
        services = advertisement.data.get(AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS)
        if services and UUID.from_16_bits(0x1820) in services and not found.done():
            found.set_result(advertisement.address)

    device.on('advertisement', on_advertisement)
    await device.start_scanning()
    address = await found
    await device.stop_scanning()
    connection = await device.connect(address)
    channel = await connection.create_l2cap_channel(spec=IPSP)
    return channel, str(address)


def plain(address):
    """An address as bumble prints it, without its kind."""
    return address.split('/')[0]


def generated(count):
    """The text of a character generator (RFC 864): lines of 72 characters, each line a character on."""
    ring = bytes(range(32, 127))
    lines = []
    for line in range(count // 74 + 1):
        start = line % len(ring)
        lines.append((ring * 2)[start:start + 72] + b'\r\n')
    return b''.join(lines)[:count]


async def connect(bridge, port):
    address = ipaddress.IPv6Address(link_local(bridge.peer))
    return await asyncio.open_connection(f'{address}%{TUN}', port)


async def up(bridge):
    reader, writer = await connect(bridge, 19)
    received = await reader.readexactly(BYTES)
    writer.transport.abort()
    return generated(BYTES), received


async def down(bridge):
    sent = os.urandom(BYTES)
    reader, writer = await connect(bridge, 7)

    async def send():
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    _, received = await asyncio.gather(send(), read_all(reader))
    writer.close()
    return sent, received


async def read_all(reader):
    pieces = []
    while piece := await reader.read(65536):
        pieces.append(piece)
    return b''.join(pieces)


async def judge(motet, role):
    """A row for each direction, with a mote of this role."""
    link = LocalLink()
    transport = await open_transport('tcp-server:127.0.0.1:7002')
    below = Controller('mote', host_source=transport.source, host_sink=transport.sink, link=link)
    below.le_acl_data_packet_length = 251
    mote = await asyncio.create_subprocess_exec(
        motet, 'up', '--hci', 'tcp:127.0.0.1:7002', '--role', role, stdin=subprocess.DEVNULL)
    rows = []
    try:
        device = await bumble(link)
        channel, address = await asyncio.wait_for(channel_of(device, role), STEP_S)
        bridge = Bridge()
        bridge.open(channel, plain(address))
        for direction, move in (('up', up), ('down', down)):
            start = asyncio.get_running_loop().time()
            sent, received = await asyncio.wait_for(move(bridge), STEP_S)
            rows.append({
                'peer': 'bumble',
                'role': role,
                'direction': direction,
                'bytes': len(received),
                'sha256_sent': hashlib.sha256(sent).hexdigest(),
                'sha256_received': hashlib.sha256(received).hexdigest(),
                'seconds': round(asyncio.get_running_loop().time() - start, 2),
                'pass': sent == received and not bridge.refused,
                'refused': bridge.refused,
            })
        asyncio.get_running_loop().remove_reader(bridge.tun)
        os.close(bridge.tun)
    finally:
        if mote.returncode is None:
            mote.terminate()
        status = await mote.wait()
        await transport.close()
    if status != 0:
        print(f'motet up ended with status {status}', file=sys.stderr)
        rows = [{**row, 'pass': False} for row in rows]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--motet', required=True, help='the command to judge')
    parser.add_argument('--json', action='store_true', help='print one JSON object a line')
    arguments = parser.parse_args()
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    is_good = True
    for role in ('peripheral', 'central'):
        try:
            rows = asyncio.run(judge(arguments.motet, role))
        except (asyncio.TimeoutError, OSError, EOFError) as error:
            print(f'bumble and a {role}: {type(error).__name__} {error}', file=sys.stderr)
            is_good = False
            continue
        for row in rows:
            is_good &= row['pass']
            if arguments.json:
                print(json.dumps(row), flush=True)
            else:
                verdict = 'ok' if row['pass'] else 'FAILED'
                print(f"{row['peer']}  mote a {role:<10}  {row['direction']:<4}  {row['bytes']} B in "
                      f"{row['seconds']} s  {verdict}", flush=True)
    sys.exit(not is_good)


if __name__ == '__main__':
    main()
