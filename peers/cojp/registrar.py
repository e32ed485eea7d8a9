"""A registrar of CoJP by aiocoap, which judges Motet's pledge.

    registrar.py PLEDGE FOLDER [--json]

PLEDGE is the program that `cargo build -p motet --features join --example pledge` makes; FOLDER is where the
registrar keeps its context, and is there. Everything that the
registrar knows of OSCORE, CoAP and CBOR is aiocoap's and cbor2's. Prints a line for each check; the status says
whether all hold.
"""

import asyncio
import json
import pathlib
import sys

import aiocoap
import aiocoap.oscore
import aiocoap.resource
import cbor2
from aiocoap.credentials import CredentialsMap
from aiocoap.oscore_sitewrapper import OscoreSiteWrapper

PORT = 56831
EUI64 = "0200000000000007"
JOIN_KEY = "000102030405060708090a0b0c0d0e0f"
NETWORK_KEY = "f0e1d2c3b4a5968778695a4b3c2d1e0f"
SEQUENCE = 300
PAN = 0xCAFE

# Labels of RFC 9031, section 8.4.
LINK_LAYER_KEYS = 2
NETWORK = 5

# Longer than a pledge waits.
PATIENCE_S = 20


class Join(aiocoap.resource.Resource):
    """The resource j, for those whose request was encrypted."""

    def __init__(self):
        super().__init__()
        self.asked = []

    async def render_post(self, request):
        """Gives the key to who asks for the right network."""
        is_secured = isinstance(
            getattr(request.remote, "security_context", None),
            aiocoap.oscore.FilesystemSecurityContext,
        )
        asked = cbor2.loads(request.payload)
        self.asked.append((is_secured, asked))
        if not is_secured or asked.get(NETWORK) != PAN.to_bytes(2, "big"):
            return aiocoap.Message(code=aiocoap.FORBIDDEN)
        key = [SEQUENCE % 128 + 1, bytes.fromhex(NETWORK_KEY), SEQUENCE.to_bytes(4, "big")]
        payload = cbor2.dumps({LINK_LAYER_KEYS: [*key]})
        return aiocoap.Message(code=aiocoap.CHANGED, payload=payload)


def context(folder):
    """The registrar's side of the context of RFC 9031, section 7.3."""
    settings = {
        "algorithm": "AES-CCM-16-64-128",
        "kdf-hashfun": "sha256",
        "sender-id_hex": b"JRC".hex(),
        "recipient-id_hex": "",
        "id-context_hex": EUI64,
        "secret_hex": JOIN_KEY,
        "salt_hex": "",
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    # Nothing was heard yet, so no request can be a recording.
    window = {"index": 0, "bitfield": 0}
    state = {"next-to-send": 0, "received": window}
    (folder / "sequence.json").write_text(json.dumps(state))
    return aiocoap.oscore.FilesystemSecurityContext(str(folder))


async def ask(pledge, *, key=JOIN_KEY, eui64=EUI64, pan=PAN, sequence):
    """What the pledge prints, and its status."""
    arguments = [f"[::1]:{PORT}", key, eui64, f"{pan:04x}", str(sequence)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        pledge, *arguments, stdout=pipe, stderr=pipe
    )
    out, said = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    return process.returncode, out.decode().strip(), said.decode().strip()


async def judge(pledge, folder):
    """Yields the name of each check, whether it holds, and what the pledge said."""
    join = Join()
    site = aiocoap.resource.Site()
    site.add_resource(["j"], join)
    credentials = CredentialsMap()
    credentials[":pledge"] = context(folder)
    server = await aiocoap.Context.create_server_context(
        OscoreSiteWrapper(site, credentials), bind=("::1", PORT)
    )
    try:
        given = f"{NETWORK_KEY} {SEQUENCE}"
        first = await ask(pledge, sequence=0)
        yield "it gets the key", first[:2] == (0, given), first
        yield "its request was encrypted", join.asked == [(True, {NETWORK: b"\xca\xfe"})], join.asked
        later = await ask(pledge, sequence=70_000)
        yield "it gets it again, under a later number", later[:2] == (0, given), later
        again = await ask(pledge, sequence=70_000)
        yield "a number used twice gets nothing", again[0] != 0 and not again[1], again
        other = await ask(pledge, key=JOIN_KEY[::-1], sequence=70_001)
        yield "another key gets nothing", other[0] != 0 and not other[1], other
        stranger = await ask(pledge, eui64=EUI64[::-1], sequence=0)
        yield "another device gets nothing", stranger[0] != 0 and not stranger[1], stranger
        refused = await ask(pledge, pan=0xBEEF, sequence=70_002)
        yield "a refusal is understood", refused[2].find("4.03") >= 0, refused
        yield "no other request was believed", len(join.asked) == 3, join.asked
    finally:
        await server.shutdown()


async def main():
    """Runs all checks."""
    pledge, folder, *options = sys.argv[1:]
    is_good = True
    async for name, holds, said in judge(pledge, pathlib.Path(folder)):
        is_good &= holds
        if options == ["--json"]:
            print(json.dumps({"check": name, "holds": holds}))
        else:
            print(f"{'ok  ' if holds else 'FAIL'} {name}")
        if not holds:
            print(said, file=sys.stderr)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
