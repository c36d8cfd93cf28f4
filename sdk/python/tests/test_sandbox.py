"""Every call of a sandbox, against the real server."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Callable, Iterator, List, Tuple

import pytest

from wardian import (
    CommandError,
    CommandTimeoutError,
    Directory,
    FileEntry,
    InvalidRequestError,
    Limits,
    Mount,
    RequestTooLargeError,
    Sandbox,
    SandboxClosedError,
    SandboxError,
    SandboxInUseError,
    Symlink,
    read_directory,
)


def test_a_command_has_output_and_an_exit_code(sandbox: Sandbox) -> None:
    result = sandbox.run("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert not result.ok and not result.truncated and result.error_class is None and result.limit is None
    assert result.execution_time_ms >= 0


def test_commands_run_is_run(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("cat", stdin="in").stdout == "in"


def test_the_shell_lives_from_run_to_run(sandbox: Sandbox) -> None:
    sandbox.run("x=1; cd /tmp; f() { echo f; }")
    assert sandbox.run("echo $x; pwd; f").stdout == "1\n/tmp\nf\n"


def test_any_byte_goes_in_and_comes_out(sandbox: Sandbox) -> None:
    every = bytes(range(256)) * 100
    assert sandbox.run("cat", stdin=every).stdout_bytes == every
    assert sandbox.run(r"printf 'a\377b'").stdout == "a\ufffdb"
    sandbox.files.write("/tmp/every", every)
    assert sandbox.files.read("/tmp/every") == every


def test_a_timeout_is_a_result(sandbox: Sandbox) -> None:
    result = sandbox.run("while :; do :; done", timeout=0.2)
    assert result.timed_out and result.exit_code == 124 and "timed out after 200 ms" in result.stderr
    assert sandbox.run("echo goes on").stdout == "goes on\n"


def test_check_raises_with_the_result(sandbox: Sandbox) -> None:
    assert sandbox.run("true", check=True).ok
    with pytest.raises(CommandError, match="exited with 7: it broke") as failed:
        sandbox.run("echo it broke >&2; exit 7", check=True)
    assert failed.value.result.exit_code == 7
    with pytest.raises(CommandTimeoutError):
        sandbox.run("sleep 60", timeout=0.05, check=True)


def test_a_timeout_that_is_none_is_refused(sandbox: Sandbox) -> None:
    for timeout in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="positive number of seconds"):
            sandbox.run("true", timeout=timeout)


def test_a_command_may_take_as_long_as_it_takes() -> None:
    with Sandbox(timeout=0.1) as sandbox:
        assert sandbox.run("sleep 0.3; echo done", timeout=math.inf).stdout == "done\n"


def test_output_past_a_limit_is_said_to_be_cut() -> None:
    with Sandbox(limits=Limits(stdout_bytes=10)) as sandbox:
        result = sandbox.run("echo 0123456789abcdef")
    assert result.stdout == "0123456789" and result.truncated.stdout and not result.truncated.stderr
    assert result.limit == "stdoutBytes" and result.exit_code == 0


def test_files(sandbox: Sandbox) -> None:
    files = sandbox.files
    files.mkdir("/tmp/a/b")
    files.write("/tmp/a/text", "grün\n")
    assert files.read("/tmp/a/text") == "grün\n".encode()
    assert files.read_text("/tmp/a/text") == "grün\n"
    assert files.list("/tmp/a") == [FileEntry("b", "dir", files.stat("/tmp/a/b").size), FileEntry("text", "file", 6)]
    sandbox.run("chmod 640 /tmp/a/text")
    stat = files.stat("/tmp/a/text")
    assert (stat.name, stat.type, stat.size, stat.mode & 0o777) == ("text", "file", 6, 0o640)
    assert stat.mtime_ms > 1_600_000_000_000
    files.rm("/tmp/a")
    assert sandbox.run("ls /tmp").stdout == ""


def test_a_file_that_is_not_there(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="ENOENT") as missing:
        sandbox.files.read("/nowhere")
    assert missing.value.errno == "ENOENT"


def test_env(sandbox: Sandbox) -> None:
    sandbox.env["GREETING"] = "hello"
    assert sandbox.run("env | grep ^GREETING").stdout == "GREETING=hello\n"
    sandbox.run("export OTHER=1")
    assert sandbox.env["OTHER"] == "1" and "OTHER" in sandbox.env
    assert (
        sandbox.env.get("NOT_SET") is None and sandbox.env.get("NOT_SET", "x") == "x" and "NOT_SET" not in sandbox.env
    )
    with pytest.raises(KeyError):
        sandbox.env["NOT_SET"]


def test_options_reach_the_sandbox() -> None:
    mounts = [Mount("/data", {"a.txt": "A", "deep/b.bin": b"\xff"})]
    with Sandbox(env={"X": "from outside"}, mounts=mounts, tool_allowlist=["cat"], timeout=0.2, nice=5) as sandbox:
        assert sandbox.run("echo $X; cat /data/a.txt", timeout=60).stdout == "from outside\nA"
        assert sandbox.files.read("/data/deep/b.bin") == b"\xff"
        denied = sandbox.run("ls /", timeout=60)
        assert denied.exit_code == 126 and denied.error_class == "CAPABILITY_DENIED"
        assert sandbox.run("while :; do :; done").timed_out


def test_a_sandbox_starts_with_large_mounts() -> None:
    large = bytes(range(256)) * (80 << 10)
    with Sandbox(mounts=[Mount("/data", {"large": large})]) as sandbox:
        assert sandbox.run("wc -c < /data/large").stdout == f"{len(large)}\n"


def test_mounts_are_read_only_unless_they_are_not(sandbox: Sandbox) -> None:
    sandbox.mount("/ro", {"f": "1"})
    sandbox.mount("/rw", {"f": "1"}, writable=True)
    assert sandbox.run("echo 2 > /ro/f").exit_code != 0
    assert sandbox.run("echo 2 > /rw/f").ok
    assert (sandbox.files.read("/ro/f"), sandbox.files.read("/rw/f")) == (b"1", b"2\n")


def test_a_directory_of_the_hosts_as_files(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.c").write_text("int main;\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("secret")
    (tmp_path / "passwd").symlink_to("/etc/passwd")
    (tmp_path / "run").write_text("echo ran")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "empty").mkdir(mode=0o700)
    files = read_directory(tmp_path, keep=lambda path: path != ".git")
    assert files == {
        "empty": Directory(0o700),
        "src": Directory((tmp_path / "src").stat().st_mode & 0o777),
        "passwd": Symlink("/etc/passwd"),
        "run": b"echo ran",
        "src/main.c": b"int main;\n",
    }
    sandbox.mount("/work", files, writable=True)
    assert sandbox.run("cd /work && find . -type f | sort").stdout == "./run\n./src/main.c\n"
    assert sandbox.run("cd /work; ./run; stat -c %a empty; readlink passwd").stdout == "ran\n700\n/etc/passwd\n"
    assert repr(files["run"]) == "File(b'echo ran', mode=0o755)"


def test_writing_creates_parents_and_sets_modes(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/a/b/run", "echo hi", mode=0o755)
    assert sandbox.files.stat("/tmp/a/b/run").mode == 0o755
    sandbox.files.write("/tmp/a/b/run", b"echo again")
    assert sandbox.run("/tmp/a/b/run").stdout == "again\n"
    assert sandbox.files.stat("/tmp/a/b/run").mode == 0o755, "it stays as it was"


def test_a_relative_path_starts_where_the_shell_is(sandbox: Sandbox) -> None:
    sandbox.run("mkdir -p /tmp/here; cd /tmp/here")
    sandbox.files.write("f", "x")
    assert sandbox.run("cat /tmp/here/f; cd /").stdout == "x"
    assert sandbox.files.exists("tmp/here/f")
    with sandbox.fork() as fork:
        assert fork.files.exists("tmp/here/f")
    assert sandbox.run("pwd; echo $X", cwd="/tmp", env={"X": "for this one"}).stdout == "/tmp\nfor this one\n"
    assert sandbox.run("pwd; echo $X").stdout == "/\n\n"


def test_exists_remove_and_everything_below(sandbox: Sandbox) -> None:
    sandbox.run("cd /tmp; mkdir -p d/e; echo 1 > d/f; ln -s nowhere d/l")
    assert [(entry.name, entry.type) for entry in sandbox.files.list("/tmp", recursive=True)] == [
        ("d", "dir"),
        ("d/e", "dir"),
        ("d/f", "file"),
        ("d/l", "symlink"),
    ]
    assert sandbox.files.exists("/tmp/d/l") and not sandbox.files.exists("/tmp/d/f/x")
    sandbox.files.remove("/tmp/d")
    assert not sandbox.files.exists("/tmp/d") and sandbox.files.list("/tmp") == []


def test_files_longer_than_a_request_or_an_answer() -> None:
    size = 130 << 20
    piece = bytes(range(256)) * (4 << 10)

    def pieces() -> Iterator[bytes]:
        for _ in range(size // len(piece)):
            yield piece

    with Sandbox(fs_limit_bytes=256 << 20) as sandbox:
        sandbox.files.write("/tmp/big", pieces(), mode=0o600)
        assert sandbox.files.stat("/tmp/big").size == size
        total, longest = 0, 0
        for part in sandbox.files.read_parts("/tmp/big"):
            assert part == (piece * (len(part) // len(piece) + 2))[total % len(piece) :][: len(part)]
            total, longest = total + len(part), max(longest, len(part))
        assert total == size and longest <= 4 << 20
        assert len(sandbox.files.read("/tmp/big")) == size
        # What does not fit is refused by name, and the limit holds for parts as for the whole.
        with pytest.raises(SandboxError) as refused:
            sandbox.files.write("/tmp/more", pieces())
        assert refused.value.errno == "ENOSPC"


def test_a_file_of_the_hosts_is_sent_part_by_part(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789" * 1_000_000)
    with open(tmp_path / "f", "rb") as file:
        sandbox.files.write("f", file)
    assert sandbox.files.read("f") == (tmp_path / "f").read_bytes()
    sandbox.files.write("f", [])
    assert sandbox.files.read("f") == b""
    with open(tmp_path / "f", encoding="utf-8") as text, pytest.raises(TypeError):
        sandbox.files.write("f", text)  # type: ignore[arg-type]


def test_all_variables(sandbox: Sandbox) -> None:
    sandbox.run("export A=1 B='two\nlines'; C=private; false")
    everything = dict(sandbox.env)
    assert (everything["A"], everything["B"], everything["PATH"]) == (
        "1",
        "two\nlines",
        "/bin:/usr/bin:/home/user/.local/bin",
    )
    assert "C" not in everything and sandbox.env["C"] == "private"
    assert everything == sandbox.env.all() and len(sandbox.env) == len(everything)
    assert sandbox.run("echo $?").stdout == "1\n", "the session has not noticed"


def test_the_first_sandbox_is_not_destroyed_under_its_forks() -> None:
    sandbox = Sandbox()
    try:
        fork, sibling = sandbox.fork(), sandbox.sibling()
        with pytest.raises(SandboxInUseError, match="2 forks and siblings are still alive"):
            sandbox.destroy()
        assert fork.run("echo alive").ok and sandbox.run("true").ok
        fork.destroy()
        with pytest.raises(SandboxInUseError, match="1 fork or sibling is still alive"):
            sandbox.destroy()
        sibling.destroy()
        sandbox.destroy()
        with pytest.raises(SandboxClosedError):
            sandbox.run("true")
    finally:
        sandbox.close()


def test_options_are_honoured_or_refused_by_name() -> None:
    with Sandbox(cwd="/tmp", writable_paths=["/tmp"], on_kill="rollback") as sandbox:
        assert sandbox.run("pwd; touch /home/user/f 2>/dev/null || echo no").stdout == "/tmp\nno\n"
        sandbox.run("echo new > f; while :; do :; done", timeout=0.3)
        assert not sandbox.files.exists("f")
    refused: List[Tuple[Callable[[], Sandbox], str]] = [
        (lambda: Sandbox(tool_allowlist=["gerp"]), r"did you mean grep\?"),
        (lambda: Sandbox(limits=Limits(memory_bytes=1000)), "memoryBytes is 1000, which is too little"),
        (lambda: Sandbox(on_kill="undo"), "onKill must be"),
    ]
    for wrong, why in refused:
        with pytest.raises(InvalidRequestError, match=why):
            wrong()
    with pytest.raises(TypeError, match=r"limits must be a Limits, as in Limits\(memory_bytes=…\)"):
        Sandbox(limits={"memoryBytes": 1 << 30})  # type: ignore[arg-type]


def test_forks_do_not_see_each_other(sandbox: Sandbox) -> None:
    sandbox.run("x=before; echo 1 > /tmp/f")
    with sandbox.fork() as fork:
        assert fork.run("echo $x; cat /tmp/f").stdout == "before\n1\n"
        fork.run("x=after; echo 2 > /tmp/f")
        assert sandbox.run("echo $x; cat /tmp/f").stdout == "before\n1\n"
    with pytest.raises(SandboxClosedError):
        fork.run("true")
    fork.destroy()


def test_many_forks(sandbox: Sandbox) -> None:
    forks = sandbox.fork(5)
    for number, fork in enumerate(forks):
        fork.run(f"n={number}")
    assert [fork.run("echo $n").stdout for fork in forks] == [f"{n}\n" for n in range(5)]
    assert len({fork.id for fork in forks}) == 5
    for fork in forks:
        fork.destroy()
    assert [fork.id is not None for fork in sandbox.fork(1)] == [True]
    with pytest.raises(ValueError):
        sandbox.fork(0)


def test_siblings_are_fresh(sandbox: Sandbox) -> None:
    sandbox.run("x=1")
    sibling = sandbox.sibling("second")
    assert sibling.run("echo [$x]").stdout == "[]\n"
    assert [info.label for info in sandbox.siblings() if info.id == sibling.id] == ["second"]
    sibling.destroy()
    assert all(info.id != sibling.id for info in sandbox.siblings())


def test_a_snapshot_can_be_come_back_to(sandbox: Sandbox) -> None:
    sandbox.run("x=1; echo kept > /tmp/f")
    snapshot = sandbox.snapshot()
    for _ in range(2):
        sandbox.run("x=2; rm /tmp/f")
        sandbox.restore(snapshot)
        assert sandbox.run("echo $x; cat /tmp/f").stdout == "1\nkept\n"
    with pytest.raises((InvalidRequestError, SandboxError)):
        sandbox.restore("no such snapshot")


def test_state_moves_to_another_server(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.run("x=moved; cd /tmp; echo file > f")
    state = sandbox.export_state()
    with Sandbox(state_dir=tmp_path) as other:
        other.import_state(state)
        assert other.run("echo $x; pwd; cat f").stdout == "moved\n/tmp\nfile\n"
        with pytest.raises((InvalidRequestError, SandboxError)):
            other.import_state(state[: len(state) // 2])
        assert other.run("echo $x").stdout == "moved\n"
        other.export_state(file="kept")
        assert [path.name for path in tmp_path.iterdir()] == ["kept"]
        other.run("x=changed")
        other.import_state(file="kept")
        assert other.run("echo $x").stdout == "moved\n"


def test_history(sandbox: Sandbox) -> None:
    sandbox.run("echo one")
    sandbox.run("echo two")
    assert [entry.command for entry in sandbox.history()] == ["echo one", "echo two"]
    sandbox.clear_history()
    assert sandbox.history() == []


def test_cancel_ends_the_command_that_runs(sandbox: Sandbox) -> None:
    assert sandbox.cancel() is False
    begun = threading.Event()
    results = []

    def work() -> None:
        results.append(sandbox.run("echo begun; while :; do :; done", on_stdout=lambda text: begun.set()))

    worker = threading.Thread(target=work)
    worker.start()
    assert begun.wait(60)
    assert sandbox.cancel() is True
    worker.join()
    assert results[0].cancelled and results[0].exit_code == 125


def test_a_suspended_sandbox_goes_on_when_resumed(sandbox: Sandbox) -> None:
    sandbox.suspend()
    sandbox.resume()
    assert sandbox.run("echo on").stdout == "on\n"


def test_threads_share_a_sandbox(sandbox: Sandbox) -> None:
    wrong = []

    def work(number: int) -> None:
        for turn in range(10):
            text = f"{number} {turn}"
            sandbox.files.write(f"/tmp/{number}", text)
            if sandbox.run(f"cat /tmp/{number}").stdout != text or sandbox.files.read_text(f"/tmp/{number}") != text:
                wrong.append(text)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_what_does_not_fit_into_a_line_is_not_sent() -> None:
    with Sandbox(limits=Limits(rpc_bytes=4096)) as sandbox:
        with pytest.raises(RequestTooLargeError, match="at most 4096"):
            sandbox.files.write("/tmp/big", b"x" * 4096)
        sandbox.files.write("/tmp/small", b"x" * 2048)
        assert sandbox.files.stat("/tmp/small").size == 2048


def test_large_files_travel(sandbox: Sandbox) -> None:
    large = bytes(range(256)) * (64 << 10)
    sandbox.files.write("/tmp/large", large)
    assert sandbox.run("wc -c < /tmp/large").stdout.strip() == str(len(large))
    assert sandbox.files.read("/tmp/large") == large


def test_text_that_has_no_utf_8_is_refused_here(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError):
        sandbox.run("echo \udc80")
    assert sandbox.run("echo still here").ok


def test_an_option_the_server_refuses_is_an_exception() -> None:
    with pytest.raises(InvalidRequestError) as refused:
        Sandbox(nice=100)
    assert refused.value.code == -32602
