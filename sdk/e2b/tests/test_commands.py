"""Commands, processes and terminals."""

from __future__ import annotations

import asyncio
import time
from typing import Iterator, List

import pytest
from e2b import AsyncSandbox, CommandExitException, NotFoundException, PtySize, Sandbox, TimeoutException
from e2b.exceptions import InvalidArgumentException, SandboxException


@pytest.fixture(scope="module")
def sandbox(server: str) -> Iterator[Sandbox]:
    sandbox = Sandbox.create(timeout=600)
    yield sandbox
    sandbox.kill()


def test_a_command_has_output_code_directory_and_variables(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("echo out; echo err >&2; pwd; echo $X", cwd="/tmp", envs={"X": "y z"})
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n/tmp\ny z\n", "err\n", 0)
    assert sandbox.commands.run("pwd").stdout == "/home/user\n"
    with pytest.raises(CommandExitException) as failed:
        sandbox.commands.run("echo before; exit 3")
    assert (failed.value.exit_code, failed.value.stdout) == (3, "before\n")
    with pytest.raises(InvalidArgumentException, match="/nowhere"):
        sandbox.commands.run("true", cwd="/nowhere")


def test_output_arrives_while_the_command_runs(sandbox: Sandbox) -> None:
    out: List[str] = []
    err: List[str] = []
    sandbox.commands.run("echo a; echo b >&2; echo c", on_stdout=out.append, on_stderr=err.append)
    assert ("".join(out), "".join(err)) == ("a\nc\n", "b\n")
    large = sandbox.commands.run("seq 100000")
    assert large.stdout == "".join(f"{n}\n" for n in range(1, 100001))
    assert sandbox.commands.run("printf '\\xc3\\xa9\\xff'").stdout.startswith("é")


def test_background_commands_take_input_and_are_listed(sandbox: Sandbox) -> None:
    handle = sandbox.commands.run("cat; echo end", background=True, stdin=True, timeout=0)
    listed = {process.pid: process for process in sandbox.commands.list()}
    assert listed[handle.pid].cmd == "/bin/bash" and listed[handle.pid].args[-1] == "cat; echo end"
    sandbox.commands.send_stdin(handle.pid, "one ")
    sandbox.commands.send_stdin(handle.pid, "two\n")
    sandbox.commands.close_stdin(handle.pid)
    assert handle.wait().stdout == "one two\nend\n"
    assert handle.pid not in {process.pid for process in sandbox.commands.list()}
    with pytest.raises((NotFoundException, SandboxException)):
        sandbox.commands.send_stdin(handle.pid, "late")


def test_input_can_be_streamed(sandbox: Sandbox) -> None:
    handle = sandbox.commands.run("wc -c", background=True, stdin=True, timeout=0)
    sandbox.commands.stream_input(handle.pid, (b"x" * 1000 for _ in range(300)))
    sandbox.commands.close_stdin(handle.pid)
    assert handle.wait().stdout.strip() == "300000"


def test_a_command_is_killed_with_what_it_started(sandbox: Sandbox) -> None:
    handle = sandbox.commands.run("sleep 1000 & echo begun; wait", background=True, timeout=0)
    sandbox.commands.run("until ps | grep -q sleep; do :; done")
    assert sandbox.commands.kill(handle.pid)
    with pytest.raises(CommandExitException):
        handle.wait()
    assert not sandbox.commands.kill(handle.pid)
    assert "sleep" not in sandbox.commands.run("ps").stdout


def test_a_timeout_kills_the_command(sandbox: Sandbox) -> None:
    with pytest.raises(TimeoutException):
        sandbox.commands.run("echo begun; sleep 1000", timeout=1)
    deadline = time.monotonic() + 10
    while sandbox.commands.list() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sandbox.commands.list() == []


def test_a_disconnect_does_not_and_another_may_connect(sandbox: Sandbox) -> None:
    handle = sandbox.commands.run("until [ -e /tmp/go ]; do sleep 0.05; done; echo gone on", background=True, timeout=0)
    handle.disconnect()
    again = sandbox.commands.connect(handle.pid)
    sandbox.files.write("/tmp/go", "")
    assert again.wait().stdout == "gone on\n"
    with pytest.raises((NotFoundException, SandboxException)):
        sandbox.commands.connect(99999)


def test_root_may_write_where_the_user_may_not(sandbox: Sandbox) -> None:
    with pytest.raises(CommandExitException):
        sandbox.commands.run("echo x > /etc/motd")
    sandbox.commands.run("echo x > /etc/motd", user="root")
    assert sandbox.commands.run("cat /etc/motd").stdout == "x\n"


def test_a_terminal_is_a_shell_that_can_be_typed_at_and_resized(sandbox: Sandbox) -> None:
    terminal = sandbox.pty.create(PtySize(rows=24, cols=80), envs={"PS1": "$ "}, timeout=0)
    sandbox.pty.send_stdin(terminal.pid, b"echo $((6*7))\n")
    sandbox.pty.resize(terminal.pid, PtySize(rows=30, cols=100))
    sandbox.pty.send_stdin(terminal.pid, b"exit 0\n")
    assert terminal.wait().exit_code == 0


def test_what_a_terminal_shows(sandbox: Sandbox) -> None:
    terminal = sandbox.pty.create(PtySize(rows=24, cols=80), timeout=0)
    sandbox.pty.send_stdin(terminal.pid, b"echo $((6*7)); python3 -c 'import os; print(*os.get_terminal_size(0))'; exit\n")
    shown = bytearray()
    terminal.wait(on_pty=shown.extend)
    assert b"42\r\n" in shown and b"80 24\r\n" in shown


def test_many_at_once_and_by_asyncio() -> None:
    async def main() -> None:
        sandbox = await AsyncSandbox.create()
        results = await asyncio.gather(*(sandbox.commands.run(f"sleep 0.1; echo {n}") for n in range(20)))
        assert [result.stdout for result in results] == [f"{n}\n" for n in range(20)]
        handle = await sandbox.commands.run("cat", background=True, stdin=True, timeout=0)
        await sandbox.commands.send_stdin(handle.pid, "hi")
        await sandbox.commands.close_stdin(handle.pid)
        assert (await handle.wait()).stdout == "hi"
        await sandbox.kill()

    asyncio.run(main())
