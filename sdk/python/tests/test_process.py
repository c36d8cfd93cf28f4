"""Processes beside the shell, and terminals."""

from __future__ import annotations

import asyncio

import pytest

from wardian import AsyncSandbox, Sandbox, SandboxClosedError, SandboxError


def test_processes_run_at_once_and_take_input(sandbox: Sandbox) -> None:
    script = 'while read line; do echo "$0 $line"; done; echo end >&2; exit 3'
    both = [sandbox.process.start(["bash", "-c", script, name], stdin=True) for name in ("one", "two")]
    assert [info.pid for info in sandbox.process.list()] == [process.pid for process in both]
    for process in both:
        process.write("a\nb\n")
    # The shell is not kept waiting.
    assert sandbox.run("echo shell").stdout == "shell\n"
    for process, name in zip(both, ("one", "two")):
        process.close_stdin()
        result = process.wait(timeout=60)
        assert (result.stdout, result.stderr, result.exit_code) == (f"{name} a\n{name} b\n", "end\n", 3)
        assert not result.ok
    assert sandbox.process.list() == []


def test_output_is_iterated_in_order_however_long(sandbox: Sandbox) -> None:
    process = sandbox.process.start("echo a; echo b >&2; seq 200000", env={"X": "y"}, cwd="/tmp")
    pieces = [(piece.stream, piece.data_bytes) for piece in process]
    assert pieces[0] == ("stdout", b"a\n") and pieces[1] == ("stderr", b"b\n")
    numbers = b"".join(data for stream, data in pieces[2:])
    assert numbers == b"".join(b"%d\n" % number for number in range(1, 200001))
    assert process.wait().exit_code == 0


def test_signals_and_timeouts_end_it(sandbox: Sandbox) -> None:
    process = sandbox.process.start("echo ready; sleep 1000")
    assert next(iter(process)).data == "ready\n"
    with pytest.raises(TimeoutError):
        process.wait(timeout=0.1)
    process.kill()
    assert process.wait().signal == 9
    late = sandbox.process.start("sleep 1000", timeout=0.05).wait()
    assert (late.exit_code, late.error_class) == (124, "TIMEOUT")
    with pytest.raises(SandboxError):
        process.write("x")


def test_a_terminal_is_typed_at_and_resized(sandbox: Sandbox) -> None:
    terminal = sandbox.pty.start(rows=10, columns=40)
    terminal.write("echo $((6*7))\r")
    terminal.resize(20, 50)
    terminal.write("python3 -c 'import os; print(*os.get_terminal_size(0))'; exit 4\r")
    result = terminal.wait(timeout=60)
    assert result.exit_code == 4
    assert "42\r\n" in result.pty and "50 20\r\n" in result.pty


def test_a_process_whose_server_is_gone_says_so() -> None:
    sandbox = Sandbox()
    process = sandbox.process.start("sleep 1000")
    sandbox.close()
    with pytest.raises(SandboxClosedError):
        process.wait()


def test_processes_by_asyncio() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            started = [await sandbox.process.start(f"sleep 0.1; echo {n}") for n in range(5)]
            results = await asyncio.gather(*(process.wait() for process in started))
            assert [result.stdout for result in results] == [f"{n}\n" for n in range(5)]
            process = await sandbox.process.start("cat", stdin=True)
            await process.write("typed")
            await process.close_stdin()
            assert [piece.data async for piece in process] == ["typed"]
            terminal = await sandbox.pty.start("[ -t 0 ] && [ -t 1 ] && echo $TERM", rows=3, columns=4)
            assert (await terminal.wait()).pty == "xterm-256color\r\n"

    asyncio.run(main())


def test_files_are_renamed_copied_and_linked_and_variables_removed(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/a", "content", mode=0o640)
    sandbox.files.copy("/tmp/a", "/tmp/b")
    sandbox.files.rename("/tmp/b", "/tmp/c")
    sandbox.files.chmod("/tmp/c", 0o600)
    sandbox.files.symlink("/tmp/link", "c")
    shown = sandbox.run("cd /tmp; ls; cat link; stat -c ' %a' a c; export A=1")
    assert shown.stdout == "a\nc\nlink\ncontent 640\n 600\n"
    sandbox.env.unset("A")
    assert sandbox.env.get("A") is None
