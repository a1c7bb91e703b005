"""Runs the plan of a case on every engine, in turn, each run in processes of its own."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import dashboard
import options
from answers import difference
from engine import Setup
from environment import HERE, tell
from plan import Plan

WORKER_TIME_MAX_S = 1200


def run_worker(python: Path, engine: str, job: dict, setup: Setup, arriving: Sequence[str] = (),
               group_procs: str = "") -> dict:
    """What a worker measured, or `error`. Files that arrive do so in a folder of its own, which is the only table.

    The worker's process is a member of the control group, if there is one."""
    with tempfile.TemporaryDirectory(dir=setup.scratch) as folder:
        result_file = Path(folder) / "result.json"
        setup = replace(setup, scratch=folder)
        table = f"{folder}/{dashboard.TABLE}"
        if arriving:
            setup = replace(setup, files={}, folders={dashboard.TABLE: table})
        job = job | {"engine": engine, "setup": asdict(setup), "cgroup_procs": group_procs,
                     "result_file": str(result_file),
                     "months": [[file, "/".join([table, *Path(file).parts[-2:]])] for file in arriving]}
        # A session of its own, so that a worker that takes too long ends with all of its processes.
        worker = subprocess.Popen(
            [python, "-B", HERE / "worker.py"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
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
            return {"error": without_paths(lines[-1] if lines else f"ended with {worker.returncode}", setup)}
        return json.loads(without_paths(result_file.read_text(), setup))


def without_paths(text: str, setup: Setup) -> str:
    """A message without folders of this machine."""
    for folder in (setup.scratch, *map(os.path.dirname, setup.files.values()), str(options.ROOT), str(Path.home())):
        text = text.replace(folder, "…")
    return text


def run_rounds(case: str, plan: Plan, engines: list[str], rounds: int, run: Callable[[str, dict], dict]) -> dict:
    """All rounds of a case. The engine that is first in a round is last in the next."""
    names, jobs = [query.name for query in plan.queries], plan.jobs()
    runs, failures, reference, compared = [], set(), {}, 0
    for number in range(rounds):
        turn = number % len(engines)
        for engine in engines[turn:] + engines[:turn]:
            phases = []
            for job in jobs:
                outcome = run(engine, job)
                failures |= {f"{case}, {engine}: {text}" for text in
                             [*outcome.get("differences", []), *([outcome["error"]] if "error" in outcome else [])]}
                for position, answer in outcome.get("answers", {}).items():
                    first_engine, first = reference.setdefault(position, (engine, answer))
                    compared += first is not answer
                    if found := difference(answer, first):
                        failures.add(f"{case}, {names[int(position)]}: {engine} and {first_engine} differ: {found}")
                phases += outcome.get("phases", [])
            failures |= query_errors(case, engine, phases, names)
            runs.append({"engine": engine, "round": number, "phases": phases})
            ends = [max(record[2] for stream in phase["streams"] for record in stream) for phase in phases]
            tell(f"{case}, round {number + 1} of {rounds}, {engine}: "
                 + (", ".join(f"{end:.2f} s" for end in ends) or "failed"))
    return {"queries": names, "runs": runs, "answers_compared": compared, "rounds": rounds,
            "phases": list(dict.fromkeys(phase["name"] for phase in plan.phases)), "failures": sorted(failures)}


def query_errors(case: str, engine: str, phases: list[dict], names: list[str]) -> set[str]:
    """The first error of each query in each phase."""
    found = {}
    for phase in phases:
        for position, *_, error in (record for stream in phase["streams"] for record in stream):
            if error:
                found.setdefault((phase["name"], names[position]), error.splitlines()[0][:160])
    return {f"{case}, {phase}, {name}, {engine}: {error}" for (phase, name), error in found.items()}
