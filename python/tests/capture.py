"""A packet capture of the sender's side of a slow start, for tests: IPv4 without a link layer, headers alone."""

import heapq
import pathlib
import struct

SENDER, RECEIVER = (bytes([192, 0, 2, 1]), 5001), (bytes([192, 0, 2, 2]), 40000)
MSS = 1448
SYN, ACK = 0x02, 0x10


def write(path: pathlib.Path, segments: int = 3000, rtt: float = 0.1, each: float = 0.0006) -> None:
    """Doubles over an RTT in seconds until so many segments are acknowledged; the bottleneck takes so long for each of them."""
    packets = []

    def packet(at, source, destination, sequence, acknowledged, flags, payload):
        options = b"\2\4\5\xa8" if flags & SYN else b""
        header = (20 + len(options)) // 4 << 12 | flags
        tcp = struct.pack(">HHIIHHHH", source[1], destination[1], sequence, acknowledged, header, 65535, 0, 0) + options
        length = 20 + len(tcp) + payload
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, 6, 0, source[0], destination[0])
        packets.append((at, ip + tcp, length))

    packet(0.0, RECEIVER, SENDER, 99, 0, SYN, 0)
    packet(0.0, SENDER, RECEIVER, 999, 100, SYN | ACK, 0)
    packet(rtt, RECEIVER, SENDER, 100, 1000, ACK, 0)
    sent, free, acknowledgments = 0, 0.0, []

    def send(now, count):
        nonlocal sent, free
        for _ in range(min(count, segments - sent)):
            packet(now, SENDER, RECEIVER, 1000 + sent * MSS, 100, ACK, MSS)
            sent, free = sent + 1, max(now, free) + each
            heapq.heappush(acknowledgments, (free + rtt, sent))

    send(rtt, 10)
    while acknowledgments:
        now, count = heapq.heappop(acknowledgments)
        packet(now, RECEIVER, SENDER, 100, 1000 + count * MSS, ACK, 0)
        send(now, 2)
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 100, 101))
        for at, content, length in packets:
            micros = 1_700_000_000_000_000 + round(at * 1e6)
            file.write(struct.pack("<IIII", *divmod(micros, 1_000_000), len(content), length) + content)
