"""One session of measuring: every case on every engine, in turn, each in a process of its own."""

import argparse
import datetime
import json
import os
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import cases
import environment
import options
from answers import difference
from device import Unavailable, forgetful_cache, remember, slow_device
from environment import HERE, tell

WORKER_TIME_MAX_S = 1200
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
        self.cores = machine["cores"]
        self.slow_pool_bytes = max(POOL_BYTES_MIN, int(POOL_BYTES_PER_SCALE * chosen.scale))
        self.results = {
            "date": datetime.date.today().isoformat(), "command": options.command(chosen),
            "options": {"scale": chosen.scale, "rounds": chosen.rounds, "quick": chosen.quick, "seed": chosen.seed,
                        "memory_bytes": chosen.memory, "bandwidth": chosen.bandwidth, "engines": chosen.engines,
                        "slow_pool_bytes": self.slow_pool_bytes},
            "machine": machine | {"load_before": round(os.getloadavg()[0], 2)},
            "versions": facts["versions"],
            "bytes": {name: os.path.getsize(file) for name, file in self.files.items()},
            "cases": {},
        }

    def settings(self, rate: float = 0.0) -> cases.Settings:
        chosen = self.chosen
        return cases.Settings(chosen.scale, chosen.seed, chosen.quick, self.keys, rate)

    def run_worker(self, engine: str, job: dict, group_procs: str = "", pool_bytes: int | None = None) -> dict:
        """What a worker measured, or `error`."""
        with tempfile.TemporaryDirectory(dir=self.scratch.name) as folder:
            result_file = Path(folder) / "result.json"
            setup = {"files": self.files, "memory_bytes": self.chosen.memory, "cores": self.cores, "scratch": folder,
                     "coscan": str(self.coscan), "pool_bytes": pool_bytes}
            job = job | {"engine": engine, "setup": setup, "cgroup_procs": group_procs, "result_file": str(result_file)}
            # A session of its own, so that a worker that takes too long ends with all of its processes.
            worker = subprocess.Popen(
                [self.python, "-B", HERE / "worker.py"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True, cwd=folder, start_new_session=True)
            try:
                _, said = worker.communicate(json.dumps(job), timeout=WORKER_TIME_MAX_S)
            except subprocess.TimeoutExpired:
                return {"error": f"took more than {WORKER_TIME_MAX_S} s"}
            finally:
                if worker.returncode is None:
                    os.killpg(worker.pid, signal.SIGKILL)
                    worker.wait()
            if not result_file.exists():
                lines = said.strip().splitlines()
                return {"error": self.without_paths(lines[-1] if lines else f"ended with {worker.returncode}")}
            return json.loads(result_file.read_text())

    def without_paths(self, text: str) -> str:
        """A message without folders of this machine."""
        for folder in (self.scratch.name, os.path.dirname(self.files["lineitem"]), str(options.ROOT), str(Path.home())):
            text = text.replace(folder, "…")
        return text

    def run_rounds(self, case: str, plan: cases.Plan, rounds: int, run: Callable[[str, dict], dict]) -> dict:
        """All rounds of a case. The engine that is first in a round is last in the next."""
        job, engines = plan.job(), self.chosen.engines
        runs, failures, reference, compared = [], [], {}, 0
        for number in range(rounds):
            turn = number % len(engines)
            for engine in engines[turn:] + engines[:turn]:
                outcome = run(engine, job)
                answers = outcome.pop("answers", {})
                failures += [f"{case}, {engine}: {text}" for text in outcome.pop("differences", [])]
                if "error" in outcome:
                    failures.append(f"{case}, {engine}: {outcome['error']}")
                failures += self.query_errors(case, engine, outcome, job)
                for position, answer in answers.items():
                    first_engine, first = reference.setdefault(position, (engine, answer))
                    compared += first is not answer
                    if found := difference(answer, first):
                        name = job["queries"][int(position)]["name"]
                        failures.append(f"{case}, {name}: {engine} and {first_engine} differ: {found}")
                runs.append({"engine": engine, "round": number, **outcome})
                ends = [max(end for stream in phase["streams"] for _, _, end, _ in stream)
                        for phase in outcome.get("phases", [])]
                tell(f"{case}, round {number + 1} of {rounds}, {engine}: "
                     + (", ".join(f"{end:.2f} s" for end in ends) or outcome["error"]))
        return {"queries": [query["name"] for query in job["queries"]], "runs": runs, "answers_compared": compared,
                "phases": [phase["name"] for phase in job["phases"]], "rounds": rounds,
                "failures": sorted(set(failures))}

    def query_errors(self, case: str, engine: str, outcome: dict, job: dict) -> list[str]:
        """The first error of each query in each phase."""
        found = {}
        for phase in outcome.get("phases", []):
            for record in (record for stream in phase["streams"] for record in stream if record[3]):
                record[3] = self.without_paths(record[3])
                name = job["queries"][record[0]]["name"]
                found.setdefault((phase["name"], name), record[3].splitlines()[0][:160])
        return [f"{case}, {phase}, {name}, {engine}: {error}" for (phase, name), error in found.items()]

    def warm_case(self, case: str, rounds: int, settings: cases.Settings) -> dict:
        """A case with all files in the page cache."""
        def run(engine: str, job: dict) -> dict:
            remember(list(self.files.values()))
            return self.run_worker(engine, job)
        return self.run_rounds(case, cases.PLANS[case](settings), rounds, run)

    def slow_case(self, case: str, rounds: int) -> dict:
        """A case on a device with a limit. The page cache forgets as fast as coscan's pool is small."""
        lineitem, bandwidth = self.files["lineitem"], self.chosen.bandwidth
        try:
            with slow_device(lineitem, bandwidth) as group:
                def run(engine: str, job: dict) -> dict:
                    with forgetful_cache([lineitem], self.slow_pool_bytes / bandwidth):
                        return self.run_worker(engine, job, group.procs, self.slow_pool_bytes)
                measured = self.run_rounds(case, cases.PLANS[case](self.settings()), rounds, run)
                return measured | {"limiter": group.kind}
        except Unavailable as reason:
            tell(f"{case} is left out: {reason}")
            return {"left_out": str(reason), "failures": []}

    def rate(self) -> float:
        """Queries per second of DuckDB in the closed loop of `streams-cached`, which runs once more if it has not."""
        case = self.results["cases"].get("streams-cached", {})
        rates = [rate for run in case.get("runs", []) if run["engine"] == "duckdb" for rate in rates_of(run)]
        if not rates:
            remember(list(self.files.values()))
            rates = rates_of(self.run_worker("duckdb", cases.streams_cached(self.settings()).job()))
        if not rates:
            raise RuntimeError("DuckDB, whose rate counts, did not finish")
        return statistics.median(rates)

    def measure_case(self, case: str) -> dict:
        rounds = max(1, self.chosen.rounds // 3) if case == "tpch" else self.chosen.rounds
        match case:
            case "streams-slow-device":
                return self.slow_case(case, rounds)
            case "open-loop":
                rate = self.rate()
                return self.warm_case(case, rounds, self.settings(rate)) | {"rate": rate}
            case _:
                return self.warm_case(case, rounds, self.settings())


def rates_of(run: dict) -> list[float]:
    """Queries per second in each phase of a run."""
    return [sum(map(len, phase["streams"])) / max(end for stream in phase["streams"] for _, _, end, _ in stream)
            for phase in run.get("phases", [])]


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
