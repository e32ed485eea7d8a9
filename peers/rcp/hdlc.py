"""Spinel over HDLC-lite, as far as the programs beside this file need it."""

FLAG, ESCAPE, FLIP = 0x7e, 0x7d, 0x20
ESCAPED = bytes([FLAG, ESCAPE, 0x11, 0x13, 0xf8])
RESET, GET, SET, INSERT, REMOVE, IS = 1, 2, 3, 4, 5, 6
LAST_STATUS, HWADDR, STREAM_RAW = 0, 8, 0x71


def crc(data):
    """CRC-16/X.25."""
    sum_ = 0xffff
    for byte in data:
        sum_ ^= byte
        for _ in range(8):
            sum_ = sum_ >> 1 ^ 0x8408 if sum_ & 1 else sum_ >> 1
    return sum_ ^ 0xffff


def encode(frame):
    """The frame as it goes over the line."""
    out = bytearray([FLAG])
    for byte in frame + crc(frame).to_bytes(2, 'little'):
        out += bytes([ESCAPE, byte ^ FLIP]) if byte in ESCAPED else bytes([byte])
    return bytes(out + bytes([FLAG]))


class Decoder:
    """Finds frames in bytes that come in pieces."""

    def __init__(self):
        self.rest = b''

    def take(self, data):
        *chunks, self.rest = (self.rest + data).split(bytes([FLAG]))
        for chunk in filter(None, chunks):
            frame, is_escaped = bytearray(), False
            for byte in chunk:
                if byte == ESCAPE and not is_escaped:
                    is_escaped = True
                else:
                    frame.append(byte ^ FLIP if is_escaped else byte)
                    is_escaped = False
            if len(frame) > 3 and crc(frame[:-2]) == int.from_bytes(frame[-2:], 'little'):
                yield bytes(frame[:-2])


def packed(number):
    """A packed unsigned number: 7 bits a byte, low ones first."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def unpack(data, at):
    """The packed number at `at`, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def struct(data):
    """Bytes with their length in front."""
    return len(data).to_bytes(2, 'little') + data
