#!/usr/bin/env python3
"""A radio co-processor that is of no use, in one of the ways that people meet.

Speaks on its standard input and output, or with --device PATH on a pseudo-terminal of its own that is found
there, as a dongle's serial line is; --group and --mode are then the device's. `good` is an RCP without an air.
"""

import argparse
import os
import pty
import shutil
import sys
import tty

from hdlc import GET, HWADDR, INSERT, IS, LAST_STATUS, REMOVE, RESET, Decoder, encode, packed, unpack

KINDS = ['good', 'ncp', 'old', 'new', 'silent', 'crashes', 'few-channels', 'babble', 'bootloader', 'ends']
SOFTWARE_RESET, CRASH = 0x72, 0x74
# Capabilities: configuration of a radio, raw frames, a version of the API, the least one of the host's.
NCP_CAPS, RCP_CAPS = [5, 12, 24, 52], [5, 12, 24, 34, 513, 64, 65]


def answers(kind):
    """What is answered to a request for a property."""
    channels = range(11, 26 if kind == 'few-channels' else 27)
    caps = NCP_CAPS if kind == 'ncp' else RCP_CAPS
    return {
        1: bytes([4, 3]),
        2: b'OPENTHREAD/fake; NCP\0' if kind == 'ncp' else b'OPENTHREAD/fake; RCP\0',
        3: bytes([3]),
        5: b''.join(map(packed, caps)),
        HWADDR: bytes.fromhex('0000000000000005'),
        0x22: bytes(channels),
        0xb0: bytes([3 if kind == 'old' else 11]),
        0xb1: bytes([99 if kind == 'new' else 4]),
        0x120b: bytes([0x7f]),
        0x802: (1_000_000).to_bytes(8, 'little'),
    }


class Radio:
    def __init__(self, kind, write):
        self.kind, self.write, self.answers = kind, write, answers(kind)

    def status(self, status, header=0x80):
        self.write(encode(bytes([header, IS, LAST_STATUS]) + packed(status)))

    def take(self, frame):
        """Answers a request."""
        if frame[1] == RESET:
            return self.status(SOFTWARE_RESET)
        if self.kind == 'crashes':
            return self.status(CRASH)
        property_, at = unpack(frame, 2)
        name = packed(property_)
        if frame[1] in (INSERT, REMOVE):
            self.write(encode(bytes([frame[0], frame[1] + 3]) + name + frame[at:]))
        elif frame[1] == GET and property_ not in self.answers:
            self.status(13, frame[0])
        else:
            value = self.answers[property_] if frame[1] == GET else frame[at:]
            self.write(encode(bytes([frame[0], IS]) + name + value))


def serve(kind, source, sink):
    radio = Radio(kind, lambda data: os.write(sink, data))
    decoder = Decoder()
    while True:
        try:
            data = os.read(source, 4_096)
        except OSError:
            return
        if not data or kind == 'ends':
            return
        if kind == 'babble':
            os.write(sink, b'\r\nlogin: \xe9\x80\r\n')
        elif kind == 'bootloader':
            os.write(sink, b'\r\nGecko Bootloader v2.4.0\r\nBL > ')
        elif kind != 'silent':
            for frame in decoder.take(data):
                radio.take(frame)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('kind', choices=KINDS)
    parser.add_argument('--device', metavar='PATH')
    parser.add_argument('--group')
    parser.add_argument('--mode', type=lambda text: int(text, 8))
    options = parser.parse_args()
    if not options.device:
        return serve(options.kind, 0, 1)
    ours, theirs = pty.openpty()
    # Open for as long as this runs: without it the line would end whenever a host closes it.
    tty.setraw(theirs)
    name = os.ttyname(theirs)
    if options.group:
        shutil.chown(name, group=options.group)
    if options.mode is not None:
        os.chmod(name, options.mode)
    os.symlink(name, options.device)
    return serve(options.kind, ours, ours)


if __name__ == '__main__':
    sys.exit(main())
