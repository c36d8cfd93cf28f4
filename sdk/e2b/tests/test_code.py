"""The code interpreter."""

from __future__ import annotations

import asyncio
from typing import Iterator, List

import pytest
from e2b_code_interpreter import AsyncSandbox, Sandbox
from e2b.exceptions import SandboxException


@pytest.fixture(scope="module")
def sandbox(server: str) -> Iterator[Sandbox]:
    sandbox = Sandbox.create(timeout=600)
    yield sandbox
    sandbox.kill()


def test_variables_stay_and_the_last_expression_is_the_result(sandbox: Sandbox) -> None:
    sandbox.run_code("x = 6")
    execution = sandbox.run_code("print('hi'); x * 7")
    assert execution.text == "42"
    assert "".join(execution.logs.stdout) == "hi\n"
    assert execution.error is None
    assert sandbox.run_code("x").execution_count == execution.execution_count + 1


def test_errors_have_a_name_a_value_and_a_traceback(sandbox: Sandbox) -> None:
    execution = sandbox.run_code("def f():\n    return 1 / 0\nf()")
    assert execution.error is not None
    assert (execution.error.name, execution.error.value) == ("ZeroDivisionError", "division by zero")
    assert "in f" in execution.error.traceback
    assert sandbox.run_code("1 + 1").text == "2"


def test_output_and_results_arrive_as_they_happen(sandbox: Sandbox) -> None:
    out: List[str] = []
    err: List[str] = []
    results: List[str] = []
    sandbox.run_code(
        "import sys\nprint('a')\nprint('b', file=sys.stderr)\ndisplay('shown')\n'value'",
        on_stdout=lambda message: out.append(message.line),
        on_stderr=lambda message: err.append(message.line),
        on_result=lambda result: results.append(result.text),
    )
    assert ("".join(out), "".join(err), results) == ("a\n", "b\n", ["'shown'", "'value'"])


def test_rich_results(sandbox: Sandbox) -> None:
    rich = "class Rich:\n    def _repr_html_(self): return '<b>x</b>'\n    def _repr_json_(self): return {'a': [1]}\nRich()"
    (result,) = sandbox.run_code(rich).results
    assert (result.html, result.json, result.is_main_result) == ("<b>x</b>", {"a": [1]}, True)


def test_contexts_have_variables_and_directories_of_their_own(sandbox: Sandbox) -> None:
    sandbox.commands.run("mkdir -p /tmp/ctx")
    context = sandbox.create_code_context(cwd="/tmp/ctx")
    assert (context.language, context.cwd) == ("python", "/tmp/ctx")
    sandbox.run_code("y = 'mine'", context=context)
    assert sandbox.run_code("import os; (y, os.getcwd())", context=context).text == "('mine', '/tmp/ctx')"
    assert sandbox.run_code("y").error is not None
    assert context.id in {one.id for one in sandbox.list_code_contexts()}
    sandbox.restart_code_context(context)
    assert sandbox.run_code("y", context=context).error is not None
    sandbox.remove_code_context(context)
    with pytest.raises(SandboxException):
        sandbox.run_code("1", context=context)


def test_variables_of_the_environment_are_for_one_execution(sandbox: Sandbox) -> None:
    assert sandbox.run_code("import os; os.environ.get('E')", envs={"E": 'é "x"'}).text == "'é \"x\"'"
    assert sandbox.run_code("os.environ.get('E', 'none')").text == "'none'"


def test_bash_runs_in_the_shell_and_other_languages_are_refused(sandbox: Sandbox) -> None:
    sandbox.run_code("cd /tmp; v=1", language="bash")
    execution = sandbox.run_code("pwd; echo $v", language="bash")
    assert "".join(execution.logs.stdout) == "/tmp\n1\n"
    with pytest.raises(Exception, match="language"):
        sandbox.run_code("1", language="r")


def test_files_are_shared_with_commands_and_asyncio_works() -> None:
    async def main() -> None:
        sandbox = await AsyncSandbox.create()
        await sandbox.files.write("/tmp/data.csv", "a,b\n1,2\n")
        execution = await sandbox.run_code("open('/tmp/data.csv').read()")
        assert execution.text == repr("a,b\n1,2\n")
        await sandbox.kill()

    asyncio.run(main())
