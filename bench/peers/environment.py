"""What a run needs on this machine: a Python environment, the binary, the tables."""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import dashboard
from options import ROOT, cache
from queries import TABLES

HERE = Path(__file__).resolve().parent


def tell(text: str) -> None:
    """Tells progress."""
    print(text, file=sys.stderr, flush=True)


def python() -> Path:
    """The Python of an environment with the engines, made if it is missing or out of date."""
    wanted, folder = HERE / "requirements.txt", cache() / "peers/venv"
    executable, installed = folder / "bin/python", folder / wanted.name
    if executable.exists() and installed.exists() and filecmp.cmp(wanted, installed, shallow=False):
        return executable
    tell("installs the engines (about 350 MB) …")
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    subprocess.run([executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                    "--only-binary", ":all:", "--no-deps", "--requirement", wanted], check=True)
    # Copied last: an environment without it is not complete.
    shutil.copy(wanted, installed)
    return executable


def binary(given: Path | None) -> Path:
    """The binary `coscan`."""
    if given:
        if not os.access(given, os.X_OK):
            sys.exit(f"--coscan: {given} is not a program")
        return given.resolve()
    tell("builds coscan (20 minutes the first time) …")
    built = subprocess.run(["cargo", "build", "--release", "--locked", "--message-format", "json-render-diagnostics"],
                           cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    return Path(next(message["executable"] for message in messages
                     if message.get("executable") and message["target"]["name"] == "coscan"))


def tables(coscan: Path, scale: float, folder: Path) -> dict[str, str]:
    """The Parquet file of each table of TPC-H, made by coscan if it is missing."""
    folder = folder.resolve()
    files = {name: str(folder / f"{name}-sf{scale:g}.parquet") for name in TABLES}
    if all(os.path.exists(file) for file in files.values()):
        return files
    tell(f"makes TPC-H at scale {scale:g} …")
    server = subprocess.Popen([coscan, "serve", "--demo", "--scale", f"{scale:g}", "--data", folder,
                               "--listen-postgres", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    try:
        # The server listens when the tables are there.
        said = []
        for line in server.stderr:
            said.append(line)
            if "PostgreSQL clients connect" in line:
                break
        else:
            sys.exit(f"the tables cannot be made: {''.join(said)}")
    finally:
        server.terminate()
        server.communicate()
    return files


def by_month(executable: Path, lineitem: str, scale: float) -> list[str]:
    """The files of the dashboard, made of lineitem if they are missing: in a folder that Hive would read."""
    folder = cache() / f"peers/{dashboard.TABLE}-sf{scale:g}"
    if not folder.exists():
        tell("writes lineitem by month …")
        with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
            subprocess.run([executable, "-B", HERE / "by_month.py", lineitem, unfinished, *dashboard.MONTHS],
                           check=True)
            os.rename(unfinished, folder)
            os.mkdir(unfinished)  # Which is removed.
    return [str(folder / f"{dashboard.PARTITION}={month}/lineitem.parquet") for month in dashboard.MONTHS]


def facts(executable: Path, coscan: Path, lineitem: str) -> dict:
    """Versions of all engines, and the range of keys of lineitem."""
    told = subprocess.run([executable, "-B", HERE / "worker.py", "facts", lineitem],
                          check=True, stdout=subprocess.PIPE, text=True)
    known = json.loads(told.stdout)
    version = subprocess.run([coscan, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    known["versions"] = {"coscan": version.split()[-1], **known["versions"]}
    return known


def machine(file: str) -> dict:
    """What the machine is, without its name. `file` is on the disk that counts."""
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    device = os.stat(file).st_dev
    folder = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    if (folder / "partition").exists():
        folder = folder.parent
    rotational = folder / "queue/rotational"
    kind = "of unknown kind"
    if rotational.exists():
        kind = ("virtual (virtio)" if folder.name.startswith("vd") else "NVMe" if folder.name.startswith("nvme")
                else "rotating" if rotational.read_text().strip() == "1" else "solid state")
    system = os.uname()
    return {
        "cpu": cpu[1] if cpu else system.machine,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "disk": kind,
        "kernel": f"{system.sysname} {system.release.split('-')[0]}",
        "python": ".".join(map(str, sys.version_info[:3])),
    }
