"""One session of measuring: every case, each where it has to run."""

import argparse
import dataclasses
import datetime
import json
import os
import statistics
import tempfile

import cases
import dashboard
import environment
import options
from device import LimitedGroup, Unavailable, forgetful_cache, remember, slow_device
from engine import Setup
from environment import tell
from plan import Plan, Settings
from runner import run_rounds, run_worker

POOL_BYTES_PER_SCALE = 20 * 10**6
POOL_BYTES_MIN = 16 * 10**6
"""Memory for stored pages on the slow device: about a quarter of what the scans touch."""


class Session:
    """The state of a session: what is the same for all cases, and their results."""

    def __init__(self, chosen: argparse.Namespace):
        self.chosen = chosen
        self.coscan = environment.binary(chosen.coscan)
        self.python = environment.python()
        self.files = environment.tables(self.coscan, chosen.scale, chosen.data)
        self.scratch = tempfile.TemporaryDirectory(prefix="coscan-peers-", dir=options.cache() / "peers")
        facts = environment.facts(self.python, self.coscan, self.files["lineitem"])
        self.keys = tuple(facts["keys"])
        machine = environment.machine(self.files["lineitem"])
        self.setup = Setup(self.files, {}, dashboard.PARTITION, chosen.memory, machine["cores"], self.scratch.name,
                           str(self.coscan), None)
        self.slow_pool_bytes = max(POOL_BYTES_MIN, int(POOL_BYTES_PER_SCALE * chosen.scale))
        self.results = {
            "date": datetime.date.today().isoformat(), "command": options.command(chosen),
            "options": {"scale": chosen.scale, "rounds": chosen.rounds, "quick": chosen.quick, "seed": chosen.seed,
                        "stagger": chosen.stagger, "memory_bytes": chosen.memory, "bandwidth": chosen.bandwidth, "engines": chosen.engines,
                        "slow_pool_bytes": self.slow_pool_bytes},
            "machine": machine | {"load_before": round(os.getloadavg()[0], 2)},
            "versions": facts["versions"],
            "bytes": {name: os.path.getsize(file) for name, file in self.files.items()},
            "cases": {},
        }

    def settings(self, rate: float = 0.0) -> Settings:
        chosen = self.chosen
        return Settings(chosen.scale, chosen.seed, chosen.quick, self.keys, chosen.stagger, rate)

    def months(self) -> list[str]:
        """The files of the dashboard."""
        return environment.by_month(self.python, self.files["lineitem"], self.chosen.scale)

    def run(self, case: str, plan: Plan, files: list[str], group: LimitedGroup | None = None) -> dict:
        """All rounds of a case. The files that it reads are in the page cache, or come from a slow device.

        There, the page cache forgets as fast as coscan's pool is small."""
        arriving = files if case == "dashboard" else []

        def run(engine: str, job: dict) -> dict:
            if group is None:
                remember(files)
                return run_worker(self.python, engine, job, self.setup, arriving)
            with forgetful_cache(files, self.slow_pool_bytes / self.chosen.bandwidth):
                slow = dataclasses.replace(self.setup, pool_bytes=self.slow_pool_bytes)
                return run_worker(self.python, engine, job, slow, arriving, group.procs)
        rounds = max(1, self.chosen.rounds // 3) if case == "tpch" else self.chosen.rounds
        return run_rounds(case, plan, self.chosen.engines, rounds, run)

    def run_slow(self, case: str, plan: Plan, files: list[str]) -> dict:
        """All rounds of a case on a device with a limit, or `unlimited`: why there is none."""
        try:
            with slow_device(max(files, key=os.path.getsize), self.chosen.bandwidth) as group:
                return self.run(case, plan, files, group) | {"limiter": group.kind}
        except Unavailable as reason:
            tell(f"{case}: reads cannot be limited: {reason}")
            return {"unlimited": str(reason), "failures": []}

    def rate(self) -> float:
        """Queries per second of DuckDB in the closed loop of `streams-cached`, which runs once more if it has not."""
        case = self.results["cases"].get("streams-cached", {})
        rates = [rate_of(phase) for run in case.get("runs", []) if run["engine"] == "duckdb" for phase in run["phases"]]
        if not rates:
            remember(list(self.files.values()))
            job, = cases.PLANS["streams-cached"](self.settings()).jobs()
            rates = list(map(rate_of, run_worker(self.python, "duckdb", job, self.setup).get("phases", [])))
        if not rates:
            raise RuntimeError("DuckDB, whose rate counts, did not finish")
        return statistics.median(rates)

    def measure_case(self, case: str) -> dict:
        settings = self.settings(self.rate() if case == "open-loop" else 0.0)
        plan, files = cases.PLANS[case](settings), list(self.files.values())
        match case:
            case "streams-slow-device":
                return self.run_slow(case, plan, [self.files["lineitem"]])
            case "dashboard":
                months = self.months()
                slow = self.run_slow(case, plan, months)
                measured = slow if "runs" in slow else slow | self.run(case, plan, months)
                return measured | {"bytes": sum(map(os.path.getsize, months))}
            case _:
                return self.run(case, plan, files) | {"rate": settings.rate, "own_constants": plan.own_constants}


def rate_of(phase: dict) -> float:
    """Queries per second."""
    records = [record for stream in phase["streams"] for record in stream]
    return len(records) / max(end for _, _, end, *_ in records)


def measure(chosen: argparse.Namespace) -> dict:
    """Runs all chosen cases; returns the results, as `--json` writes them."""
    (options.cache() / "peers").mkdir(parents=True, exist_ok=True)
    session = Session(chosen)
    results = session.results
    with session.scratch:
        for case in chosen.cases:
            results["cases"][case] = session.measure_case(case)
            if chosen.json:
                chosen.json.write_text(json.dumps(results))
    return results
