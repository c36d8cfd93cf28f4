"""The control plane: sandboxes of a key."""

from __future__ import annotations

import time
import urllib.request

import pytest
from e2b import (
    AuthenticationException,
    NotFoundException,
    Sandbox,
    SandboxException,
    SandboxQuery,
    SandboxState,
)
from e2b.exceptions import SandboxNotFoundException


def test_a_sandbox_is_created_found_and_killed() -> None:
    sandbox = Sandbox.create(timeout=60, metadata={"who": "me"}, envs={"GREETING": "hello"})
    assert sandbox.is_running()
    assert sandbox.commands.run("echo $GREETING").stdout == "hello\n"
    info = sandbox.get_info()
    assert (info.sandbox_id, info.metadata, info.state) == (sandbox.sandbox_id, {"who": "me"}, SandboxState.RUNNING)
    assert 50 < (info.end_at - info.started_at).total_seconds() < 70
    assert sandbox.kill()
    assert not sandbox.is_running()
    assert not Sandbox.kill(sandbox.sandbox_id)
    with pytest.raises(SandboxNotFoundException):
        Sandbox.connect(sandbox.sandbox_id)
    with pytest.raises(SandboxException):
        sandbox.commands.run("echo")


def test_a_timeout_ends_it_and_can_be_changed() -> None:
    sandbox = Sandbox.create(timeout=1)
    other = Sandbox.create(timeout=60)
    other.set_timeout(1)
    kept = Sandbox.create(timeout=1)
    kept.set_timeout(60)
    deadline = time.monotonic() + 30
    while (sandbox.is_running() or other.is_running()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (sandbox.is_running(), other.is_running(), kept.is_running()) == (False, False, True)
    kept.kill()


def test_lists_have_filters_and_pages() -> None:
    made = [Sandbox.create(metadata={"test": "pages", "number": str(number)}) for number in range(5)]
    paginator = Sandbox.list(query=SandboxQuery(metadata={"test": "pages"}), limit=2)
    found = []
    pages = 0
    while paginator.has_next:
        found += paginator.next_items()
        pages += 1
    assert pages == 3
    assert {one.sandbox_id for one in found} == {one.sandbox_id for one in made}
    one = Sandbox.list(query=SandboxQuery(metadata={"test": "pages", "number": "3"})).next_items()
    assert [other.sandbox_id for other in one] == [made[3].sandbox_id]
    made[0].pause()
    query = SandboxQuery(metadata={"test": "pages"}, state=[SandboxState.PAUSED])
    assert [other.sandbox_id for other in Sandbox.list(query=query).next_items()] == [made[0].sandbox_id]
    for sandbox in made:
        sandbox.kill()


def test_a_paused_sandbox_keeps_files_and_processes() -> None:
    sandbox = Sandbox.create()
    sandbox.files.write("/tmp/kept", "content")
    process = sandbox.commands.run("echo begun; read line; echo got $line", background=True, stdin=True, timeout=0)
    assert sandbox.pause()
    assert not sandbox.pause()
    assert not sandbox.is_running()
    with pytest.raises(SandboxException):
        sandbox.files.read("/tmp/kept")
    again = Sandbox.connect(sandbox.sandbox_id)
    assert again.is_running()
    assert again.files.read("/tmp/kept") == "content"
    again.commands.send_stdin(process.pid, "it\n")
    assert process.wait().stdout == "begun\ngot it\n"
    sandbox.kill()


def test_auto_pause_and_auto_resume() -> None:
    lifecycle = {"on_timeout": "pause", "auto_resume": True}
    sandbox = Sandbox.create(timeout=1, lifecycle=lifecycle)
    sandbox.files.write("/tmp/x", "1")
    deadline = time.monotonic() + 30
    while sandbox.get_info().state != SandboxState.PAUSED and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sandbox.get_info().state == SandboxState.PAUSED
    assert sandbox.files.read("/tmp/x") == "1"
    assert sandbox.get_info().state == SandboxState.RUNNING
    sandbox.kill()


def test_forks_and_snapshots_are_copies() -> None:
    sandbox = Sandbox.create(envs={"WHO": "parent"})
    sandbox.files.write("/tmp/state", "one")
    forks = sandbox.fork(count=3)
    assert len({fork.sandbox_id for fork in forks}) == 3
    sandbox.files.write("/tmp/state", "two")
    for fork in forks:
        assert fork.files.read("/tmp/state") == "one"
        assert fork.commands.run("echo $WHO").stdout == "parent\n"
        fork.kill()
    snapshot = sandbox.create_snapshot()
    sandbox.files.write("/tmp/state", "three")
    restored = Sandbox.create(template=snapshot.snapshot_id)
    assert restored.files.read("/tmp/state") == "two"
    paginator = Sandbox.list_snapshots(sandbox_id=sandbox.sandbox_id)
    assert [one.snapshot_id for one in paginator.next_items()] == [snapshot.snapshot_id]
    assert Sandbox.delete_snapshot(snapshot.snapshot_id)
    assert not Sandbox.delete_snapshot(snapshot.snapshot_id)
    for one in (sandbox, restored):
        one.kill()


def test_metrics_tell_what_is_used() -> None:
    sandbox = Sandbox.create()
    sandbox.files.write("/tmp/large", b"x" * 1_000_000)
    (metric,) = sandbox.get_metrics()
    assert metric.disk_used >= 1_000_000 and metric.disk_total > metric.disk_used and metric.mem_total > metric.mem_used
    sandbox.kill()


def test_keys_have_sandboxes_of_their_own(server: str) -> None:
    sandbox = Sandbox.create()
    other = "e2b_" + "1" * 40
    with pytest.raises(SandboxNotFoundException):
        Sandbox.connect(sandbox.sandbox_id, api_key=other)
    assert not Sandbox.kill(sandbox.sandbox_id, api_key=other)
    assert Sandbox.list(api_key=other).next_items() == []
    # And the id alone is not enough.
    request = urllib.request.Request(
        f"{server}/files?path=/etc/passwd", headers={"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "49983"}
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    assert refused.value.code == 401
    sandbox.kill()


def test_what_cannot_be_had_is_refused_in_their_own_exceptions() -> None:
    with pytest.raises((NotFoundException, SandboxException), match="not found"):
        Sandbox.create(template="no-such-template")
    with pytest.raises(SandboxException, match="no network"):
        Sandbox.create(allow_internet_access=True)
    with pytest.raises(SandboxException, match="mcp"):
        Sandbox.create(mcp={"duckduckgo": {}})
    sandbox = Sandbox.create()
    with pytest.raises(SandboxException, match="keeps the memory"):
        sandbox.pause(mode="filesystem")
    with pytest.raises(SandboxException, match="when it is created"):
        sandbox.update_network({"deny_out": ["example.com"]})
    with pytest.raises((AuthenticationException, SandboxException)):
        sandbox.commands.run("id", user="nobody")
    sandbox.kill()


def test_a_program_in_the_sandbox_is_reached_by_its_port(server: str) -> None:
    sandbox = Sandbox.create()
    sandbox.files.write("/tmp/www/index.html", "from the sandbox")
    sandbox.commands.run("python3 -m http.server 8000", cwd="/tmp/www", background=True, timeout=0)
    sandbox.commands.run("until ss -ltn | grep -q :8000; do sleep 0.05; done")
    host = sandbox.get_host(8000)
    assert host.startswith(f"8000-{sandbox.sandbox_id}.")
    for headers in ({"Host": host}, {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "8000"}):
        with urllib.request.urlopen(urllib.request.Request(f"{server}/index.html", headers=headers)) as response:
            assert response.read() == b"from the sandbox"
    sandbox.kill()
