"""What processes have used: processor time, peak memory, bytes read. Linux only."""

import os
import time
from dataclasses import dataclass

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Use:
    """Sums over processes."""
    cpu_s: float = 0.0
    device_bytes: int = 0
    """Bytes that a device delivered for their reads (`read_bytes` of /proc/PID/io)."""
    call_bytes: int = 0
    """Bytes that their read calls returned, from the page cache or not (`rchar`). Sockets hardly count."""

    def since(self, earlier: "Use") -> dict:
        return {
            "cpu_s": round(self.cpu_s - earlier.cpu_s, 3),
            "device_bytes": self.device_bytes - earlier.device_bytes,
            "call_bytes": self.call_bytes - earlier.call_bytes,
        }


def machine_busy_s() -> float:
    """Processor time that all processes of the machine have used, in seconds, with what the host took away."""
    with open("/proc/stat") as file:
        user, nice, system, _idle, _waiting, irq, softirq, stolen = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + stolen) / CLOCK_TICKS


def cpu_s(pids: list[int]) -> float:
    """Processor time that these processes have used, all of their threads included."""
    # The clock of a process, as clock_getcpuclockid(3) makes it of the number: /proc counts in ticks of 10 ms.
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


def use_of(pids: list[int]) -> Use:
    """What these processes have used until now, all of their threads included."""
    total = Use(cpu_s(pids))
    for pid in pids:
        with open(f"/proc/{pid}/io") as file:
            counters = dict(line.split(": ") for line in file.read().splitlines())
        total.device_bytes += int(counters["read_bytes"])
        total.call_bytes += int(counters["rchar"])
    return total


def reset_peak(pids: list[int]) -> None:
    """Lets the peak of resident memory begin anew at what is resident now."""
    for pid in pids:
        with open(f"/proc/{pid}/clear_refs", "w") as file:
            file.write("5")


def peak_bytes(pids: list[int]) -> int:
    """The peak of resident memory since the last reset: the sum of the processes' peaks."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as file:
            peak = next(line for line in file if line.startswith("VmHWM"))
        total += int(peak.split()[1]) * 1024
    return total
