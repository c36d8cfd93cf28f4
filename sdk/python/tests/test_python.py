"""Code in a sandbox's own interpreter."""

import asyncio
from typing import List

import pytest

from wardian import AsyncSandbox, CommandError, Sandbox


def test_state_lives_from_call_to_call(sandbox: Sandbox) -> None:
    assert sandbox.python("x = 20\nprint('said')").stdout == "said\n"
    result = sandbox.python("x + 22")
    assert result.ok and result.value is not None and result.value.repr == "42"
    assert sandbox.python("x", context="other").error is not None


def test_an_error_has_its_traceback(sandbox: Sandbox) -> None:
    result = sandbox.python("1 / 0")
    assert not result.ok and result.error is not None
    assert (result.error.type, result.error.message) == ("ZeroDivisionError", "division by zero")
    assert result.error.traceback[-1] == "ZeroDivisionError: division by zero"
    with pytest.raises(CommandError, match="ZeroDivisionError"):
        sandbox.python("1 / 0", check=True)


def test_what_values_show(sandbox: Sandbox) -> None:
    code = (
        "class P:\n  def _repr_png_(self): return b'png'\n  def _repr_json_(self): return {'a': 1}\ndisplay(P())\nP()"
    )
    result = sandbox.python(code)
    assert result.value is not None and (result.value.png, result.value.json) == (b"png", {"a": 1})
    assert [each.png for each in result.displays] == [b"png"]


def test_a_timeout_leaves_what_was_there(sandbox: Sandbox) -> None:
    sandbox.python("x = 1")
    assert sandbox.python("x = 2\nwhile True: pass", timeout=0.3).timed_out
    assert str(sandbox.python("x").value) == "1"


def test_the_same_for_asyncio() -> None:
    async def calls() -> None:
        async with AsyncSandbox() as sandbox:
            await sandbox.python("x = 1")
            assert str((await sandbox.python("x")).value) == "1"

    asyncio.run(calls())


CODE = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('again')\n6 * 7"


def test_output_arrives_while_code_runs(sandbox: Sandbox) -> None:
    heard: List[str] = []
    out: List[str] = []
    result = sandbox.python(CODE, on_stdout=heard.append, on_stderr=heard.append)
    assert "".join(heard) == "out\nerr\nagain\n" == result.output
    assert (result.stdout, result.stderr, str(result.value)) == ("out\nagain\n", "err\n", "42")
    result = sandbox.python("print(1); 1 / 0", on_stdout=out.append)
    assert "".join(out) == "1\n" and result.error is not None and result.error.type == "ZeroDivisionError"


def test_a_listener_that_raises_ends_the_call(sandbox: Sandbox) -> None:
    def listener(text: str) -> None:
        raise LookupError(text)

    sandbox.python("x = 1")
    with pytest.raises(LookupError, match="begun"):
        sandbox.python("x = 2\nprint('begun', flush=True)\nwhile True: pass", on_stdout=listener)
    assert str(sandbox.python("x").value) == "1"


def test_listeners_of_code_may_be_async() -> None:
    async def calls() -> None:
        heard: List[str] = []

        async def listener(text: str) -> None:
            await asyncio.sleep(0)
            heard.append(text)

        async with AsyncSandbox() as sandbox:
            result = await sandbox.python(CODE, on_stdout=listener, on_stderr=heard.append)
        assert "".join(heard) == "out\nerr\nagain\n" and str(result.value) == "42"

    asyncio.run(calls())
