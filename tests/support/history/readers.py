"""Processes that list and read a location's hours all the time, as any tool does that knows nothing of compaction."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

COMMON = """
import json, sys, threading
import pyarrow.parquet as pq

hours, ended = int(sys.argv[2]), threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
print("ready", flush=True)
told = {"listings": 0, "missed": 0, "twice": 0, "mixed": 0, "crashes": []}
while not ended.is_set():
    for table in ("deltas", "totals"):
        found = listed(table)
        told["listings"] += 1
        told["missed"] += len(set(found)) < hours
        told["twice"] += len(found) > hours
        for path in found:
            try:
                versions = set(read(path)["version"].to_pylist())
                told["mixed"] += len(versions) != 1
            except Exception as error:
                told["crashes"].append(repr(error))
print(json.dumps(told))
"""
OF_FOLDER = """
import glob, sys
import pyarrow.parquet as pq

def listed(table):
    return glob.glob(f"{sys.argv[1]}/hours/date=*/hour=*/{table}.parquet")

def read(path):
    return pq.ParquetFile(path).read()
"""
OF_BUCKET = """
import sys
import pyarrow.parquet as pq
from spark.storage.location import files_at
from spark.storage.protocol import read_again

files = files_at(sys.argv[1])

def listed(table):
    return [file.path for file in files.listed("hours", 2) if file.name == f"{table}.parquet"]

def read(path):
    def attempt():
        with files.reading(path) as source:
            return pq.ParquetFile(source).read()
    return read_again(attempt)
"""


@dataclass(frozen=True, slots=True)
class Reader:
    process: "subprocess.Popen[str]"

    def told(self) -> str:
        """What it saw, as JSON, once it has been stopped."""
        out, _ = self.process.communicate("")
        return out


@contextmanager
def readers(program: str, location: str, hours: int, number: int = 3) -> Iterator[list[Reader]]:
    """Begins when all of them read."""
    command = [sys.executable, "-c", program + COMMON, location, str(hours)]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(number)
        ]
        for process in processes:
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield [Reader(process) for process in processes]
