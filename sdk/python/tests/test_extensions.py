"""Python functions as commands of the sandbox."""

from __future__ import annotations

import asyncio
import sys
from typing import Dict, Optional

import pytest

from wardian import Extension, ExtensionResult, Sandbox


def weather(city: str, days: str = "1") -> str:
    """Tells the weather.

    More about it.
    """
    return f"{city}: rain for {days} days\n"


def shout(*words: str, stdin: str) -> str:
    return (" ".join(words) + stdin).upper()


def place(*, env: Dict[str, str], cwd: str) -> str:
    return f"{env['HERE']} {cwd}\n"


def broken() -> None:
    raise ValueError("it broke")


def leaving(code: Optional[str] = None) -> None:
    sys.exit(int(code) if code else "nothing given")


def detailed() -> ExtensionResult:
    return ExtensionResult("out\n", "err\n", 5)


async def slow() -> str:
    await asyncio.sleep(0.01)
    return "done\n"


def number() -> int:
    return 42


def test_a_function_is_a_command_like_any_other() -> None:
    with Sandbox(extensions=[weather, shout]) as sandbox:
        assert sandbox.run("weather Bergen 3; weather Oslo | tr a-z A-Z").stdout == (
            "Bergen: rain for 3 days\nOSLO: RAIN FOR 1 DAYS\n"
        )
        assert sandbox.run("type -p weather; echo Rome | xargs weather").stdout == (
            "/usr/bin/weather\nRome: rain for 1 days\n"
        )
        assert sandbox.run("echo ' and in' | shout args 'of two'").stdout == "ARGS OF TWO AND IN\n"
        with sandbox.fork() as fork:
            assert fork.run("weather Fez").stdout == "Fez: rain for 1 days\n"


def test_it_sees_where_it_was_called() -> None:
    with Sandbox(extensions=[place]) as sandbox:
        assert sandbox.run("cd /tmp; HERE=somewhere place").stdout == "somewhere /tmp\n"


def test_help_comes_from_the_function() -> None:
    with Sandbox(extensions=[weather, Extension(shout, name="yell", description="Yells", category="noise")]) as sandbox:
        shown = sandbox.run("weather --help").stdout
        assert "Tells the weather." in shown and "weather CITY [DAYS]" in shown and "More about" not in shown
        assert "Yells" in sandbox.run("extensions list").stdout
        assert sandbox.run("yell a < /dev/null").stdout == "A"


@pytest.mark.parametrize(
    "command, code, out, err",
    [
        ("broken", 1, "", "broken: ValueError: it broke\n"),
        ("leaving 7", 7, "", ""),
        ("leaving", 1, "", "leaving: nothing given\n"),
        ("detailed", 5, "out\n", "err\n"),
        ("slow", 0, "done\n", ""),
        ("number", 1, "", "number: TypeError: returned int, not str, None or ExtensionResult\n"),
    ],
)
def test_what_a_call_comes_to(command: str, code: int, out: str, err: str) -> None:
    with Sandbox(extensions=[broken, leaving, detailed, slow, number]) as sandbox:
        result = sandbox.run(command)
    assert (result.exit_code, result.stdout, result.stderr) == (code, out, err)


def test_a_wrong_command_line_shows_how_it_is_used() -> None:
    with Sandbox(extensions=[weather]) as sandbox:
        result = sandbox.run("weather a b c")
    assert result.exit_code == 2 and "usage: weather CITY [DAYS]" in result.stderr


def test_an_answer_that_cannot_be_sent_is_a_failure_of_that_command() -> None:
    def surrogate() -> str:
        return "\udc80"

    def ill_typed() -> ExtensionResult:
        return ExtensionResult(stdout=b"bytes")  # type: ignore[arg-type]

    with Sandbox(extensions=[surrogate, ill_typed]) as sandbox:
        for command in ("surrogate", "ill_typed"):
            assert sandbox.run(command, timeout=20).exit_code not in (0, 124)
        assert sandbox.run("echo on").ok


def test_an_extension_may_use_the_sandbox() -> None:
    def peek(path: str) -> str:
        return sandbox.files.read_text(path)

    with Sandbox(extensions=[peek]) as sandbox:
        assert sandbox.run("echo inside > /tmp/f; peek /tmp/f").stdout == "inside\n"


def test_an_extension_ends_with_its_command() -> None:
    def forever() -> None:
        asyncio.run(asyncio.sleep(3600))

    with Sandbox(extensions=[forever]) as sandbox:
        assert sandbox.run("forever", timeout=0.2).timed_out
        assert sandbox.run("echo on").stdout == "on\n"


def test_parameters_that_nothing_could_fill_are_refused() -> None:
    def positional(stdin: str) -> None: ...

    def unknown(*, colour: str) -> None: ...

    with pytest.raises(ValueError, match="behind a '\\*'"):
        Sandbox(extensions=[positional])
    with pytest.raises(ValueError, match="'colour'"):
        Sandbox(extensions=[unknown])
    with pytest.raises(ValueError, match="two extensions"):
        Sandbox(extensions=[weather, weather])
