"""However a server ends, or is ended: nobody waits forever, and no process is left."""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any, Callable, List

import pytest
from conftest import FakeServer

from wardian import (
    AsyncSandbox,
    BinaryNotFoundError,
    ProtocolError,
    Sandbox,
    SandboxClosedError,
    ServerDiedError,
    ServerFaultError,
    WardianError,
)


def is_there(pid: int) -> bool:
    """Whether a process is there and is not merely waiting to be buried."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def until(condition: Callable[[], bool]) -> bool:
    """Whether something comes true at last."""
    for _ in range(3000):
        if condition():
            return True
        time.sleep(0.01)
    return False


def outcome_in_thread(work: Callable[[], Any]) -> "Callable[[], Any]":
    """Starts something; the answer waits for what came of it, exceptions included."""
    outcomes: List[Any] = []

    def catch() -> None:
        try:
            outcomes.append(work())
        except BaseException as error:
            outcomes.append(error)

    thread = threading.Thread(target=catch, daemon=True)
    thread.start()

    def wait() -> Any:
        thread.join(60)
        assert outcomes, "it hangs"
        return outcomes[0]

    return wait


# -- leaving no process ----------------------------------------------------------------------------------------------


def test_leaving_the_context_leaves_no_process() -> None:
    with Sandbox() as sandbox:
        assert is_there(sandbox.pid)
    assert not is_there(sandbox.pid)
    with pytest.raises(SandboxClosedError):
        sandbox.run("true")
    sandbox.close()


def test_leaving_by_an_exception_does_too() -> None:
    with pytest.raises(KeyError):
        with Sandbox() as sandbox:
            sandbox.run("sleep 3600 &")
            raise KeyError
    assert not is_there(sandbox.pid)


def test_kill_ends_a_busy_server() -> None:
    sandbox = Sandbox()
    fork = sandbox.fork()
    stream = fork.stream("echo begun; while :; do :; done")
    next(stream)
    wait = outcome_in_thread(lambda: stream.result)
    fork.kill()
    assert not is_there(sandbox.pid)
    outcome = wait()
    assert isinstance(outcome, SandboxClosedError) or outcome.cancelled
    with pytest.raises(SandboxClosedError):
        sandbox.run("true")
    sandbox.kill()


def test_closing_ends_what_other_threads_wait_for() -> None:
    sandbox = Sandbox()
    with sandbox.stream("echo begun; while :; do :; done") as stream:
        next(stream)
        waits = [outcome_in_thread(lambda: sandbox.run("true")) for _ in range(3)]
        sandbox.close()
        assert all(isinstance(wait(), SandboxClosedError) for wait in waits)


def test_a_sandbox_that_nobody_holds_any_more_is_ended() -> None:
    sandbox = Sandbox()
    fork = sandbox.fork()
    pid = sandbox.pid
    del sandbox
    gc.collect()
    assert fork.run("echo here").stdout == "here\n"
    del fork
    gc.collect()
    assert not is_there(pid)


def python(code: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)


def first_number(process: "subprocess.Popen[str]") -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_an_interpreter_that_exits_without_closing_leaves_no_process() -> None:
    with python(
        """
        import threading
        from wardian import Sandbox
        sandbox = Sandbox()
        threading.Thread(target=lambda: sandbox.run("while :; do :; done"), daemon=True).start()
        print(sandbox.pid, flush=True)
        """
    ) as process:
        pid = first_number(process)
        assert process.wait(60) == 0
    assert not is_there(pid)


@pytest.mark.parametrize("how", ["os._exit(1)", "os.kill(os.getpid(), 9)"])
def test_a_parent_that_ends_at_once_leaves_no_process(how: str) -> None:
    with python(
        f"""
        import os, multiprocessing, time
        from wardian import Sandbox
        sandbox = Sandbox()
        sandbox.run("sleep 3600 &")
        # A child that lives on must not keep the server alive.
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,)).start()
        print(sandbox.pid, flush=True)
        {how}
        """
    ) as process:
        pid = first_number(process)
        assert process.wait(60) != 0
        assert until(lambda: not is_there(pid))
        # The child has our pipe: it need not be waited for.
        assert process.stdout is not None
        process.stdout.close()


def test_a_forked_child_says_that_the_sandbox_is_not_its_own(sandbox: Sandbox) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            sandbox.run("true")
        except SandboxClosedError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader) as said:
        assert "belongs to the process that made it" in said.read()
    assert sandbox.run("echo here").stdout == "here\n"


def test_ctrl_c_ends_the_command_and_not_the_server() -> None:
    with python(
        """
        import threading
        from wardian import Sandbox, SandboxError

        def tell_when_it_runs():
            try:
                sandbox.files.stat("/tmp/begun")
                print(sandbox.pid, flush=True)
            except SandboxError:
                threading.Timer(0.01, tell_when_it_runs).start()

        with Sandbox() as sandbox:
            try:
                tell_when_it_runs()
                sandbox.run("> /tmp/begun; while :; do :; done", timeout=3000)
            except KeyboardInterrupt:
                print(sandbox.run("echo goes on").stdout, end="")
        """
    ) as process:
        pid = first_number(process)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.read() == "goes on\n"
    assert not is_there(pid)


# -- servers that die ------------------------------------------------------------------------------------------------


def test_a_server_that_is_killed_is_an_exception_for_everybody() -> None:
    with Sandbox() as sandbox:
        fork = sandbox.fork()
        stream = sandbox.stream("echo begun; while :; do :; done")
        next(stream)
        waits = [outcome_in_thread(work) for work in (lambda: fork.run("while :; do :; done"), lambda: next(stream))]
        assert until(lambda: len(sandbox._handle.server.connection._pending) == 2)
        os.kill(sandbox.pid, signal.SIGKILL)
        for wait in waits:
            assert isinstance(wait(), ServerDiedError)
        with pytest.raises(ServerDiedError, match="killed by SIGKILL"):
            sandbox.files.read("/x")


@pytest.mark.parametrize("end", [Sandbox.close, Sandbox.kill, lambda sandbox: os.kill(sandbox.pid, signal.SIGKILL)])
def test_whatever_threads_are_at_they_hear_of_the_end(end: Callable[[Sandbox], None]) -> None:
    sandbox = Sandbox()
    places = [sandbox, *sandbox.fork(3)]
    turns: List[int] = []

    def work(number: int) -> None:
        choices = random.Random(number)
        while True:
            place, turn = choices.choice(places), choices.randrange(5)
            if turn == 0:
                place.run("while :; do :; done", timeout=0.01)
            elif turn == 1:
                with place.stream("for i in 1 2 3 4 5; do echo $i; done") as stream:
                    next(stream, None)
            elif turn == 2:
                place.files.write(f"/tmp/{number}", bytes(100_000))
                place.files.read(f"/tmp/{number}")
            elif turn == 3:
                place.cancel()
            else:
                with place.fork() as fork:
                    fork.run("echo in a fork")
            turns.append(turn)

    waits = [outcome_in_thread(functools.partial(work, number)) for number in range(8)]
    assert until(lambda: len(turns) > 50)
    end(sandbox)
    assert {type(wait()) for wait in waits} <= {SandboxClosedError, ServerDiedError}
    sandbox.close()
    assert not is_there(sandbox.pid)


def test_its_last_words_are_told(fake_server: FakeServer) -> None:
    program = fake_server("print('thread panicked at the disco', file=sys.stderr); sys.exit(3)")
    with Sandbox(binary=program) as sandbox:
        with pytest.raises(ServerDiedError, match="exited with status 3\n  thread panicked at the disco"):
            sandbox.run("true")


def test_one_that_dies_before_it_begins(tmp_path: Path) -> None:
    program = tmp_path / "wardian"
    program.write_text("#!/bin/sh\necho wrong libc >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(ServerDiedError, match="wrong libc"):
        Sandbox(binary=program)


def test_one_that_closes_its_output_is_as_good_as_dead(fake_server: FakeServer) -> None:
    with Sandbox(binary=fake_server("os.close(1); time.sleep(3600)")) as sandbox:
        with pytest.raises(ServerDiedError, match="closed its streams"):
            sandbox.run("true")
        assert until(lambda: not is_there(sandbox.pid))


def test_one_that_does_not_read_does_not_hold_up_close(
    fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wardian._protocol._GRACE_SECONDS", 0.1)
    with Sandbox(binary=fake_server("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)")) as sandbox:
        wait = outcome_in_thread(lambda: sandbox.files.write("/f", b"x" * (4 << 20)))
        assert until(lambda: len(sandbox._handle.server.connection._pending) == 1)
    assert isinstance(wait(), SandboxClosedError)
    assert not is_there(sandbox.pid)


# -- servers that talk nonsense --------------------------------------------------------------------------------------

NONSENSE = [
    "say('hello')",
    "say('[1, 2]')",
    "say('{}')",
    "say('\\xff')",
    "sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush()",
    "say('[' * 100000)",
    "say({'id': 4711, 'result': {}})",
    "say({'id': request['id'] + 1, 'result': {}})",
    "say({'id': None, 'error': {'code': -32700, 'message': 'Request too large'}})",
    "say({'id': request['id']})",
    "say({'id': request['id'], 'error': 'no'})",
    "say({'id': [request['id']], 'result': {}})",
    "say({'method': 'output', 'params': {'request_id': request['id'], 'stream': 'stdlog', 'data': ''}})",
    "say({'method': 'output', 'params': {'request_id': request['id'], 'stream': 'stdout', 'data': '?'}})",
    "say({'method': 'output', 'params': {'request_id': [], 'stream': 'stdout', 'data': ''}})",
    "say({'method': 'output'})",
]


@pytest.mark.parametrize("code", NONSENSE)
def test_nonsense_is_an_exception(fake_server: FakeServer, code: str) -> None:
    with Sandbox(binary=fake_server(code)) as sandbox:
        for _ in range(2):
            with pytest.raises(ProtocolError):
                sandbox.run("true")
        assert until(lambda: not is_there(sandbox.pid))


@pytest.mark.parametrize(
    "result", ["None", "[]", "'x'", "{'exitCode': 0}", "{'exitCode': '0', 'stdout': '', 'stderr': ''}"]
)
def test_an_answer_of_the_wrong_shape_is_an_exception_of_that_call(fake_server: FakeServer, result: str) -> None:
    with Sandbox(binary=fake_server(f"say({{'id': request['id'], 'result': {result}}})")) as sandbox:
        with pytest.raises(ProtocolError, match="unexpected response to run"):
            sandbox.run("true")
        for call in (lambda: sandbox.files.stat("/"), lambda: sandbox.fork(), lambda: sandbox.snapshot()):
            with pytest.raises(ProtocolError):
                call()


def test_a_fault_of_the_servers_is_told_and_it_lives_on(fake_server: FakeServer) -> None:
    program = fake_server("say({'id': request['id'], 'error': {'code': -32603, 'message': 'a lost wheel'}})")
    with Sandbox(binary=program) as sandbox:
        for _ in range(2):
            with pytest.raises(ServerFaultError, match="a lost wheel"):
                sandbox.run("true")


def test_calls_this_client_does_not_know_are_refused(fake_server: FakeServer) -> None:
    program = fake_server(
        """
        if 'method' in request:
            asked = request['id']
            say({'id': 'cb_1', 'method': 'storage.load', 'params': {}})
        else:
            say({'id': asked, 'result': {'value': str(request['error']['code'])}})
        """
    )
    with Sandbox(binary=program) as sandbox:
        assert sandbox.env.get("X") == "-32601"


def test_async_hears_of_it_too(fake_server: FakeServer) -> None:
    async def work(code: str, error: type) -> None:
        async with AsyncSandbox(binary=fake_server(code)) as sandbox:
            with pytest.raises(error):
                await sandbox.run("true")
            with pytest.raises(error):
                await sandbox.stream("true").result()

    asyncio.run(work("os.kill(os.getpid(), 9)", ServerDiedError))
    asyncio.run(work("say('hello')", ProtocolError))


# -- the program -----------------------------------------------------------------------------------------------------


def test_a_program_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(BinaryNotFoundError, match="/nowhere/wardian"):
        Sandbox(binary="/nowhere/wardian")
    monkeypatch.setenv("WARDIAN_BINARY", str(tmp_path))
    with pytest.raises(BinaryNotFoundError):
        Sandbox()


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    program = tmp_path / "wardian"
    program.write_bytes(b"\x7fELF of another machine")
    program.chmod(0o755)
    with pytest.raises(BinaryNotFoundError, match=r"cannot start .*wardian: .*Exec format error"):
        Sandbox(binary=program)


def test_every_exception_is_one_of_ours() -> None:
    import wardian

    for name in wardian.__all__:
        if name.endswith("Error"):
            assert issubclass(getattr(wardian, name), WardianError)
