#!/usr/bin/env python3
"""aiospinel and pyspinel as judges of the frames that Motet writes to a radio co-processor.

Reads what a host wrote to a line, as line.py --record keeps it, and prints one JSON object: how many frames
there are, how many of them each library reads, and how many aiospinel writes with the same bytes. pyspinel
reads the values of STREAM_RAW, too: a frame and its settings.
"""

import json
import sys

from aiospinel import HDLCLiteFrame, SpinelFrame
from spinel.codec import SpinelCodec
from spinel.hdlc import HDLC_FLAG, Hdlc

SET, STREAM_RAW = 3, 0x71


class Bytes:
    """A stream for pyspinel."""

    def __init__(self, data):
        self.bytes = iter(data)

    def read(self, _size=None):
        return next(self.bytes)


def of_aiospinel(chunks):
    """Frames that it reads, and those that it writes with the same bytes."""
    read = same = 0
    for chunk in chunks:
        try:
            line = HDLCLiteFrame.from_bytes(chunk)
            frame = SpinelFrame.from_bytes(line.data)
        except ValueError as error:
            print(f'aiospinel: {chunk.hex()}: {error}', file=sys.stderr)
            continue
        read += 1
        same += HDLCLiteFrame(frame.serialize()).serialize() == b'\x7e' + chunk + b'\x7e'
    return read, same


def of_pyspinel(data):
    """Frames that it reads, and transmissions among them whose value it reads."""
    hdlc, read, values, transmissions = Hdlc(Bytes(data)), 0, 0, 0
    while True:
        try:
            frame = hdlc.collect()
        except StopIteration:
            return read, transmissions, values
        if frame is None:
            continue
        read += 1
        if frame[1] != SET or frame[2] != STREAM_RAW:
            continue
        transmissions += 1
        psdu, *settings = SpinelCodec.parse_fields(frame[3:], 'dCCCbbbbLLC')
        values += 3 < len(psdu) < 128 and settings[0] in range(11, 27)


def main():
    data = b''.join(open(path, 'rb').read() for path in sys.argv[1:])
    # What was cut off when the line ended is no frame.
    data = data[:data.rfind(HDLC_FLAG) + 1]
    chunks = [chunk for chunk in data.split(bytes([HDLC_FLAG])) if chunk]
    aiospinel, same = of_aiospinel(chunks)
    pyspinel, transmissions, values = of_pyspinel(data)
    print(json.dumps(dict(frames=len(chunks), aiospinel=aiospinel, same=same, pyspinel=pyspinel,
                          transmissions=transmissions, values=values)))


if __name__ == '__main__':
    main()
