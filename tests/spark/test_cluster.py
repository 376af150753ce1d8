"""A standalone cluster on loopback: the package shipped to it, a worker killed in the middle of a job."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from tests.house.layers import LAYERS, ROOT
from tests.spark.leftovers import ring1_processes, segments, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"


@dataclass
class Cluster:
    """A master and the workers by their work folders."""

    url: str
    workers: dict[Path, subprocess.Popen]


def start(log: Path, *arguments: str) -> subprocess.Popen:
    environment = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    with log.open("wb") as output:
        return subprocess.Popen([SPARK_CLASS, *arguments], stdout=output, stderr=output, env=environment)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    url = f"spark://127.0.0.1:{port}"
    with contextlib.ExitStack() as running:

        def keep(process: subprocess.Popen) -> subprocess.Popen:
            running.callback(process.wait)
            running.callback(process.kill)
            return process

        common = ("--webui-port", "0", "--host")
        keep(start(tmp_path / "master.log", f"{DEPLOY}.master.Master", *common, "127.0.0.1", "--port", port))
        workers = {}
        # Two names of one address: Spark starts no speculative attempt on the host of the first.
        for number, host in enumerate(("127.0.0.1", "localhost")):
            folder = tmp_path / f"worker {number}"
            size = ("--cores", "2", "--memory", "700m", "--work-dir", str(folder))
            log = tmp_path / f"worker {number}.log"
            workers[folder] = keep(start(log, f"{DEPLOY}.worker.Worker", *common, host, *size, url))
        yield Cluster(url, workers)
    assert wait_until(lambda: not (segments() or ring1_processes()))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as docs/spark.md ships it: its wheel, unpacked and put into an archive."""
    base = tmp_path_factory.mktemp("shipped")
    for folder in LAYERS:
        shutil.copytree(ROOT / folder, base / "source" / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, base / "source" / name)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", base / "site", base / "source"], check=True, timeout=120)
    return Path(shutil.make_archive(str(base / "laminar_jit"), "gztar", base / "site"))


def test_a_speculative_attempt_and_a_killed_worker_change_nothing(cluster, archive, tmp_path) -> None:
    program = Path(__file__).with_name("cluster_driver.py")
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, str(program), cluster.url, str(archive), str(tmp_path)]
    log = tmp_path / "driver.log"
    with log.open("wb") as output:
        driver = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment, start_new_session=True
        )

    def told(name: str) -> bool:
        return (tmp_path / name).exists() or driver.poll() is not None

    try:
        assert wait_until(lambda: told("speculated done"), 150), log.read_text()[-3000:]
        assert driver.poll() is None, log.read_text()[-3000:]
        pid = (tmp_path / "speculated 0").read_text().split()[0]
        assert wait_until(lambda: not os.path.exists(f"/proc/{pid}")), "the attempt that lost still runs"
        assert wait_until(lambda: not segments()), segments()

        assert wait_until(lambda: told("killed 0"), 100), log.read_text()[-3000:]
        assert driver.poll() is None, log.read_text()[-3000:]
        pid, _, at = (tmp_path / "killed 0").read_text().partition(" ")
        (victim,) = [worker for folder, worker in cluster.workers.items() if folder in Path(at).parents]
        victim.kill()
        assert wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 15), (
            "a task of a dead worker still runs"
        )
        (tmp_path / "killed go").touch()
        assert driver.wait(150) == 0, log.read_text()[-3000:]
        assert log.read_text().rstrip().endswith("right")
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
