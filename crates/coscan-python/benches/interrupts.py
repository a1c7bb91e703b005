#!/usr/bin/env python3
"""How soon Ctrl-C ends a call, and how soon the memory of its query is free.

Sends SIGINT to a process that is inside a call, again and again, at random moments. Needs pyarrow.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time

CALLS = {"fetchall": "result.fetchall()", "a stream that pyarrow reads": "pyarrow.table(result)", "collect": "result.collect()"}
QUERY = "SELECT a.value % 1000 AS a, count(*) AS n FROM range(0, 100000000) a JOIN range(0, 100000000) b ON a.value = b.value GROUP BY 1"

PROGRAM = """
import coscan, gc, pyarrow, sys, time
session = coscan.Session(memory=1 << 30)
for line in sys.stdin:
    result = session.sql({query!r})
    print("begins", flush=True)
    try:
        try:
            {call}
        except Exception:
            # The reader of a stream gets an error first, and the interpreter sees the interrupt after its next call.
            while True:
                time.sleep(0.01)
        print("ended by itself", flush=True)
        continue
    except KeyboardInterrupt:
        returned = time.monotonic()
    del result
    gc.collect()
    while session._native.operator_memory and time.monotonic() < returned + 60:
        time.sleep(0.001)
    print(returned, time.monotonic() - returned, flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interrupts", type=int, default=100, help="of each call (100)")
    options = parser.parse_args()
    for name, call in CALLS.items():
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(query=QUERY, call=call)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        returns, frees = [], []
        for _ in range(options.interrupts):
            child.stdin.write("\n")
            child.stdin.flush()
            assert child.stdout.readline() == "begins\n"
            time.sleep(0.1 + random.random() * 0.5)
            interrupted = time.monotonic()
            os.kill(child.pid, signal.SIGINT)
            returned, free = map(float, child.stdout.readline().split())
            returns.append(returned - interrupted)
            frees.append(free)
        child.stdin.close()
        child.wait()
        soon = sum(seconds <= 0.2 for seconds in returns), sum(seconds <= 2 for seconds in frees)
        print(
            f"{name}: {options.interrupts} interrupts; the call returned within 0.2 s {soon[0]} times, at most {max(returns):.2f} s; "
            f"the memory was free within 2 s {soon[1]} times, at most {max(frees):.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
