#!/usr/bin/env python3
"""Linux as a judge of Motet over Bluetooth LE.

A Debian kernel with busybox as its whole user land runs in QEMU, without root or KVM. Its Bluetooth
controller (hci_uart, H4 on a serial port) is one of bumble's virtual ones, the mote's another:
`motet up --hci`. Linux is the central. Above that everything is Linux's own: L2CAP, bluetooth_6lowpan,
IPv6, TCP and nc.

100 kB go each way. Up: the mote's character generator, whose text RFC 864 defines. Down: random bytes, of
which the mote's echo says what it received.

Runs in a network namespace of its own, as root there. Prints one line a direction, JSON with --json, and
ends with status 1 where bytes were lost, changed or late.
"""

import argparse
import asyncio
import glob
import gzip
import hashlib
import ipaddress
import json
import lzma
import os
import re
import subprocess
import sys
import tempfile

from bumble.controller import Controller
from bumble.core import PhysicalTransport
from bumble.link import LocalLink
from bumble.transport import open_transport

from bumble_peer import BYTES, generated, iid

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'linux')
# Each by the kernel's name of it; what one needs comes before it. The ciphers are those that
# Bluetooth asks for by name while it starts.
MODULES = ['cmac', 'ecb', 'aes_generic', 'ecdh_generic', 'bluetooth', 'hci_uart', '6lowpan', 'bluetooth_6lowpan']
MOTE, LINUX = 'F0:F1:F2:F3:F4:02', 'F0:F1:F2:F3:F4:01'
MOTE_PLACE, LINUX_PLACE = '127.0.0.1:7002', '127.0.0.1:7001'
# From its start to the last byte it takes half a minute on an idle core.
LIMIT_S = 300
# Of the console, where something goes wrong.
LAST_LINES = 40


class Link(LocalLink):
    """bumble's, which takes every sender for one with a random address."""

    def send_acl_data(self, sender_controller, destination_address, transport, data):
        if transport != PhysicalTransport.LE:
            super().send_acl_data(sender_controller, destination_address, transport, data)
            return
        receiver = self.find_le_controller(destination_address)
        ends = [c for c in sender_controller.le_connections.values() if c.peer_address == destination_address]
        if receiver is not None and ends:
            source = ends[0].self_address
            asyncio.get_running_loop().call_soon(lambda: receiver.on_link_acl_data(source, transport, data))


def contents(path):
    """Of a file, or of what a file whose name ends with .xz holds."""
    with lzma.open(path) if path.endswith('.xz') else open(path, 'rb') as file:
        return file.read()


def needs(path):
    """What a module says of the others it needs."""
    found = re.search(rb'\0depends=([^\0]*)\0', contents(path))
    names = found.group(1).decode().split(',') if found else []
    return [name.replace('-', '_') for name in names if name]


def module_name(path):
    return os.path.basename(path).split('.')[0].replace('-', '_')


def modules(folder):
    """The files of the modules, in an order in which they load."""
    paths = glob.glob(os.path.join(folder, '**/*.ko'), recursive=True)
    paths += glob.glob(os.path.join(folder, '**/*.ko.xz'), recursive=True)
    files = {module_name(path): path for path in paths}
    order = []

    def add(name):
        # A part of the kernel itself has no file.
        if name not in files or files[name] in order:
            return
        for needed in needs(files[name]):
            add(needed)
        order.append(files[name])

    for name in MODULES:
        add(name)
    missing = {'bluetooth', 'hci_uart', 'bluetooth_6lowpan'} - files.keys()
    if missing:
        raise FileNotFoundError(f'{folder} has no module {sorted(missing)[0]}')
    return order


def archive(entries):
    """An initial file system: the format newc of cpio, of names, modes and contents."""
    out = bytearray()
    folder, file = 0o040755, 0o100755
    listed = [(name, folder if content is None else file, content or b'') for name, content in entries]
    for number, (name, mode, content) in enumerate([*listed, ('TRAILER!!!', 0, b'')], 1):
        encoded = name.encode() + b'\0'
        numbers = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
        out += b'070701' + b''.join(b'%08X' % value for value in numbers) + encoded
        out += bytes(-len(out) % 4) + content
        out += bytes(-len(out) % 4)
    return gzip.compress(bytes(out), 1)


def initial_files(parts, attach):
    loaded = modules(parts)
    names = [module_name(path) for path in loaded]
    (busybox,) = glob.glob(os.path.join(parts, '**/busybox'), recursive=True)
    folders = ['bin', 'dev', 'lib', 'lib/modules', 'proc', 'sys']
    return archive([
        *((name, None) for name in folders),
        ('bin/busybox', contents(busybox)),
        ('bin/attach', contents(attach)),
        ('init', contents(os.path.join(HERE, 'init'))),
        ('order', ''.join(name + '\n' for name in names).encode()),
        *((f'lib/modules/{name}', contents(path)) for name, path in zip(names, loaded)),
    ])


def emulator(parts, files):
    """The command that runs Linux; its console is standard output, its controller a socket."""
    (kernel,) = glob.glob(os.path.join(parts, '**/vmlinuz-*'), recursive=True)
    mote_ip = ipaddress.IPv6Address(b'\xfe\x80' + bytes(6) + iid(MOTE))
    words = f'console=ttyS0 loglevel=4 edd=off mitigations=off panic=1 mote={MOTE} mote_ip={mote_ip}'
    return [
        'qemu-system-x86_64', '-accel', 'tcg', '-cpu', 'qemu64', '-smp', '1', '-m', '256',
        '-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none',
        '-kernel', kernel, '-initrd', files, '-append', words,
        '-serial', 'stdio', '-serial', f'tcp:{LINUX_PLACE}',
    ]


def row(direction, start, end, sent, received, count):
    return {
        'peer': 'linux',
        'role': 'peripheral',
        'direction': direction,
        'bytes': int(count),
        'sha256_sent': sent,
        'sha256_received': received,
        # By Linux's clock, which its emulation slows.
        'seconds': round(float(end) - float(start), 2),
        'pass': sent == received and int(count) == BYTES,
    }


def verdicts(line):
    """The row that a line of the console tells, if it tells one."""
    words = line.split()
    if words[1] not in ('up', 'down'):
        return []
    # sha256sum says of what it read that it was standard input.
    direction, start, end, *rest = [word for word in words[1:] if word != '-']
    if direction == 'up':
        rest.insert(0, hashlib.sha256(generated(BYTES)).hexdigest())
    return [row(direction, start, end, *rest)]


async def watch(guest, console):
    """The rows, read from Linux's console, all of whose lines go to `console`."""
    rows = []
    while line := await guest.stdout.readline():
        line = line.decode(errors='replace').strip()
        console.append(line)
        if line.startswith('peer '):
            rows += verdicts(line)
    return rows


async def controller(name, place, link, public_address):
    transport = await open_transport(f'tcp-server:{place}')
    made = Controller(
        name, host_source=transport.source, host_sink=transport.sink, link=link, public_address=public_address)
    made.le_acl_data_packet_length = 251
    return transport


async def judge(arguments, files, console):
    """A row for each direction, and whether the mote ended as it should."""
    link = Link()
    transports = [
        await controller('mote', MOTE_PLACE, link, MOTE),
        await controller('linux', LINUX_PLACE, link, LINUX),
    ]
    mote = await asyncio.create_subprocess_exec(
        arguments.motet, 'up', '--hci', f'tcp:{MOTE_PLACE}', '--role', 'peripheral', *['--tcple'] * arguments.tcple,
        stdin=subprocess.DEVNULL)
    guest = None
    try:
        guest = await asyncio.create_subprocess_exec(
            *emulator(arguments.parts, files),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        rows = await watch(guest, console)
    finally:
        for process in filter(None, (guest, mote)):
            if process.returncode is None:
                process.terminate()
            await process.wait()
        for transport in transports:
            await transport.close()
    return rows, mote.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--motet', required=True, help='the command to judge')
    parser.add_argument('--parts', required=True, help="a folder with Debian's kernel, its modules and busybox")
    parser.add_argument('--attach', required=True, help='attach.c, linked statically')
    parser.add_argument('--tcple', action='store_true', help='let it offer TCPlE, which Linux does not know')
    parser.add_argument('--json', action='store_true', help='print one JSON object a line')
    arguments = parser.parse_args()
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    console, rows, is_good = [], [], False
    with tempfile.NamedTemporaryFile(prefix='motet-linux-', suffix='.cpio.gz') as files:
        files.write(initial_files(arguments.parts, arguments.attach))
        files.flush()
        try:
            rows, is_good = asyncio.run(asyncio.wait_for(judge(arguments, files.name, console), LIMIT_S))
        except (asyncio.TimeoutError, OSError, EOFError) as error:
            print(f'Linux and a peripheral: {type(error).__name__} {error}', file=sys.stderr)
    is_good &= [row['direction'] for row in rows] == ['up', 'down'] and all(row['pass'] for row in rows)
    for row in rows:
        row['tcple'] = arguments.tcple
        if arguments.json:
            print(json.dumps(row), flush=True)
        else:
            verdict = 'ok' if row['pass'] else 'FAILED'
            print(f"{row['peer']}   mote a {row['role']:<10}  {row['direction']:<4}  {row['bytes']} B in "
                  f"{row['seconds']} s  {verdict}", flush=True)
    if not is_good:
        print('\n'.join(['Linux said last:', *console[-LAST_LINES:]]), file=sys.stderr)
    sys.exit(not is_good)


if __name__ == '__main__':
    main()
