"""Output as it comes, by iterator and by callback."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from typing import List

import pytest

from wardian import AsyncSandbox, Limits, Output, Sandbox
from wardian._pieces import Pieces


def test_pieces_come_in_order_and_the_result_has_them_all(sandbox: Sandbox) -> None:
    with sandbox.stream("for i in 1 2 3; do echo $i; done; echo no >&2; exit 4") as stream:
        pieces = list(stream)
    assert "".join(piece.data for piece in pieces if piece.stream == "stdout") == "1\n2\n3\n"
    assert "".join(piece.data for piece in pieces if piece.stream == "stderr") == "no\n"
    result = stream.result
    assert (result.exit_code, result.stdout, result.stderr) == (4, "1\n2\n3\n", "no\n")


def test_pieces_come_before_the_end(sandbox: Sandbox) -> None:
    with sandbox.stream("echo ready; until [ -e /tmp/go ]; do sleep 0.01; done; echo gone") as stream:
        assert next(stream).data == "ready\n"
        with sandbox.sibling() as other:
            assert other.run("echo beside").stdout == "beside\n"
        sandbox.files.write("/tmp/go", "")
        assert next(stream).data == "gone\n"
        assert stream.result.ok


def test_leaving_a_stream_ends_its_command(sandbox: Sandbox) -> None:
    with sandbox.stream("while :; do echo more; done") as stream:
        assert next(stream).data.startswith("more")
    assert stream.result.cancelled
    assert sandbox.run("echo free").stdout == "free\n"


def test_dropping_a_stream_ends_its_command(sandbox: Sandbox) -> None:
    stream = sandbox.stream("echo begun; while :; do :; done")
    next(stream)
    del stream
    assert sandbox.run("echo free").stdout == "free\n"


def test_callbacks_hear_each_stream(sandbox: Sandbox) -> None:
    out: List[str] = []
    err: List[str] = []
    result = sandbox.run("echo a; echo b >&2", on_stdout=out.append, on_stderr=err.append)
    assert ("".join(out), "".join(err)) == ("a\n", "b\n") and result.ok
    assert sandbox.run("echo a; echo b >&2", on_stdout=out.append).stderr == "b\n"


def test_a_callback_that_raises_ends_the_command(sandbox: Sandbox) -> None:
    def listener(text: str) -> None:
        raise KeyError(text)

    with pytest.raises(KeyError, match="begun"):
        sandbox.run("echo begun; while :; do :; done", on_stdout=listener)
    assert sandbox.run("echo free").stdout == "free\n"


def test_characters_arrive_whole(sandbox: Sandbox) -> None:
    script = r"for b in 303 274 360 237 214 261; do printf \\$b; done"
    with sandbox.stream(script) as stream:
        assert "".join(piece.data for piece in stream) == "ü🌱"


TURNS = "for i in 1 2 3; do echo out$i; echo err$i >&2; done"
TURNS_SAID = "out1\nerr1\nout2\nerr2\nout3\nerr3\n"


def test_both_streams_come_in_the_order_of_their_writes(sandbox: Sandbox) -> None:
    for _ in range(5):
        with sandbox.stream(TURNS) as stream:
            pieces = list(stream)
        assert "".join(piece.data for piece in pieces) == TURNS_SAID
        assert [piece.stream for piece in pieces] == ["stdout", "stderr"] * 3
        heard: List[str] = []
        result = sandbox.run(TURNS, on_stdout=heard.append, on_stderr=heard.append)
        assert "".join(heard) == TURNS_SAID == result.output == stream.result.output == sandbox.run(TURNS).output


def test_async_streams_come_in_the_order_of_their_writes() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            async with sandbox.stream(TURNS) as stream:
                pieces = [piece async for piece in stream]
            assert "".join(piece.data for piece in pieces) == TURNS_SAID
            assert (await stream.result()).output == TURNS_SAID
            script = "echo ready; until [ -e /tmp/go ]; do sleep 0.01; done; echo gone >&2"
            async with sandbox.stream(script) as stream:
                assert (await stream.__anext__()).data == "ready\n"
                await sandbox.files.write("/tmp/go", "")
                assert [piece.data async for piece in stream] == ["gone\n"]

    asyncio.run(main())


def test_the_place_of_a_cut_is_marked() -> None:
    with Sandbox(limits=Limits(stdout_bytes=6)) as sandbox:
        result = sandbox.run("echo abc; echo one >&2; echo def; echo two >&2")
        mark = "[wardian: stdout is longer than its limit and was cut here]"
        assert result.output == f"abc\none\nde\n{mark}\ntwo\n"
        with sandbox.stream("echo abc; echo one >&2; echo def; echo two >&2") as stream:
            assert stream.result.output == result.output


def test_pieces_that_wait_take_little_more_room_than_their_bytes() -> None:
    pieces = Pieces()
    tracemalloc.start()
    for number in range(200_000):
        pieces.put(("stdout", "stderr")[number % 2], b"x")
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 200_000 * 16
    for number in range(200_000):
        assert pieces.take() == Output(("stdout", "stderr")[number % 2], b"x")
    assert pieces.take() is None and not pieces


def test_a_slow_listener_gets_single_bytes_by_turns_in_order(sandbox: Sandbox) -> None:
    script = """awk 'BEGIN { for (i = 0; i < 2000; i++) { printf "o"; fflush();
                printf "e" > "/dev/stderr"; fflush("/dev/stderr") } }'"""
    with sandbox.stream(script) as stream:
        first = next(stream)
        time.sleep(0.2)
        assert first.data + "".join(piece.data for piece in stream) == "oe" * 2000
