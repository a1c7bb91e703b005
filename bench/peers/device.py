"""A slow device: a control group that limits reads, and a page cache that forgets. Needs root, on Linux."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path


class Unavailable(Exception):
    """Why reads cannot be limited here."""


def forget(files: list[str]) -> None:
    """Drops these files from the page cache."""
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # Pages that are not written yet, of tables just made, would stay.
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def remember(files: list[str]) -> None:
    """Reads these files, so that they are in the page cache."""
    for file in files:
        with open(file, "rb") as content:
            while content.read(1 << 22):
                pass


@contextlib.contextmanager
def forgetful_cache(files: list[str], interval_s: float) -> Iterator[None]:
    """Drops the files from the page cache again and again. It then holds what was read within an interval at most."""
    stopped = threading.Event()

    def forget_again_and_again() -> None:
        while not stopped.wait(interval_s):
            forget(files)

    forget(files)
    thread = threading.Thread(target=forget_again_and_again)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def disk_of(file: str) -> str:
    """The numbers `major:minor` of the disk that holds a file; limits are for disks, not for their partitions."""
    device = os.stat(file).st_dev
    folder = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not folder.exists():
        raise Unavailable("the file system of the tables is not on a block device of its own")
    if (folder / "partition").exists():
        return (folder.resolve().parent / "dev").read_text().strip()
    return f"{os.major(device)}:{os.minor(device)}"


def _parents() -> Iterator[tuple[str, Path]]:
    """Control groups (version and folder) that could hold a new one with a limit, this process's own first."""
    own = dict(line.rstrip("\n").split(":", 2)[1:] for line in open("/proc/self/cgroup"))
    for line in open("/proc/mounts"):
        _, mount, kind, flags = line.split()[:4]
        if kind == "cgroup" and "blkio" in flags.split(","):
            path = next((path for names, path in own.items() if "blkio" in names.split(",")), "/")
            yield "v1", Path(mount + path)
        elif kind == "cgroup2":
            for folder in dict.fromkeys((Path(mount + own.get("", "/")), Path(mount))):
                if "io" in (folder / "cgroup.controllers").read_text().split():
                    yield "v2", folder


class LimitedGroup:
    """A control group whose processes read at most so many bytes per second from the disk of a file."""

    def __init__(self, file: str, bandwidth: int):
        self._disk = disk_of(file)
        reasons = []
        for version, parent in _parents():
            self.kind = f"cgroup {version}"
            self._folder = parent / f"coscan-peers-{os.getpid()}"
            try:
                self._folder.mkdir()
                if version == "v2" and "io" not in (parent / "cgroup.subtree_control").read_text().split():
                    (parent / "cgroup.subtree_control").write_text("+io")
                self.limit(bandwidth)
                return
            except OSError as error:
                reasons.append(f"{self.kind}: {error.strerror}")
                with contextlib.suppress(OSError):
                    self._folder.rmdir()
        raise Unavailable("; ".join(reasons) or "no control group here can limit reads")

    def limit(self, bandwidth: int) -> None:
        """Sets the limit, in bytes per second."""
        if self.kind == "cgroup v1":
            (self._folder / "blkio.throttle.read_bps_device").write_text(f"{self._disk} {bandwidth}")
        else:
            (self._folder / "io.max").write_text(f"{self._disk} rbps={bandwidth}")

    @property
    def procs(self) -> str:
        """The file that a process writes its number to, to be limited."""
        return str(self._folder / "cgroup.procs")

    def close(self) -> None:
        for _ in range(50):
            with contextlib.suppress(OSError):
                self._folder.rmdir()
                return
            time.sleep(0.1)  # Processes that have ended leave the group a little later.


READ_IN_GROUP = """
import os, sys, time
procs, file, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
open(procs, "w").write(str(os.getpid()))
descriptor, start, offset = os.open(file, os.O_RDONLY), time.monotonic(), 0
os.fsync(descriptor)
os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
while offset < count:
    offset += len(os.pread(descriptor, min(1 << 20, count - offset), offset))
print(time.monotonic() - start)
"""


@contextlib.contextmanager
def slow_device(file: str, bandwidth: int) -> Iterator[LimitedGroup]:
    """A group whose limit was seen to work: what should take half a second took about that."""
    count = min(bandwidth // 2, os.path.getsize(file))
    group = LimitedGroup(file, 2 * count)
    try:
        taken = subprocess.run([sys.executable, "-c", READ_IN_GROUP, group.procs, file, str(count)],
                               capture_output=True, text=True)
        if taken.returncode != 0:
            raise Unavailable(f"{group.kind}: a process cannot be moved there")
        if float(taken.stdout) < 0.25:
            raise Unavailable(f"{group.kind}: the limit has no effect on this disk")
        group.limit(bandwidth)
        yield group
    finally:
        group.close()
