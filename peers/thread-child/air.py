#!/usr/bin/env python3
"""OpenThread's simulated air: a recorder and an attacker, for `cargo xtask interop thread-child`.

Simulated radios send each frame as a UDP datagram to 224.0.0.116 port 9000 on `lo`: one byte with the channel, then
the frame with its FCS (openthread/examples/platforms/simulation/radio.c).

record FILE           writes every frame into a capture until the input ends
attack CAPTURE …      takes what a capture of this air has of a child and its parent, sends frames that must change
                      nothing, and prints what it sent as JSON
router …              is a router that offers itself to every child and has no address for it, until the input ends
keys CAPTURE …        prints as JSON the key indices of the secured frames that a child has sent, in the order of first use,
                      and that of the last one

What the attacker forges is made after Thread 1.1 (keys: section 7.1.4; MLE security: section 4.9) without Motet's code.
"""

import argparse
import hashlib
import hmac
import json
import random
import select
import socket
import struct
import sys
import time

GROUP, PORT = '224.0.0.116', 9000
MLE_PORT = 19788
# Link type IEEE 802.15.4 with FCS.
LINK_TYPE = 195
# Where the packet begins in a frame with two extended addresses, and the message in a packet whose headers are compressed.
PACKET_AT, MLE_AT = 21, 30
# Commands of MLE, in the order of their numbers from 4 on.
COMMANDS = {
    'Advertisement': 4, 'Data Response': 8, 'Parent Response': 10, 'Child ID Response': 12, 'Child Update Request': 13,
    'Child Update Response': 14, 'Announce': 15,
}


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest='command', required=True)
    recorder = commands.add_parser('record')
    recorder.add_argument('file')
    attacker = commands.add_parser('attack')
    attacker.add_argument('capture')
    attacker.add_argument('--kind', choices=KINDS, required=True)
    attacker.add_argument('--key', type=bytes.fromhex, required=True, help='network key')
    attacker.add_argument('--child', type=bytes.fromhex, required=True, help='extended address')
    attacker.add_argument('--parent', type=bytes.fromhex, required=True, help='extended address')
    attacker.add_argument('--sequence', type=int, default=0, help='key sequence of the network')
    attacker.add_argument('--channel', type=int, required=True)
    attacker.add_argument('--count', type=int, default=100)
    attacker.add_argument('--rate', type=float, default=40, help='frames a second')
    router = commands.add_parser('router')
    router.add_argument('--key', type=bytes.fromhex, required=True, help='network key')
    router.add_argument('--channel', type=int, required=True)
    reader = commands.add_parser('keys')
    reader.add_argument('capture')
    reader.add_argument('--sources', type=bytes.fromhex, nargs='+', required=True, help='addresses of the child')
    options = parser.parse_args()
    if options.command == 'record':
        record(options.file)
    elif options.command == 'keys':
        print(json.dumps(keys(options)))
    elif options.command == 'router':
        refuse(options)
    else:
        attack(options)


def listener():
    air = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        air.setsockopt(socket.SOL_SOCKET, option, 1)
    # A burst of frames waits here while the disk is slow.
    air.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    air.bind((GROUP, PORT))
    member = socket.inet_aton(GROUP) + socket.inet_aton('127.0.0.1')
    air.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    return air


def record(path):
    air = listener()
    with open(path, 'wb') as file:
        file.write(struct.pack('<IHHiIII', 0xA1B2C3D4, 2, 4, 0, 0, 65535, LINK_TYPE))
        file.flush()
        print('listening', flush=True)
        while True:
            ready, _, _ = select.select([air, sys.stdin], [], [])
            if air in ready:
                datagram = air.recv(300)
                now, psdu = time.time(), datagram[1:]
                file.write(struct.pack('<IIII', int(now), int(now % 1 * 1e6), len(psdu), len(psdu)) + psdu)
                file.flush()
            elif not sys.stdin.readline():
                return


def frames_of(path):
    with open(path, 'rb') as file:
        content = file.read()
    at, frames = 24, []
    while at + 16 <= len(content):
        length = struct.unpack_from('<I', content, at + 8)[0]
        frames.append(content[at + 16 : at + 16 + length])
        at += 16 + length
    return frames


def fcs(frame):
    """ITU-T CRC of 16 bits, reflected, as IEEE 802.15.4 has it."""
    crc = 0
    for byte in frame:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x8408 if crc & 1 else 0)
    return struct.pack('<H', crc)


def addresses(psdu):
    """PAN, destination and source of a data or command frame with both, as bytes most significant first."""
    if len(psdu) < 5:
        return None
    control = struct.unpack_from('<H', psdu)[0]
    destination, source = control >> 10 & 3, control >> 14
    if control & 7 not in (1, 3) or destination < 2 or source < 2 or not control & 0x40:
        return None
    lengths = {2: 2, 3: 8}
    first = 5 + lengths[destination]
    last = first + lengths[source]
    return struct.unpack_from('<H', psdu, 3)[0], psdu[5:first][::-1], psdu[first:last][::-1], psdu[last:-2]


def interface_of(extended):
    return bytes([extended[0] ^ 2]) + extended[1:]


def link_local(extended):
    return bytes.fromhex('fe80000000000000') + interface_of(extended)


def checksum(source, destination, datagram):
    whole = source + destination + struct.pack('>II', len(datagram), 17) + datagram
    whole += b'\0' * (len(whole) & 1)
    total = sum(struct.unpack(f'>{len(whole) // 2}H', whole))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF or 0xFFFF


def sender_socket():
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('127.0.0.1'))
    out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    return out


def opened(psdu, key):
    """PAN and source of a frame with an MLE message, its key sequence and counter, its command, and its TLVs by their types."""
    from cryptography.hazmat.primitives.ciphers.aead import AESCCM

    place = addresses(psdu)
    if not place or len(place[2]) != 8:
        return None
    pan, destination, source, packet = place
    # IPHC: the addresses from the frame's, or the group of all nodes or routers; UDP with both ports and its checksum.
    if packet[1:2] == b'\x33' and len(destination) == 8:
        to, datagram = link_local(destination), packet[2:]
    elif packet[1:2] == b'\x3b':
        to, datagram = bytes.fromhex('ff0200000000000000000000000000') + packet[2:3], packet[3:]
    else:
        return None
    if datagram[:5] != b'\xf0' + struct.pack('>HH', MLE_PORT, MLE_PORT) or datagram[7:9] != b'\0\x15':
        return None
    auxiliary, sealed = datagram[8:18], datagram[18:]
    counter, = struct.unpack_from('<I', auxiliary, 1)
    sequence, = struct.unpack_from('>I', auxiliary, 5)
    derived = hmac.new(key, auxiliary[5:9] + b'Thread', hashlib.sha256).digest()
    nonce = source + struct.pack('>I', counter) + b'\5'
    clear = AESCCM(derived[:16], tag_length=4).decrypt(nonce, sealed, link_local(source) + to + auxiliary)
    tlvs, at = {}, 1
    while at + 2 <= len(clear):
        tlvs[clear[at]] = clear[at + 2 : at + 2 + clear[at + 1]]
        at += 2 + clear[at + 1]
    return pan, source, (sequence, counter), clear[0], tlvs


def keys(options):
    """The key indices of what a child has sent (IEEE 802.15.4-2006, section 7.6.2), which the MIC covers."""
    used = []
    for frame in frames_of(options.capture):
        place = addresses(frame)
        is_secured = place and frame[0] & 8 and place[2] in options.sources
        if is_secured and len(place[3]) > 6 and place[3][0] & 0x18 == 8:
            used.append(place[3][5])
    return {'used': list(dict.fromkeys(used)), 'last': used[-1] if used else None}


def refuse(options):
    """Offers itself as OpenThread's router does (Thread 1.1, section 4.5), and answers each Child ID Request with a Status."""
    from cryptography.exceptions import InvalidTag

    own, short, leader = bytes.fromhex('02feedfeedfeed01'), struct.pack('>H', 0x2800), struct.pack('>I', 7) + bytes([64, 1, 1, 10])
    air, out, counter = listener(), sender_socket(), 1
    print('listening', flush=True)
    while True:
        ready, _, _ = select.select([air, sys.stdin], [], [])
        if air not in ready:
            if not sys.stdin.readline():
                return
            continue
        datagram = air.recv(300)
        psdu = datagram[1:]
        place = addresses(psdu)
        if place and place[1] == own and psdu[0] & 0x20:
            acknowledgment = b'\2\0' + psdu[2:3]
            out.sendto(datagram[:1] + acknowledgment + fcs(acknowledgment), (GROUP, PORT))
        try:
            heard = opened(psdu, options.key)
        except InvalidTag:
            continue
        if not heard:
            continue
        pan, options.child, _numbers, command, tlvs = heard
        if command == 9:
            answer = (
                tlv(0, short) + tlv(11, leader) + tlv(5, bytes(4)) + tlv(8, bytes(4)) + tlv(4, tlvs[3]) + tlv(3, b'challenge'[:8])
                + tlv(16, b'\x50') + tlv(15, bytes([0, 0, 0, 0, 0, 1, 1, 5, 0, 1])) + tlv(18, b'\0\4')
            )
        elif command == 11:
            answer = tlv(0, short) + tlv(17, b'\1')
        else:
            continue
        counter += 1
        frame = Forger(options, pan).message(
            command + 1, answer, key=options.key, sequence=0, counter=counter, sender=own,
        )
        out.sendto(bytes([options.channel]) + frame, (GROUP, PORT))


class Forger:
    """Makes MLE messages that a parent could have sent."""

    def __init__(self, options, pan):
        from cryptography.hazmat.primitives.ciphers.aead import AESCCM

        self.cipher = AESCCM
        self.options, self.pan = options, pan
        self.number = random.randrange(256)

    def message(self, command, tlvs, *, key, sequence, counter, sender, hops=255):
        """A frame from `sender`, an extended address, to the child."""
        derived = hmac.new(key, struct.pack('>I', sequence) + b'Thread', hashlib.sha256).digest()
        auxiliary = bytes([0x15]) + struct.pack('<I', counter) + struct.pack('>I', sequence) + bytes([sequence % 128 + 1])
        source, destination = link_local(sender), link_local(self.options.child)
        nonce = sender + struct.pack('>I', counter) + b'\5'
        sealed = self.cipher(derived[:16], tag_length=4).encrypt(nonce, bytes([command]) + tlvs, source + destination + auxiliary)
        payload = b'\0' + auxiliary + sealed
        datagram = struct.pack('>HHHH', MLE_PORT, MLE_PORT, len(payload) + 8, 0) + payload
        check = struct.pack('>H', checksum(source, destination, datagram))
        # IPHC: traffic class elided, UDP compressed, both addresses from the frame's.
        limit = {255: b'\x7f', 64: b'\x7e', 1: b'\x7d'}[hops]
        packet = limit + b'\x33' + b'\xf0' + datagram[:4] + check + payload
        return self.frame(packet, sender)

    def frame(self, packet, sender):
        self.number = self.number + 1 & 0xFF
        # Data, ACK wanted, one PAN, extended addresses, 2006.
        header = struct.pack('<HBH', 0xDC61, self.number, self.pan)
        body = header + self.options.child[::-1] + sender[::-1] + packet
        return body + fcs(body)


def tlv(kind, value):
    return bytes([kind, len(value)]) + value


def plausible(rng):
    """TLVs of a message that would change a child's state if it were believed."""
    leader = struct.pack('>I', rng.getrandbits(32)) + bytes([64, rng.randrange(256), rng.randrange(256), rng.randrange(63)])
    own = struct.pack('>H', rng.randrange(63) << 10)
    return (
        tlv(0, own) + tlv(11, leader) + tlv(5, bytes(4)) + tlv(8, bytes(4)) + tlv(4, rng.randbytes(8))
        + tlv(3, rng.randbytes(8)) + tlv(16, b'\x7f') + tlv(10, struct.pack('>H', rng.randrange(63) << 10 | 1))
        + tlv(17, b'\1') + tlv(18, b'\0\4') + tlv(12, b'')
    )


def attack(options):
    rng = random.Random(7)
    frames = frames_of(options.capture)
    known = [(addresses(frame), frame) for frame in frames]
    to_child = [frame for place, frame in known if place and place[1] == options.child and place[2] == options.parent]
    pans = [place[0] for place, _ in known if place]
    if not pans:
        sys.exit('the capture has no frame with addresses')
    forger = Forger(options, pans[-1])
    if not to_child:
        sys.exit('the capture has no message of the parent to the child')
    sent = KINDS[options.kind](options, forger, frames, to_child, rng)
    out = sender_socket()
    began, count = time.monotonic(), 0
    for frame in sent:
        due = began + count / options.rate
        time.sleep(max(0, due - time.monotonic()))
        out.sendto(bytes([options.channel]) + frame, (GROUP, PORT))
        count += 1
    seconds = round(time.monotonic() - began, 2)
    print(json.dumps({'kind': options.kind, 'sent': count, 'seconds': seconds, 'known': len(to_child)}))


def forged(options, forger, _frames, _to_child, rng):
    """No key: everything about the message is right except its seal."""
    for number in range(options.count):
        command = rng.choice(list(COMMANDS.values()))
        yield forger.message(
            command, plausible(rng), key=rng.randbytes(16), sequence=options.sequence + number % 3,
            counter=0x7000_0000 + number, sender=options.parent,
        )


def other_key(options, forger, _frames, _to_child, rng):
    """A network of the same PAN and channel with a key of its own."""
    key = hashlib.sha256(b'another network').digest()[:16]
    stranger = bytes([rng.randrange(256) & 0xFC | 2]) + rng.randbytes(7)
    for number in range(options.count):
        sender = stranger if number % 2 else options.parent
        yield forger.message(
            rng.choice(list(COMMANDS.values())), plausible(rng), key=key, sequence=options.sequence,
            counter=0x7000_0000 + number, sender=sender,
        )


def lower(options, forger, _frames, _to_child, rng):
    """The network's own key, of a sequence that is past, in the parent's name: Advertisement, Data Response, Child Update
    Request and Response."""
    if options.sequence == 0:
        sys.exit('no sequence is lower than 0')
    for number in range(options.count):
        yield forger.message(
            (4, 8, 13, 14)[number % 4], plausible(rng), key=options.key, sequence=options.sequence - 1,
            counter=0x7000_0000 + number, sender=options.parent,
        )


def replayed(options, _forger, _frames, to_child, _rng):
    """What the parent sent, once more, in order."""
    return cycled(to_child, options.count)


def replayed_backwards(options, _forger, _frames, to_child, _rng):
    """What the parent sent, once more, the last frame first."""
    return cycled(to_child[::-1], options.count)


def overtaken(options, forger, frames, _to_child, rng):
    """New messages of the network's own key in the parent's name, in pairs in the wrong order: the second one, which would
    change much, has the counter below that of the first, which repeats what the parent says of itself."""
    from cryptography.exceptions import InvalidTag

    told, highest = {}, 0
    for frame in frames:
        try:
            heard = opened(frame, options.key)
        except InvalidTag:
            continue
        if heard and heard[1] == options.parent and heard[2][0] == options.sequence:
            highest = max(highest, heard[2][1])
            told.update((kind, value) for kind, value in heard[4].items() if kind in (0, 11))
    if len(told) < 2:
        sys.exit('the capture has no message in which the parent says where it is')
    same = tlv(0, told[0]) + tlv(11, told[11])
    for pair in range(options.count // 2):
        for command, tlvs, ahead in [(4, same, 2), (rng.choice([4, 8, 13, 14]), plausible(rng), 1)]:
            yield forger.message(
                command, tlvs, key=options.key, sequence=options.sequence, counter=highest + 2 * pair + ahead,
                sender=options.parent,
            )


def mutated(options, _forger, frames, to_child, rng):
    """Half: messages of the parent to the child, changed within MLE, with a right checksum, so that the cipher gets them. A
    quarter: the same, changed anywhere behind the addresses. A quarter: what anybody sent, changed anywhere."""
    whole = [frame for frame in to_child if frame[PACKET_AT + 1 : PACKET_AT + 3] == b'\x33\xf0']
    if not whole:
        sys.exit('the capture has no whole message of the parent to the child')
    others = [frame for frame in frames if len(frame) > 5]
    for number in range(options.count):
        is_of_all = number % 4 == 3
        frame = bytearray(rng.choice(others if is_of_all else whole)[:-2])
        # Addresses that are no longer the child's say nothing about the child.
        low = 0 if is_of_all else MLE_AT if number % 2 == 0 else PACKET_AT
        for _ in range(rng.randint(1, 4)):
            frame[rng.randrange(min(low, len(frame) - 1), len(frame))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.2:
            del frame[rng.randrange(min(low, len(frame) - 1) + 1, len(frame) + 1) :]
        elif rng.random() < 0.1 and len(frame) < 120:
            frame += rng.randbytes(rng.randint(1, 124 - len(frame)))
        if not is_of_all:
            # Another one than before: otherwise it would be a repetition for the MAC.
            frame[2] = number & 0xFF
        if low == MLE_AT:
            payload = bytes(frame[MLE_AT:])
            datagram = struct.pack('>HHHH', MLE_PORT, MLE_PORT, len(payload) + 8, 0) + payload
            ends = link_local(options.parent), link_local(options.child)
            frame[MLE_AT - 2 : MLE_AT] = struct.pack('>H', checksum(*ends, datagram))
        yield bytes(frame) + fcs(frame)


def cycled(frames, count):
    for number in range(count):
        yield frames[number % len(frames)]


KINDS = {
    'forged': forged, 'other-key': other_key, 'lower': lower, 'replayed': replayed,
    'replayed-backwards': replayed_backwards, 'overtaken': overtaken, 'mutated': mutated,
}


if __name__ == '__main__':
    main()
