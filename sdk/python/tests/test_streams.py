"""Output as it comes, by iterator and by callback."""

from __future__ import annotations

from typing import List

import pytest

from wardian import Sandbox


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
