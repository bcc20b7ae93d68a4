"""Company for a server under load: idle and slow clients that hold connections, in a separate process.

Idle clients open a connection and send nothing, or half a head. Slow clients send the end of a small request byte by
byte, within the deadlines, and read the answer as slowly. If the server closes a connection, the client opens another.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

import numpy as np

__all__ = ["Company", "Seen", "company"]

_LAST_BYTES = 12  # bytes of a slow request that are sent one by one
_PAUSE = 0.3  # seconds between two such bytes
_READ = 32  # bytes a slow client reads at a time


@dataclass(frozen=True)
class Company:
    """The numbers of idle and slow clients."""

    n_idle: int
    n_slow: int


@dataclass
class Seen:
    """What happened to the clients."""

    n_idle_ended: int = 0
    """Number of idle connections that the server closed, as it should."""
    n_slow_answered: int = 0
    n_slow_dropped: int = 0
    """Number of slow requests within the deadlines that got no answer, or another status than 200."""


@contextmanager
def company(port: int, request: bytes, given: Company) -> Iterator[Seen]:
    """Hold connections to a server on this machine during a block. The result is complete after the block."""
    command = [sys.executable, "-m", "benchmarks.company", str(port), str(given.n_idle), str(given.n_slow)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    seen = Seen()
    try:
        process.stdin.write(json.dumps(request.decode()).encode() + b"\n")
        process.stdin.flush()
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("the company did not come")
        yield seen
    finally:
        found, _ = process.communicate(timeout=30)  # closing its input ends the process
    for name, value in json.loads(found).items():
        setattr(seen, name, value)


async def _hold(port: int, request: bytes, given: Company) -> None:
    seen, random = Seen(), np.random.default_rng(0)
    arrived = asyncio.Semaphore(0)
    waits = random.uniform(0, 2 * _PAUSE, given.n_slow)
    idle = [_idle(port, b"" if i % 2 else request[:20], seen, arrived) for i in range(given.n_idle)]
    slow = [_slow(port, request, seen, arrived, wait=float(waits[i])) for i in range(given.n_slow)]
    tasks = [asyncio.create_task(one) for one in (*idle, *slow)]
    for _ in tasks:
        await arrived.acquire()
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)  # until stdin is closed
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps(asdict(seen)), flush=True)


async def _idle(port: int, sent: bytes, seen: Seen, arrived: asyncio.Semaphore) -> None:
    """Hold a connection without sending a request, for ever."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        arrived.release()
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        seen.n_idle_ended += 1


async def _slow(port: int, request: bytes, seen: Seen, arrived: asyncio.Semaphore, *, wait: float) -> None:
    """Send slow requests, for ever."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        arrived.release()
        await asyncio.sleep(wait)
        try:
            while True:
                await _ask_slowly(reader, writer, request)
                seen.n_slow_answered += 1
        except (ConnectionError, EOFError, ValueError):
            seen.n_slow_dropped += 1
        finally:
            writer.close()


async def _ask_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
    writer.write(request[:-_LAST_BYTES])
    for byte in request[-_LAST_BYTES:]:
        await asyncio.sleep(_PAUSE)
        writer.write(bytes([byte]))
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise ValueError(head)
    left = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while left:
        await asyncio.sleep(_PAUSE)
        found = await reader.read(min(left, _READ))
        if not found:
            raise EOFError
        left -= len(found)


if __name__ == "__main__":
    port, n_idle, n_slow = map(int, sys.argv[1:])
    asked = json.loads(sys.stdin.buffer.readline()).encode()
    asyncio.run(_hold(port, asked, Company(n_idle, n_slow)))
