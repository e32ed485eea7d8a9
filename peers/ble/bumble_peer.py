#!/usr/bin/env python3
"""bumble as a judge of Motet over Bluetooth LE.

bumble's virtual controllers are below both ends: `motet up --hci` drives one of them over H4 and TCP,
bumble's own host with its own L2CAP the other. Above bumble's channel of IPv6 (IPSP, RFC 7668) lies this
machine's kernel, joined by a TUN interface: its TCP is the other end. What is bridged here is RFC 6282's
header compression alone, restored in all its stateless forms and emitted with everything in line.

In each role of the mote, 100 kB go each way. Up: the mote's character generator, whose text RFC 864
defines. Down: random bytes, of which the mote's echo says what it received. As a router the mote is a central
with a command beside it: 100 kB go each way between the kernel of that command's network and the one above
bumble's channel, and tshark, where there is one, is to find every byte in what the mote captured.

With --tcple the mote offers TCPlE, which bumble does not know: all is as without it.

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
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

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
# What a router of the lab's address plan advertises: its contexts, by number.
CONTEXTS = [ipaddress.IPv6Address(prefix).packed[:8] for prefix in ('fd6d:6f74:6574:1::', 'fd6d:6f74:6574::')]
# The ports of the far kernel that give and take.
SOURCE, DRAIN = 4001, 4002
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
    """An address of the modes for one node (RFC 6282 §3.1.1), whose second half a context completes or not."""
    is_stateful, mode, context = mode
    prefix = CONTEXTS[context] if is_stateful else b'\xfe\x80' + bytes(6)
    if mode == 0:
        if is_stateful:
            raise ValueError('no address of ours is compressed so')
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
    if dispatch & 0x0400 or dispatch & 0x000c == 0x000c:
        # A compressed next header, or a context of a group: of neither does this end know.
        raise ValueError(f'IPHC {dispatch:#06x} goes beyond what this peer knows')
    contexts = reader.take(1)[0] if dispatch & 0x80 else 0
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
    source = unicast(reader, (dispatch & 0x40, dispatch >> 4 & 3, contexts >> 4), sender)
    if dispatch & 8:
        destination = multicast(reader, dispatch & 3)
    else:
        destination = unicast(reader, (dispatch & 4, dispatch & 3, contexts & 15), receiver)
    payload = reader.rest()
    flow = 6 << 28 | traffic_class << 20 | label
    return struct.pack('!IHBB', flow, len(payload), next_header, hops) + source + destination + payload


def ip(words):
    subprocess.run(['ip', *words.split()], check=True)


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
            ip(words)
        self.channel = None
        self.refused = []
        asyncio.get_running_loop().add_reader(self.tun, self.from_kernel)

    def open(self, channel, peer):
        self.channel, self.peer = channel, peer
        channel.sink = self.from_air

    def close(self):
        self.channel.sink = lambda _: None
        asyncio.get_running_loop().remove_reader(self.tun)
        os.close(self.tun)

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


def row(role, direction, start, sent, received, refused):
    """What a transfer has shown; `sent` and `received`: digest and length."""
    return {
        'peer': 'bumble',
        'role': role,
        'direction': direction,
        'bytes': received[1],
        'sha256_sent': sent[0],
        'sha256_received': received[0],
        'seconds': round(asyncio.get_running_loop().time() - start, 2),
        'pass': sent == received and not refused,
        'refused': refused,
    }


def digest(data):
    return hashlib.sha256(data).hexdigest(), len(data)


class Mote:
    """A mote over a virtual controller, and bumble's device on the same air."""

    async def __aenter__(self):
        link = LocalLink()
        self.transport = await open_transport('tcp-server:127.0.0.1:7002')
        below = Controller('mote', host_source=self.transport.source, host_sink=self.transport.sink, link=link)
        below.le_acl_data_packet_length = 251
        self.process = await asyncio.create_subprocess_exec(
            *self.command, stdin=subprocess.DEVNULL, stdout=self.stdout)
        self.device = await bumble(link)
        return self

    def __init__(self, command, stdout=None):
        self.command, self.stdout = command, stdout

    async def bridge(self, role):
        channel, address = await asyncio.wait_for(channel_of(self.device, role), STEP_S)
        bridge = Bridge()
        bridge.open(channel, plain(address))
        return bridge

    async def __aexit__(self, *_):
        if self.process.returncode is None:
            self.process.terminate()
        self.status = await self.process.wait()
        await self.transport.close()


def checked(status, rows):
    if status == 0:
        return rows
    print(f'motet up ended with status {status}', file=sys.stderr)
    return [{**row, 'pass': False} for row in rows]


async def judge(motet, role):
    """A row for each direction, with a mote of this role."""
    rows = []
    mote = Mote([*motet, '--role', role])
    async with mote:
        bridge = await mote.bridge(role)
        for direction, move in (('up', up), ('down', down)):
            start = asyncio.get_running_loop().time()
            sent, received = await asyncio.wait_for(move(bridge), STEP_S)
            rows.append(row(role, direction, start, digest(sent), digest(received), bridge.refused))
        bridge.close()
    return checked(mote.status, rows)


async def judge_router(motet):
    """A row for each direction, between this kernel above bumble and that of a router's command."""
    content, taken = os.urandom(BYTES), asyncio.get_running_loop().create_future()

    async def give(_, writer):
        writer.write(content)
        await writer.drain()
        writer.close()

    async def take(reader, writer):
        taken.set_result(await read_all(reader))
        writer.close()

    with tempfile.TemporaryDirectory(prefix='motet-bumble-') as folder:
        capture = os.path.join(folder, 'hci.pcap')
        beside = [sys.executable, os.path.abspath(__file__), '--beside']
        mote = Mote([*motet, '--role', 'central', '--pcap', capture, '--', *beside], subprocess.PIPE)
        async with mote:
            bridge = await mote.bridge('central')
            address = ipaddress.IPv6Address(CONTEXTS[0] + iid(OWN))
            ip(f'-6 addr add {address}/128 dev {TUN} nodad')
            ip(f'-6 route add default via {ipaddress.IPv6Address(link_local(bridge.peer))} dev {TUN}')
            await asyncio.start_server(give, str(address), SOURCE)
            await asyncio.start_server(take, str(address), DRAIN)
            start = asyncio.get_running_loop().time()
            printed, _ = await asyncio.wait_for(mote.process.communicate(), STEP_S)
            bridge.close()
        received, sent = json.loads(printed) if mote.status == 0 else ([None, 0], None)
        arrived = digest(taken.result()) if taken.done() else (None, 0)
        rows = [
            row('router', 'up', start, digest(content), tuple(received), bridge.refused),
            row('router', 'down', start, tuple(sent or ('', 0)), arrived, bridge.refused),
        ]
        return checked(mote.status or seen(capture), rows)


def seen(capture):
    """What is wrong with a capture of both transfers, as tshark reads it: nothing where there is no tshark."""
    if shutil.which('tshark') is None:
        return 0

    def fields(which, *names):
        command = ['tshark', '-r', capture, '-Y', which, '-T', 'fields']
        # Random bytes are what they are, even where they look like something else.
        for port in (SOURCE, DRAIN):
            command += ['-d', f'tcp.port=={port},data']
        for name in names:
            command += ['-e', name]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    # bumble answers a command that it does not know with a status alone, which tshark takes for cut short.
    malformed = fields('_ws.malformed && !bthci_evt', 'frame.protocols')
    carried = sum(map(int, fields('tcp', 'tcp.len')))
    if malformed or carried < 2 * BYTES:
        return f'{carried} bytes of TCP captured, malformed: {malformed}'
    return 0


def reach(far, port):
    """A connection to the far kernel, which may not listen yet."""
    end = time.monotonic() + STEP_S / 2
    while True:
        try:
            return socket.create_connection((far, port), STEP_S)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def beside():
    """The command of a router: takes what the far kernel gives, and gives it as much."""
    far = os.environ['MOTET_MOTES'].split()[0]
    received = b''
    with reach(far, SOURCE) as source:
        while piece := source.recv(65536):
            received += piece
    sent = os.urandom(BYTES)
    with reach(far, DRAIN) as drain:
        drain.sendall(sent)
        drain.shutdown(socket.SHUT_WR)
        # Its end says that all has arrived.
        drain.recv(1)
    print(json.dumps([digest(received), digest(sent)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--motet', help='the command to judge')
    parser.add_argument('--tcple', action='store_true', help='let it offer TCPlE')
    parser.add_argument('--json', action='store_true', help='print one JSON object a line')
    parser.add_argument('--beside', action='store_true', help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.beside:
        beside()
        return
    ip('link set lo up')
    motet = [arguments.motet, 'up', '--hci', 'tcp:127.0.0.1:7002', *['--tcple'] * arguments.tcple]
    is_good = True
    for role in ('peripheral', 'central', 'router'):
        judged = judge_router(motet) if role == 'router' else judge(motet, role)
        try:
            rows = asyncio.run(judged)
        except (asyncio.TimeoutError, OSError, EOFError) as error:
            print(f'bumble and a {role}: {type(error).__name__} {error}', file=sys.stderr)
            is_good = False
            continue
        for row in rows:
            row['tcple'] = arguments.tcple
            is_good &= row['pass']
            if arguments.json:
                print(json.dumps(row), flush=True)
            else:
                verdict = 'ok' if row['pass'] else 'FAILED'
                offers = ' with TCPlE' if arguments.tcple else ''
                print(f"{row['peer']}  mote a {row['role']:<10}{offers}  {row['direction']:<4}  {row['bytes']} B in "
                      f"{row['seconds']} s  {verdict}", flush=True)
    sys.exit(not is_good)


if __name__ == '__main__':
    main()
