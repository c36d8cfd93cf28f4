"""AsyncSandbox: the same calls, awaited."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any, Coroutine, List

import pytest

from wardian import (
    AsyncSandbox,
    CommandError,
    InvalidRequestError,
    Persistence,
    Sandbox,
    SandboxClosedError,
    SandboxError,
    SandboxInUseError,
    ServerDiedError,
)
from wardian._async import AsyncCommands, AsyncFiles
from wardian._store_async import AsyncImages, AsyncSaved
from wardian._store_sync import Images, Saved
from wardian._sync import Commands, Files


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


@pytest.mark.parametrize(
    "here, there",
    [
        (Sandbox, AsyncSandbox),
        (Files, AsyncFiles),
        (Commands, AsyncCommands),
        (Saved, AsyncSaved),
        (Images, AsyncImages),
    ],
)
def test_it_mirrors_the_other(here: type, there: type) -> None:
    def calls(kind: type) -> "dict[str, object]":
        public = {name: value for name, value in vars(kind).items() if not name.startswith("_") and callable(value)}
        return {name: list(inspect.signature(value).parameters) for name, value in public.items()}

    mirrored = calls(there)
    mirrored.pop("start", None)
    assert mirrored == calls(here)
    assert list(inspect.signature(here).parameters) == list(inspect.signature(there).parameters)


def test_everything_once() -> None:
    async def work() -> None:
        async with AsyncSandbox(env={"X": "1"}) as sandbox:
            assert (await sandbox.run("echo $X; cat", stdin="in")).stdout == "1\nin"
            assert (await sandbox.commands.run("true")).ok
            await sandbox.files.mkdir("/tmp/d")
            await sandbox.files.write("/tmp/d/f", "text")
            assert await sandbox.files.read("/tmp/d/f") == b"text"
            assert await sandbox.files.read_text("/tmp/d/f") == "text"
            assert [entry.name for entry in await sandbox.files.list("/tmp/d")] == ["f"]
            assert (await sandbox.files.stat("/tmp/d/f")).size == 4
            await sandbox.files.rm("/tmp/d")
            with pytest.raises(SandboxError):
                await sandbox.files.stat("/tmp/d")
            await sandbox.env.set("Y", "2")
            assert await sandbox.env.get("Y") == "2" and await sandbox.env.get("Z", "none") == "none"
            await sandbox.mount("/m", {"f": "mounted"})
            assert (await sandbox.run("cat /m/f")).stdout == "mounted"
            snapshot = await sandbox.snapshot()
            await sandbox.run("Y=3")
            await sandbox.restore(snapshot)
            assert await sandbox.env.get("Y") == "2"
            state = await sandbox.export_state()
            await sandbox.import_state(state)
            await sandbox.suspend()
            await sandbox.resume()
            assert await sandbox.cancel() is False
            assert len(await sandbox.history()) > 0
            await sandbox.clear_history()
            assert await sandbox.history() == []
            with pytest.raises(CommandError):
                await sandbox.run("false", check=True)

    run(work())


def test_forks_run_side_by_side() -> None:
    async def work() -> None:
        async with AsyncSandbox() as sandbox:
            await sandbox.run("x=shared")
            forks = await sandbox.fork(4)
            results = await asyncio.gather(*(fork.run(f"echo $x {n}") for n, fork in enumerate(forks)))
            assert [result.stdout for result in results] == [f"shared {n}\n" for n in range(4)]
            async with await sandbox.fork() as one:
                assert (await one.run("echo $x")).stdout == "shared\n"
            with pytest.raises(SandboxClosedError):
                await one.run("true")
            sibling = await sandbox.sibling("other")
            assert [info.label for info in await sandbox.siblings() if info.id == sibling.id] == ["other"]
            await sibling.destroy()

    run(work())


def test_a_cancelled_task_ends_its_command() -> None:
    async def work() -> None:
        async with AsyncSandbox() as sandbox:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(sandbox.run("while :; do :; done"), 0.2)
            assert (await sandbox.run("echo free")).stdout == "free\n"

    run(work())


def test_giving_up_a_command_that_waits_leaves_the_one_that_runs_alone() -> None:
    async def work() -> None:
        async with AsyncSandbox() as sandbox:
            async with sandbox.stream(
                "echo begun; until [ -e /tmp/go ]; do sleep 0.01; done; echo finished"
            ) as running:
                assert (await running.__anext__()).data == "begun\n"
                waiting = asyncio.ensure_future(sandbox.run("echo never > /tmp/never"))
                await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
                await sandbox.files.write("/tmp/go", "")
                assert (await running.result()).stdout == "begun\nfinished\n"
            assert (await sandbox.run("test -e /tmp/never")).exit_code == 1

    run(work())


def test_streams() -> None:
    async def work() -> None:
        async with AsyncSandbox() as sandbox:
            async with sandbox.stream("echo a; echo b >&2; exit 2") as stream:
                pieces = [piece async for piece in stream]
            assert sorted((piece.stream, piece.data) for piece in pieces) == [("stderr", "b\n"), ("stdout", "a\n")]
            assert (await stream.result()).exit_code == 2
            async with sandbox.stream("while :; do echo more; done") as stream:
                assert (await stream.__anext__()).data.startswith("more")
            assert (await stream.result()).cancelled

    run(work())


def test_callbacks_may_be_async() -> None:
    heard: List[str] = []

    async def listener(text: str) -> None:
        await asyncio.sleep(0)
        heard.append(text)

    async def work() -> None:
        async with AsyncSandbox() as sandbox:
            result = await sandbox.run("echo out; echo err >&2", on_stdout=listener, on_stderr=heard.append)
            assert sorted(heard) == ["err\n", "out\n"] and result.stdout == "out\n"

    run(work())


def test_async_extensions_run_in_the_loop() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()

        async def where() -> str:
            return "here" if asyncio.get_running_loop() is loop else "elsewhere"

        async def leave() -> None:
            raise SystemExit(9)

        async with AsyncSandbox(extensions=[where, leave]) as sandbox:
            assert (await sandbox.run("where; leave; echo $?")).stdout == "here9\n"

    run(work())


def test_one_that_was_not_started_says_so() -> None:
    async def work() -> None:
        with pytest.raises(SandboxClosedError, match="async with"):
            await AsyncSandbox().run("true")

    run(work())


def test_killed_means_an_exception() -> None:
    async def work() -> None:
        sandbox = await AsyncSandbox().start()
        running = asyncio.ensure_future(sandbox.run("while :; do :; done"))
        await sandbox.files.list("/")
        await sandbox.kill()
        outcome = (await asyncio.gather(running, return_exceptions=True))[0]
        assert isinstance(outcome, (SandboxClosedError, ServerDiedError)) or getattr(outcome, "cancelled", False)
        with pytest.raises(SandboxClosedError):
            await sandbox.run("true")
        await sandbox.close()

    run(work())


def test_files_in_parts_variables_and_the_end() -> None:
    async def main() -> None:
        async with AsyncSandbox(cwd="/tmp") as sandbox:
            await sandbox.files.write("a/b", b"x" * (5 << 20), mode=0o640)
            parts = [len(part) async for part in sandbox.files.read_parts("a/b")]
            assert parts == [4 << 20, 1 << 20]
            assert len(await sandbox.files.read("/tmp/a/b")) == 5 << 20
            assert await sandbox.files.exists("a/b") and not await sandbox.files.exists("a/c")
            assert [entry.name for entry in await sandbox.files.list(recursive=True)] == ["a", "a/b"]
            await sandbox.files.remove("a")
            assert (await sandbox.env.all())["HOME"] == "/home/user"
            assert (await sandbox.run("pwd; echo $X", env={"X": "1"}, cwd="/")).stdout == "/\n1\n"
            fork = await sandbox.fork()
            with pytest.raises(SandboxInUseError):
                await sandbox.destroy()
            await fork.destroy()

    run(main())


def test_saved_sandboxes(tmp_path: Path) -> None:
    async def work() -> None:
        persistence = Persistence("work", autosave=0.01, idle=3600)
        async with AsyncSandbox(store=tmp_path, persistence=persistence) as sandbox:
            await sandbox.run("x=1; echo one > f")
            first = await sandbox.save()
            await sandbox.run("x=2; rm f")
            await sandbox.save()
            assert [(change.path, change.change) for change in await sandbox.saved.diff("work", first)] == [
                ("/home/user/f", "D")
            ]
            assert first in [commit.id for commit in await sandbox.saved.log("work", limit=10)]
            await sandbox.saved.tag("work", "first", first)
            await sandbox.saved.branch("work", "other", "first")
            async with await sandbox.saved.open("other") as other:
                assert (await other.run("echo $x; ls")).stdout == "1\nf\n"
                await other.images.save("image", script="its script")
            assert [image.script for image in await sandbox.images.list()] == ["its script"]
            async with await sandbox.sibling(image="image") as made:
                assert (await made.run("echo $x")).stdout == "1\n"
            await sandbox.images.delete("image")
            await sandbox.saved.delete("other")
            await sandbox.checkout("first")
            assert (await sandbox.run("echo $x")).stdout == "1\n"
            assert [saved.name for saved in await sandbox.saved.list()] == ["default/work"]
        # It is there tomorrow, also for another server.
        async with AsyncSandbox(store=tmp_path) as sandbox:
            async with await sandbox.saved.open("work") as again:
                assert (await again.run("echo $x; cat f")).stdout == "1\none\n"

    run(work())


def test_what_cannot_be_saved_is_refused() -> None:
    async def work() -> None:
        async with AsyncSandbox() as sandbox:
            with pytest.raises(InvalidRequestError, match="no name"):
                await sandbox.save()
            with pytest.raises(InvalidRequestError, match="--store"):
                await sandbox.saved.list()

    run(work())
