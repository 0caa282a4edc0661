"""Processes that cannot outlive the process that started them; also waiting, ports and scratch folders.

Each process leads a separate session and is ended with its whole group. It ends with its owner in any case:
- an exit or an exception: `stop` in the caller's context managers; `atexit` stops what they forgot;
- SIGTERM: the same, inside `exit_on_sigterm()`;
- SIGKILL: a watchdog process sees the owner's end of a pipe close and kills every group that it knows. On Linux the
  kernel kills the process as well, even before the watchdog knows it.

The kernel's part (PR_SET_PDEATHSIG) has a trap: it fires when the *thread* that started the process ends. So one
thread of this module, which lives as long as the interpreter, starts all processes."""

import atexit
import contextlib
import os
import queue
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import FrameType
from typing import Self

POLL_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 0.2
PAUSE_SHARE = 1 / 20
"""A pause is at most this share of the wait so far, but never shorter than POLL_SECONDS. Each look costs some
milliseconds here and in what is asked: every 50 ms, looks took a fifth of the CPU of the tests on real parts."""
LOG_TAIL_LINES = 15
SCRATCH_MARK = "kafka-lag-adapter"
# Below what Linux and macOS give to outgoing connections, so that none of those takes a port before its server does.
PORTS = range(20_000, 32_000)

# Runs between fork and the command. Arguments: pid of the owner, then the command.
LAUNCHER = """
import os, sys
if sys.platform == "linux":
    import ctypes, signal
    PR_SET_PDEATHSIG = 1
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started this one has already ended")
os.execvp(sys.argv[2], sys.argv[2:])
"""

# Reads "+group" and "-group", a line each, until the owner's end of the pipe closes.
WATCHDOG = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


class RigError(Exception):
    """A part of the rig could not be obtained, did not start, or ended. The message is for the user."""


class Process:
    """A started command and its process group; made by `start`. As a context manager it is stopped at the end."""

    def __init__(self, name: str, log: Path, popen: "subprocess.Popen[bytes]") -> None:
        self.name = name
        self.log = log
        self.pid = popen.pid
        self._popen = popen
        self._ending = threading.Lock()
        self._is_group_gone = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def status(self) -> int | None:
        """Returns the exit status, -N if signal N ended it, None while it runs."""
        status = self._popen.poll()
        if status is not None:
            self._end_group()
        return status

    def is_running(self) -> bool:
        return self.status is None

    def send(self, signal_number: int) -> None:
        """Signals the whole group; does nothing if the process has ended."""
        if self.is_running():
            with contextlib.suppress(ProcessLookupError):  # it ended just now
                os.killpg(self.pid, signal_number)

    def stop(self, grace_seconds: float = 5.0) -> None:
        """Ends the whole group: SIGTERM, then SIGKILL after the grace period. A frozen process is continued first."""
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(grace_seconds)
        self.send(signal.SIGKILL)
        self._popen.wait()
        self._end_group()

    def wait(self, timeout_seconds: float | None = None) -> int:
        """Waits for it to end and returns its status; raises RigError after the timeout."""
        try:
            self._popen.wait(timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise RigError(f"{self.name} has not ended after {timeout_seconds} s (log: {self.log})") from error
        self._end_group()
        return self._popen.returncode

    def log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def _end_group(self) -> None:
        """Kills what the ended process left in its group, at once, before its number can belong to another."""
        with self._ending:
            if self._is_group_gone:
                return
            self._is_group_gone = True
            with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM where only zombies are left
                os.killpg(self.pid, signal.SIGKILL)
            _owner.forget(self)


def start(
    name: str,
    command: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Process:
    """Starts `command` with its output appended to `log`. `env` is added to the environment of this process.

    Raises RigError if the command is not found. Use `wait_until` to see whether it then works."""
    environment = {**os.environ, **(env or {})}
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        raise RigError(f"{name}: no program {command[0]!r} on this machine")
    log.parent.mkdir(parents=True, exist_ok=True)
    return _owner.start(name, [program, *command[1:]], log, environment, cwd)


def wait_until(
    condition: Callable[[], bool],
    what: str,
    timeout_seconds: float,
    *,
    alive: Sequence[Process] = (),
    longest_pause_seconds: float = LONGEST_PAUSE_SECONDS,
) -> None:
    """Checks `condition` repeatedly until it holds; `what` says what is awaited, as in "the broker to answer".

    The longer the wait, the longer are the pauses between two looks, up to the longest one.
    Raises RigError with the end of its log after the timeout, and as soon as a process of `alive` has ended."""
    began = time.monotonic()
    while not condition():
        for process in alive:
            if not process.is_running():
                raise RigError(
                    f"{process.name} ended with status {process.status} while waiting for {what}; "
                    f"the end of {process.log}:\n{process.log_tail()}"
                )
        waited = time.monotonic() - began
        if waited > timeout_seconds:
            logs = "".join(f"; see {process.log}" for process in alive)
            raise RigError(f"waited {timeout_seconds:g} s in vain for {what}{logs}")
        time.sleep(max(POLL_SECONDS, min(waited * PAUSE_SHARE, longest_pause_seconds)))


def free_port() -> int:
    """Returns a port of 127.0.0.1 on which nothing listens and which no call in any process has returned before.

    A UDP socket on the same number, kept open until this process ends, shows this to other processes."""
    for port in random.sample(PORTS, len(PORTS)):
        if _is_free_and_reserved(port):
            return port
    raise RigError(f"no free port on 127.0.0.1 between {PORTS.start} and {PORTS.stop}")


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def logs() -> list[Path]:
    """Returns the logs of all processes that `start` of this interpreter started, also of those that have ended."""
    return list(_owner.logs)


def stop_all() -> None:
    """Ends everything that `start` of this interpreter started and that still runs, in reverse order."""
    _owner.stop_all()


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """Yields a temporary folder that is removed at the end. The next call removes those of owners that were killed."""
    _remove_scratch_of_the_dead()
    owner = f"{os.getpid()}-{_started_at(os.getpid())}"
    folder = Path(tempfile.mkdtemp(prefix=f"{SCRATCH_MARK}-{prefix}-{owner}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """SIGTERM and SIGHUP raise SystemExit in the main thread inside this context, so that context managers can clean
    up."""

    def leave(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    previous = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Owner:
    """This interpreter as the owner of processes: its starter thread, its watchdog, and what still runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[Process] = []
        self.logs: dict[Path, None] = {}
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._requests: queue.SimpleQueue[tuple[Callable[[], Process], Future[Process]]] = queue.SimpleQueue()

    def start(
        self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str], cwd: Path | None
    ) -> Process:
        def request() -> Process:
            with log.open("ab") as output:
                popen = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid()), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    cwd=cwd,
                    start_new_session=True,
                )
            process = Process(name, log, popen)
            self._remember(process)
            return process

        answer: Future[Process] = Future()
        self._begin()
        self._requests.put((request, answer))
        return answer.result()

    def forget(self, process: Process) -> None:
        with self._lock:
            self._running.remove(process)
            with contextlib.suppress(BrokenPipeError):  # the watchdog was killed, so it needs no message
                self._tell(f"-{process.pid}\n")

    def stop_all(self) -> None:
        """Ends processes in reverse order, because they may need earlier ones to end well."""
        for process in reversed(self._running.copy()):
            process.stop()
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.communicate()

    def _begin(self) -> None:
        with self._lock:
            if self._watchdog is not None:
                return
            self._watchdog = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", WATCHDOG],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
            threading.Thread(target=self._serve, name="process-starter", daemon=True).start()

    def _serve(self) -> None:
        while True:
            request, answer = self._requests.get()
            try:
                answer.set_result(request())
            except Exception as error:  # noqa: BLE001 - handed to the thread that asked, which raises it
                answer.set_exception(error)

    def _remember(self, process: Process) -> None:
        with self._lock:
            self._running.append(process)
            self.logs[process.log] = None
            self._tell(f"+{process.pid}\n")

    def _tell(self, line: str) -> None:
        assert self._watchdog is not None
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(line.encode())
        self._watchdog.stdin.flush()


def _is_free_and_reserved(port: int) -> bool:
    """Reserves it first, so that the look never takes a port for which another process has a reservation."""
    reservation = socket.socket(type=socket.SOCK_DGRAM)
    if _binds(reservation, port):
        with socket.socket() as listener:
            is_free = _binds(listener, port)
        if is_free:
            reservation.detach()  # open until this process ends
            return True
    reservation.close()
    return False


def _binds(unbound: socket.socket, port: int) -> bool:
    try:
        unbound.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


def _remove_scratch_of_the_dead() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH_MARK}-*-*-*-*"):
        _, pid, started_at, _ = folder.name.rsplit("-", 3)
        # Another new owner may be removing the same folder at this moment.
        with contextlib.suppress(FileNotFoundError):
            if pid.isdigit() and folder.stat().st_uid == os.getuid() and _started_at(int(pid)) != started_at:
                shutil.rmtree(folder, ignore_errors=True)


def _started_at(pid: int) -> str:
    """Returns when a process was started, which distinguishes it from a later one with the same number. Dead: empty."""
    if sys.platform == "linux":
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return ""
        # The name, in brackets, may itself hold spaces; the start is the 22nd field, the 20th after the name.
        return stat.rpartition(")")[2].split()[19]
    answer = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "".join(letter for letter in answer.stdout if letter.isalnum())


_owner = _Owner()
atexit.register(stop_all)
