"""Damage of files: bytes, text, compressed files, archives and JSON.

Everything is drawn from a `random.Random`, which is quick for single draws.
"""

import bz2
import codecs
import functools
import gzip
import io
import json
import lzma
import re
import zipfile

COMPRESSORS = (
    functools.partial(gzip.compress, mtime=0),
    functools.partial(lzma.compress, preset=0),
    functools.partial(bz2.compress, compresslevel=1),
)
NUMBER = re.compile(rb"[0-9]+")
# What damage is likely to hit: what formats, numbers and encodings are made of.
PIECES = (
    *(sign.encode() for sign in "\t #>:()-_0,=\\\"'\n\r\0\v\f\u00a0\u0085\u2028\u0663²\ufeff"),
    *b"nan inf -1 1e999 0x10 1_0 -0 +1 1.1 1-2 qid: qid:1.5 1: (( )) [] {} %x[0,0] U00: B".split(),
    *(b"\n\n", b"\r\n", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x1c", b"-NONE-", b"-DOCSTART-"),
    *(b"((" * 1500, b"\n" * 300, b"x" * 3000),
)
HUGE = (
    *(b"255", b"65536", b"2147483647", b"2147483648", b"4294967296", b"9223372036854775807"),
    *(b"9223372036854775808", b"99999999999999999999", b"1" + b"0" * 400, b"9" * 5000),
    *(b"1e308", b"1e-400", b"-2147483649", b"00", b"0"),
)
VALUES = (
    *(
        None,
        True,
        -1,
        0,
        1,
        2**27,
        2**31,
        2**40,
        2**63,
        10**400,
        0.5,
        1e308,
        float("nan"),
        float("inf"),
    ),
    *("", "x", "\0", "\ud800", [], [[]], [None], {}, {"$type": "x"}, {"$type": []}, {"": 0}),
)


def damaged(random, data, others=()):
    """Bytes with one change or a few; ``others`` are files from which pieces may come."""
    for _ in range(random.choice((1, 1, 2, 5))):
        data = random.choice(CHANGES)(random, data, others)
    return data


def _range(random, data):
    """A piece, short more often than not."""
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.choice((1, 3, 20, 1000)))


def _flip(random, data, others):
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]


def _cut(random, data, others):
    start, end = _range(random, data)
    return data[:start] + data[end:]


def _end(random, data, others):
    return data[: _range(random, data)[0]]


def _insert(random, data, others):
    start, _ = _range(random, data)
    return data[:start] + random.choice(PIECES) + data[start:]


def _replace(random, data, others):
    start, end = _range(random, data)
    return data[:start] + random.choice(PIECES) + data[end:]


def _repeat(random, data, others):
    start, end = _range(random, data)
    return data[:end] + data[start:end] * random.choice((1, 1, 2, 50)) + data[end:]


def _exchange(random, data, others):
    start, end = _range(random, data)
    return data[end:] + data[start:end] + data[:start]


def _splice(random, data, others):
    """The beginning of this file and the end of another, or a piece of the other in this one."""
    other = random.choice(others) if others else data
    start, end = _range(random, other)
    at, _ = _range(random, data)
    return data[:at] + (other[start:] if random.random() < 0.5 else other[start:end] + data[at:])


def _number(random, data, others):
    found = list(NUMBER.finditer(data[:10_000]))
    if not found:
        return data
    number = random.choice(found)
    return data[: number.start()] + random.choice(HUGE) + data[number.end() :]


def _lines(random, data, others):
    """A line gone, doubled or moved."""
    lines = data.split(b"\n")
    line = lines.pop(random.randrange(len(lines)))
    for _ in range(random.randrange(3)):
        lines.insert(random.randint(0, len(lines)), line)
    return b"\n".join(lines)


def _encode(random, data, others):
    """Another encoding, line end or byte order mark."""
    match random.randrange(4):
        case 0:
            return data.replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\r", b"\n ")))
        case 1:
            return codecs.BOM_UTF8 + data
        case 2:
            return random.choice((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) + data
        case _:
            encoding = random.choice(("utf-16", "utf-16-be", "utf-32", "utf-7", "cp037"))
            return data.decode("latin-1").encode(encoding, "replace")


def _compress(random, data, others):
    return random.choice(COMPRESSORS)(data)


CHANGES = (
    *(_flip, _cut, _end, _insert, _replace, _repeat, _exchange, _splice, _number, _number),
    *(_lines, _encode, _compress),
)


# ----- archives and JSON --------------------------------------------------------------------------


def members_of(data):
    """What is in an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members, method=zipfile.ZIP_STORED):
    """An archive with right checksums, whatever is in it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def damaged_inside(random, members, others=()):
    """An archive with damage in one of its members."""
    members = dict(members)
    name = random.choice(sorted(members))
    if name == "header.json" and random.random() < 0.7:
        value = json.loads(members[name])
        for _ in range(random.choice((1, 1, 3))):
            value = damaged_value(random, value)
        members[name] = json.dumps(value).encode()
    elif random.random() < 0.05:
        members[random.choice((*members, "arrays/x.npy", "../x", "x/"))] = members.pop(name)
    else:
        members[name] = damaged(random, members[name], others)
    return archive_of(members)


def damaged_value(random, value):
    """JSON with another value somewhere."""
    if isinstance(value, dict) and value and random.random() < 0.95:
        key = random.choice(sorted(value))
        if random.random() < 0.1:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: damaged_value(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.9:
        k = random.randrange(len(value))
        return [*value[:k], damaged_value(random, value[k]), *value[k + 1 :]]
    return random.choice(VALUES)
