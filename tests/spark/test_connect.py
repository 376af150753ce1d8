"""The same calls on Spark Connect, where the session is a client and no JVM object is at hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


def test_map_in_arrow_and_run_on_connect(tmp_path) -> None:
    program = Path(__file__).with_name("connect_driver.py")
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
    log = tmp_path / "log"
    with log.open("wb") as output:
        ended = subprocess.run(
            [sys.executable, str(program)],
            stdout=output,
            stderr=output,
            env=environment,
            timeout=150,
            check=False,
        )
    assert ended.returncode == 0, log.read_text()[-3000:]
    assert "right" in log.read_text()
