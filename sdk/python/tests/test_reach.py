"""What a sandbox reaches of the machine, and what is told of its files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from wardian import AsyncSandbox, HostMount, InvalidRequestError, Limits, Sandbox, SandboxError, ServerDiedError


def test_directories_of_this_machine_are_mounted(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    mounts = [HostMount(tmp_path, "/ro"), HostMount(tmp_path / "link", "/rw", "rw")]
    with Sandbox(host_mounts=mounts) as sandbox:
        assert sandbox.files.read_text("/ro/f") == "old"
        sandbox.files.write("/rw/new", "mine")
        assert (tmp_path / "real" / "new").read_text() == "mine"
        with pytest.raises(SandboxError) as refused:
            sandbox.files.write("/ro/f", "new")
        assert refused.value.errno == "EROFS"
    with pytest.raises(InvalidRequestError, match="mode must be"):
        Sandbox(host_mounts=[HostMount(tmp_path, "/m", "wo")])
    with pytest.raises(ServerDiedError, match="cannot allow mounts below"):
        Sandbox(host_mounts=[HostMount(tmp_path, "/m"), HostMount(tmp_path / "f" / "x", "/n")])


def test_changes_in_an_overlay_are_applied(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old\n")
    with Sandbox(host_mounts=[HostMount(tmp_path, "/m", "overlay")]) as sandbox:
        sandbox.run("echo new > /m/f; echo x > /m/g")
        assert [(one.path, one.change, one.mode) for one in sandbox.diff("/m")] == [("f", "M", None), ("g", "A", 0o644)]
        assert "-old\n+new\n" in sandbox.patch("/m")
        assert len(sandbox.apply("/m", dry_run=True)) == 2
        assert (tmp_path / "f").read_text() == "old\n"
        sandbox.apply("/m")
        assert (tmp_path / "f").read_text() == "new\n"
        assert sandbox.diff("/m") == []


def test_all_output_is_kept_in_a_file() -> None:
    with Sandbox(limits=Limits(stdout_bytes=3)) as sandbox:
        result = sandbox.run("seq 5", output_file="/tmp/all")
        assert (result.stdout, result.truncated.stdout) == ("1\n2", True)
        assert result.output_file is not None and result.output_file.error is None
        assert sandbox.files.read_text(result.output_file.path) == "1\n2\n3\n4\n5\n"
        assert sandbox.run("true").output_file is None


def test_changes_of_files_are_told(sandbox: Sandbox) -> None:
    sandbox.files.mkdir("/tmp/w")
    with sandbox.files.watch("/tmp/w", recursive=True) as events:
        sandbox.files.write("/tmp/w/d/f", "x")
        found = set()
        for event in events:
            found.add((event.change, event.path, event.type))
            if ("create", "d/f", "file") in found:
                break
        assert ("create", "d", "dir") in found
    with sandbox.files.watch("/tmp/w") as events:
        sandbox.files.remove("/tmp/w")
        assert {event.change for event in events} <= {"remove"}, "it ends with the directory"
    with pytest.raises(SandboxError) as refused:
        sandbox.files.watch("/no/such")
    assert refused.value.errno == "ENOENT"


def test_the_same_for_asyncio(tmp_path: Path) -> None:
    async def use() -> None:
        async with AsyncSandbox(host_mounts=[HostMount(tmp_path, "/m", "overlay")]) as sandbox:
            async with await sandbox.files.watch("/m") as events:
                result = await sandbox.run("echo new > /m/f; echo out", output_file="/tmp/all")
                assert result.output_file is not None and result.output_file.bytes == 4
                async for event in events:
                    if (event.change, event.path) == ("create", "f"):
                        break
            assert [one.path for one in await sandbox.diff("/m")] == ["f"]
            assert (await sandbox.patch("/m")).startswith("diff --git a/f b/f\n")
            assert len(await sandbox.apply("/m")) == 1
        assert (tmp_path / "f").read_text() == "new\n"

    asyncio.run(use())
