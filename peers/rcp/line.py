#!/usr/bin/env python3
"""The line between Motet and a radio co-processor (ot-rcp), and what real lines and firmware do to it.

Started in the place of ot-rcp, which it starts behind a pseudo-terminal of its own. Bytes pass unchanged,
later where that is asked for; with one of --nrf, --short, --mixed-tids, --garbage and --eui64 frames are read
and written anew:

--nrf         ot-nrf528xx's stamping: each frame of key identifier mode 1 whose is-retransmission is 0 gets the
              firmware's own key index and frame counter, whether the host has secured it or not
--short       structs end early: frames without vendor's data, time, channel; reports without their ACK
--mixed-tids  before an answer comes another one with a transaction that nobody began
--garbage     texts, half frames, frames with a wrong check sum and frames that are too long between frames
--eui64       the radio says that this is its EUI-64

--count FILE keeps what was done as JSON; --record FILE keeps every byte of the host.
"""

import argparse
import collections
import json
import os
import pty
import select
import subprocess
import sys
import time
import tty

from hdlc import (FLAG, HWADDR, IS, LAST_STATUS, SET, STREAM_RAW, Decoder, encode, packed, struct, unpack)

HOST_IN, HOST_OUT = 0, 1
# How often the counts are written, s.
COUNT_INTERVAL = 0.1


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument('rcp')
    parser.add_argument('node')
    parser.add_argument('--to-rcp', type=float, default=0, metavar='MS')
    parser.add_argument('--to-host', type=float, default=0, metavar='MS')
    for quirk in QUIRKS:
        parser.add_argument(f'--{quirk}', action='store_true')
    parser.add_argument('--eui64')
    parser.add_argument('--count', metavar='FILE')
    parser.add_argument('--record', metavar='FILE')
    return parser.parse_args()


QUIRKS = ['nrf', 'short', 'mixed-tids', 'garbage']


def auxiliary_header(psdu):
    """Where the auxiliary security header of a frame begins; none where it has none of key identifier mode 1."""
    control = int.from_bytes(psdu[:2], 'little')
    if not control & 1 << 3 or len(psdu) < 3:
        return None
    destination, source, version = control >> 10 & 3, control >> 14, control >> 12 & 3
    lengths = {0: 0, 2: 2, 3: 8}
    # Frames of version 2 may leave the sequence number out.
    at = 2 if version == 2 and control & 1 << 8 else 3
    at += 2 + lengths.get(destination, 0) if destination else 0
    at += 2 if source and not (destination and control & 1 << 6) else 0
    at += lengths.get(source, 0)
    has_mode_1 = at < len(psdu) and psdu[at] >> 3 & 3 == 1
    return at if has_mode_1 else None


class Firmware:
    """What this RCP's firmware does to frames."""

    def __init__(self, options):
        self.options = options
        self.counts = dict(sent=0, secured=0, stamped=0, received=0, shortened=0, strangers=0, garbage=0)
        # Far above the host's own: a frame with it is the last that a peer takes of this radio.
        self.frame_counter = 0x7000_0000
        self.turn = 0

    @property
    def reads_frames(self):
        options = self.options
        return options.nrf or options.short or options.mixed_tids or options.garbage or options.eui64

    def to_rcp(self, frame):
        property_, at = unpack(frame, 2) if len(frame) > 2 else (None, 2)
        if frame[1] != SET or property_ != STREAM_RAW:
            return frame
        self.counts['sent'] += 1
        length = int.from_bytes(frame[at:at + 2], 'little')
        psdu, meta = bytearray(frame[at + 2:at + 2 + length]), frame[at + 2 + length:]
        header = auxiliary_header(psdu)
        if header is None:
            return frame
        self.counts['secured'] += 1
        is_retransmission = len(meta) > 5 and meta[5]
        if is_retransmission or not self.options.nrf:
            return frame
        self.counts['stamped'] += 1
        self.frame_counter += 1
        psdu[header + 1:header + 5] = self.frame_counter.to_bytes(4, 'little')
        psdu[header + 5] = 1
        return frame[:at] + struct(bytes(psdu)) + meta

    def to_host(self, frame):
        """All bytes that the host gets."""
        property_, at = unpack(frame, 2) if len(frame) > 2 else (None, 2)
        transaction = frame[0] & 15
        out = b''
        if property_ == STREAM_RAW and not transaction:
            self.counts['received'] += 1
            frame = self.shortened(frame, at)
        elif property_ == LAST_STATUS and transaction and len(frame) > at + 3:
            frame = self.shortened_report(frame, at)
        elif property_ == HWADDR and self.options.eui64:
            frame = frame[:at] + bytes.fromhex(self.options.eui64)
        if self.options.mixed_tids and transaction:
            self.counts['strangers'] += 1
            other = (transaction + 6) % 15 + 1
            out += encode(bytes([0x80 | other, IS, LAST_STATUS, 0]))
        if self.options.garbage:
            out += self.garbage()
        return out + encode(frame)

    def next_turn(self, of):
        self.turn += 1
        return self.turn % of

    def shortened(self, frame, at):
        """Each time shorter: whole, without MAC's struct, vendor's, the time, the channel, all."""
        if not self.options.short:
            return frame
        length = int.from_bytes(frame[at:at + 2], 'little')
        psdu = frame[at:at + 2 + length]
        remarks = frame[at + 2 + length:at + 2 + length + 4]
        phy = frame[at + 2 + length + 6:at + 2 + length + 6 + 10]
        tails = [remarks + struct(phy) + struct(b'\0'), remarks + struct(phy), remarks + struct(phy[:2]),
                 remarks + struct(b''), remarks, remarks[:1]]
        turn = self.next_turn(len(tails) + 1)
        if turn == len(tails):
            return frame
        self.counts['shortened'] += 1
        return frame[:at] + psdu + tails[turn]

    def shortened_report(self, frame, at):
        """A report of a transmission: status and the pending bit, without the ACK."""
        if not self.options.short or self.next_turn(2):
            return frame
        self.counts['shortened'] += 1
        return frame[:at + 2]

    def garbage(self):
        """What the host has to drop, as one piece each time."""
        self.counts['garbage'] += 1
        flag = bytes([FLAG])
        wrong = bytearray(encode(b'\x80\x06\x00\x70'))
        wrong[-2] ^= 1
        pieces = [b'assertion failed\r\n' + flag, flag + b'\x80\x06\x71\x20' + flag, bytes(wrong),
                  flag + b'U' * 1_303 + flag]
        # A long piece takes a slow line's time: seldom.
        turn = self.next_turn(40)
        return pieces[3] if turn == 0 else pieces[turn % 3]


class Line:
    """Bytes under way in both directions."""

    def __init__(self, options):
        self.firmware, self.options = Firmware(options), options
        ours, theirs = pty.openpty()
        for end in (ours, theirs):
            tty.setraw(end)
        self.radio = ours
        # Its last words are of a line that has ended, and no part of the host's.
        self.process = subprocess.Popen([options.rcp, options.node], stdin=theirs, stdout=theirs,
                                        stderr=subprocess.DEVNULL)
        os.close(theirs)
        self.delays = {HOST_IN: options.to_rcp / 1e3, ours: options.to_host / 1e3}
        self.out = {HOST_IN: ours, ours: HOST_OUT}
        self.under_way = {HOST_IN: collections.deque(), ours: collections.deque()}
        self.decoders = {HOST_IN: Decoder(), ours: Decoder()}
        self.record = open(options.record, 'ab', buffering=0) if options.record else None
        self.counted_at = 0

    def run(self):
        while True:
            now = time.monotonic()
            due = [queue[0][0] for queue in self.under_way.values() if queue]
            patience = max(0, min(due) - now) if due else COUNT_INTERVAL
            ready, _, _ = select.select(list(self.under_way), [], [], patience)
            now = time.monotonic()
            for end in ready:
                if not self.read(end, now):
                    return
            for end, queue in self.under_way.items():
                while queue and queue[0][0] <= now:
                    write(self.out[end], queue.popleft()[1])
            self.keep_counts(now)

    def read(self, end, now):
        try:
            data = os.read(end, 4_096)
        except OSError:
            data = b''
        if not data:
            return False
        if end == HOST_IN and self.record:
            self.record.write(data)
        if self.firmware.reads_frames:
            frames = list(self.decoders[end].take(data))
            data = b''.join(encode(self.firmware.to_rcp(frame)) if end == HOST_IN else self.firmware.to_host(frame)
                            for frame in frames)
            # Before the host can see anything of it: what it counts is never more than this.
            if frames:
                self.keep_counts(now, True)
        if data:
            self.under_way[end].append((now + self.delays[end], data))
        return True

    def keep_counts(self, now, is_due=False):
        if not self.options.count or now < self.counted_at and not is_due:
            return
        self.counted_at = now + COUNT_INTERVAL
        place = f'{self.options.count}.new'
        with open(place, 'w', encoding='ascii') as file:
            json.dump(self.firmware.counts, file)
        os.replace(place, self.options.count)


def write(end, data):
    while data:
        data = data[os.write(end, data):]


def main():
    line = Line(arguments())
    try:
        line.run()
    except BrokenPipeError:
        pass
    finally:
        line.process.kill()
        line.process.wait()


if __name__ == '__main__':
    sys.exit(main())
