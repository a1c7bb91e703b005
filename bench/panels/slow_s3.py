"""A slow object store: files of a folder by the protocol of S3, with a delay before each answer and a bandwidth for all together.

Only what readers need: GET with a range, HEAD, and ListObjectsV2. Signatures are not checked. As a program, it serves a folder
until standard input ends.
"""

import argparse
import asyncio
import email.utils
import hashlib
import sys
import threading
import time
import urllib.parse
from pathlib import Path
from xml.sax.saxutils import escape

BUCKET = "bucket"
_PIECE = 64 << 10


class SlowS3:
    """The server. `port`, `requests` and `bytes_sent` may be read from any thread."""

    def __init__(self, folder: Path, delay_s: float, bytes_per_s: float) -> None:
        self._folder, self._delay_s, self._bytes_per_s = folder, delay_s, bytes_per_s
        self._free_at = 0.0
        self.port, self.requests, self.bytes_sent = 0, 0, 0

    def start(self) -> "SlowS3":
        """Serves in a thread of its own, until the process ends."""
        ready = threading.Event()

        async def serve() -> None:
            server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await server.serve_forever()

        threading.Thread(target=asyncio.run, args=(serve(),), daemon=True).start()
        ready.wait()
        return self

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.readline():
                headers = {}
                while (line := await reader.readline()) not in (b"\r\n", b""):
                    name, _, value = line.decode("latin-1").partition(":")
                    headers[name.strip().lower()] = value.strip()
                method, target, _ = request.decode("latin-1").split(" ", 2)
                await asyncio.sleep(self._delay_s)
                self.requests += 1
                await self._answer(writer, method, target, headers.get("range"))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, method: str, target: str, wanted: "str | None") -> None:
        url = urllib.parse.urlsplit(target)
        key = urllib.parse.unquote(url.path).removeprefix(f"/{BUCKET}").lstrip("/")
        if not key:
            page = self._listing(dict(urllib.parse.parse_qsl(url.query)))
            return await self._send(writer, method, "200 OK", {"Content-Type": "application/xml"}, page)
        file = self._folder / key
        if not file.is_file():
            return await self._send(writer, method, "404 Not Found", {}, b"")
        size = file.stat().st_size
        headers = {"Last-Modified": _time(file), "ETag": _etag(file), "Accept-Ranges": "bytes"}
        first, last, status = 0, size - 1, "200 OK"
        if wanted and method == "GET":
            begin, _, end = wanted.removeprefix("bytes=").partition("-")
            first = int(begin) if begin else max(size - int(end), 0)
            last = min(int(end), size - 1) if begin and end else size - 1
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
            status = "206 Partial Content"
        content = b""
        if method == "GET":
            with open(file, "rb") as opened:
                opened.seek(first)
                content = opened.read(last - first + 1)
        else:
            headers["Content-Length"] = str(size)
        await self._send(writer, method, status, headers, content)

    async def _send(
        self, writer: asyncio.StreamWriter, method: str, status: str, headers: "dict[str, str]", content: bytes
    ) -> None:
        headers.setdefault("Content-Length", str(len(content)))
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {status}\r\n{head}\r\n".encode())
        for start in range(0, len(content) if method == "GET" else 0, _PIECE):
            piece = memoryview(content)[start : start + _PIECE]
            # All connections have one bandwidth. Each piece has a turn on it.
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + len(piece) / self._bytes_per_s
            await asyncio.sleep(self._free_at - now)
            writer.write(piece)
            await writer.drain()
            self.bytes_sent += len(piece)
        await writer.drain()

    def _listing(self, query: "dict[str, str]") -> bytes:
        prefix = query.get("prefix", "")
        files = sorted(file for file in self._folder.rglob("*") if file.is_file())
        keys = [(file, file.relative_to(self._folder).as_posix()) for file in files]
        objects = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(file.stat().st_mtime))}"
            f"</LastModified><ETag>{escape(_etag(file))}</ETag><Size>{file.stat().st_size}</Size></Contents>"
            for file, key in keys
            if key.startswith(prefix)
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix><IsTruncated>false</IsTruncated>{objects}</ListBucketResult>"
        ).encode()


def _time(file: Path) -> str:
    return email.utils.formatdate(file.stat().st_mtime, usegmt=True)


def _etag(file: Path) -> str:
    state = file.stat()
    return f'"{hashlib.md5(f"{state.st_mtime_ns} {state.st_size}".encode()).hexdigest()}"'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--delay-ms", type=float, default=30, help="before each answer (30)")
    parser.add_argument("--megabytes-per-second", type=float, default=50, help="for all connections together (50)")
    options = parser.parse_args()
    server = SlowS3(options.folder, options.delay_ms / 1e3, options.megabytes_per_second * 1e6).start()
    print(server.port, flush=True)
    for line in sys.stdin:
        # Each line asks for the requests and bytes so far.
        print(server.requests, server.bytes_sent, flush=True)


if __name__ == "__main__":
    main()
