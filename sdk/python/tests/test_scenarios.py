"""The scenarios that every SDK runs alike: see ``sdk/scenarios``."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest

import wardian
from wardian import (
    Directory,
    File,
    HostMount,
    Limits,
    Mount,
    OverlayChange,
    Persistence,
    PythonResult,
    RunResult,
    Sandbox,
    Symlink,
)

SCENARIOS = Path(__file__).parents[2] / "scenarios"

#: What the protocol calls a limit, as the package does.
LIMITS = {"stdoutBytes": "stdout_bytes", "stderrBytes": "stderr_bytes", "commandBytes": "command_bytes"}


def unpack(data: str) -> bytes:
    return base64.b64decode(data)


def pack(data: bytes) -> str:
    return base64.b64encode(data).decode()


def run_fields(result: RunResult) -> Dict[str, Any]:
    return {
        "exitCode": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "output": result.output,
        "ok": result.ok,
        "timedOut": result.timed_out,
        "errorClass": result.error_class,
        "limit": result.limit,
        "stdoutBase64": pack(result.stdout_bytes),
        "truncatedStdout": result.truncated.stdout,
        "truncatedStderr": result.truncated.stderr,
        "outputFile": result.output_file and [*vars(result.output_file).values()],
    }


def python_fields(result: PythonResult) -> Dict[str, Any]:
    return {
        **run_fields(result),
        "repr": None if result.value is None else result.value.repr,
        "displays": [one.repr for one in result.displays],
        "errorType": None if result.error is None else result.error.type,
        "errorMessage": None if result.error is None else result.error.message,
    }


def options(given: Dict[str, Any]) -> Dict[str, Any]:
    """The options of a run, as the package has them."""
    named: Dict[str, Any] = {key: given[key] for key in ("env", "cwd", "contained", "check", "context") if key in given}
    if "outputFile" in given:
        named["output_file"] = given["outputFile"]
    if "timeoutMs" in given:
        named["timeout"] = given["timeoutMs"] / 1000
    if "stdinBase64" in given:
        named["stdin"] = unpack(given["stdinBase64"])
    return named


def mount_files(files: Dict[str, Any]) -> Dict[str, Any]:
    def entry(one: Any) -> Any:
        if isinstance(one, str):
            return unpack(one)
        if "dataBase64" in one:
            return File(unpack(one["dataBase64"]), one["mode"])
        return Symlink(one["link"]) if "link" in one else Directory(one["mode"])

    return {name: entry(one) for name, one in files.items()}


def changes(found: List[OverlayChange]) -> Dict[str, Any]:
    return {"changes": [[one.path, one.change, one.type, one.mode] for one in found]}


def persistence(given: Optional[Dict[str, Any]]) -> Optional[Persistence]:
    if given is None:
        return None
    assert given.keys() <= {"name", "mode"}
    return Persistence(**given)


def create(given: Dict[str, Any], directory: Path) -> Sandbox:
    assert given.keys() <= {
        *("timeoutMs", "limits", "mounts", "env", "toolAllowlist", "writablePaths", "cwd", "onKill"),
        *("store", "persistence", "hostMounts"),
    }
    timeout = given.get("timeoutMs")
    return Sandbox(
        timeout=None if timeout is None else timeout / 1000,
        limits=Limits(**{LIMITS[name]: value for name, value in given.get("limits", {}).items()}),
        mounts=[Mount(one["path"], mount_files(one["files"])) for one in given.get("mounts", [])],
        host_mounts=[HostMount(directory, one["path"], one["mode"]) for one in given.get("hostMounts", [])],
        env=given.get("env"),
        tool_allowlist=given.get("toolAllowlist"),
        writable_paths=given.get("writablePaths"),
        cwd=given.get("cwd"),
        on_kill=given.get("onKill"),
        store=directory if given.get("store") else None,
        persistence=persistence(given.get("persistence")),
    )


class World:
    """What the steps have created, by name."""

    def __init__(self, main: Sandbox) -> None:
        self.sandboxes = {"main": main}
        self.values: Dict[str, Any] = {}

    def stream(self, sandbox: Sandbox, given: Dict[str, Any]) -> Dict[str, Any]:
        with sandbox.stream(given["command"], **options(given)) as stream:
            pieces = [[piece.stream, piece.data] for piece in stream]
        return {"pieces": pieces, **run_fields(stream.result)}

    def list(self, sandbox: Sandbox, given: Dict[str, Any]) -> Dict[str, Any]:
        entries = sandbox.files.list(given["path"], recursive=given.get("recursive", False))
        return {
            "names": [entry.name for entry in entries],
            "types": [entry.type for entry in entries],
            "sizes": [entry.size for entry in entries],
        }

    def fork(self, sandbox: Sandbox, given: Dict[str, Any], name: str) -> None:
        for number, fork in enumerate(sandbox.fork(given["count"])):
            self.sandboxes[f"{name}.{number}"] = fork

    def log(self, sandbox: Sandbox, given: Dict[str, Any], name: str) -> Dict[str, Any]:
        commits = sandbox.saved.log(given["name"])
        for number, commit in enumerate(commits):
            self.values[f"{name}.{number}"] = commit.id
        return {
            "commands": [commit.command for commit in commits],
            "exitCodes": [commit.exit_code for commit in commits],
        }

    def diff(self, sandbox: Sandbox, given: Dict[str, Any]) -> Dict[str, Any]:
        changes = sandbox.saved.diff(given["name"], self.commit(given["from"]), self.commit(given.get("to")))
        return {"changes": [[change.path, change.change] for change in changes]}

    def commit(self, named: Any) -> Any:
        return self.values.get(named, named)

    def keep(self, name: str, value: Any) -> None:
        self.values[name] = value

    def put(self, name: str, sandbox: Sandbox) -> None:
        self.sandboxes[name] = sandbox

    def action(self, step: Dict[str, Any]) -> Callable[[], Optional[Dict[str, Any]]]:
        box, given, name = self.sandboxes[step.get("on", "main")], step.get("with", {}), step.get("as", "")
        path = given.get("path", "")
        actions: Dict[str, Callable[[], Any]] = {
            "run": lambda: run_fields(box.run(given["command"], **options(given))),
            "stream": lambda: self.stream(box, given),
            "python": lambda: python_fields(box.python(given["code"], **options(given))),
            "cancel": lambda: {"cancelled": box.cancel()},
            "suspend": box.suspend,
            "resume": box.resume,
            "history": lambda: {"commands": [entry.command for entry in box.history()]},
            "history.clear": box.clear_history,
            "env.set": lambda: box.env.__setitem__(given["name"], given["value"]),
            "env.get": lambda: {"value": box.env.get(given["name"])},
            "files.write": lambda: box.files.write(path, unpack(given["dataBase64"]), mode=given.get("mode")),
            "files.read": lambda: {"dataBase64": pack(box.files.read(path))},
            "files.readText": lambda: {"text": box.files.read_text(path)},
            "files.stat": lambda: vars(box.files.stat(path)),
            "files.exists": lambda: {"exists": box.files.exists(path)},
            "files.mkdir": lambda: box.files.mkdir(path),
            "files.remove": lambda: box.files.remove(path),
            "files.list": lambda: self.list(box, given),
            "mount": lambda: box.mount(path, mount_files(given["files"]), writable=given.get("writable", False)),
            "diff": lambda: changes(box.diff(path)),
            "patch": lambda: {"patch": box.patch(path)},
            "apply": lambda: changes(box.apply(path, dry_run=given.get("dryRun", False))),
            "snapshot": lambda: self.keep(name, box.snapshot()),
            "restore": lambda: box.restore(given["id"] if "id" in given else self.values[given["snapshot"]]),
            "export": lambda: self.keep(name, box.export_state()),
            "import": lambda: box.import_state(self.values[given["state"]]),
            "importData": lambda: box.import_state(unpack(given["dataBase64"])),
            "fork": lambda: self.fork(box, given, name),
            "sibling": lambda: self.put(
                name,
                box.sibling(
                    given["label"], image=given.get("image"), persistence=persistence(given.get("persistence"))
                ),
            ),
            "save": box.save,
            "checkout": lambda: box.checkout(self.commit(given["commit"])),
            "saved.open": lambda: self.put(name, box.saved.open(given["name"], idle=given.get("idleSeconds"))),
            "saved.list": lambda: {"names": [one.name for one in box.saved.list()]},
            "saved.log": lambda: self.log(box, given, name),
            "saved.diff": lambda: self.diff(box, given),
            "saved.branch": lambda: box.saved.branch(given["name"], given["newName"], self.commit(given.get("commit"))),
            "saved.tag": lambda: box.saved.tag(given["name"], given["tag"], self.commit(given["commit"])),
            "saved.delete": lambda: box.saved.delete(given["name"]),
            "images.save": lambda: box.images.save(given["name"], script=given["script"]),
            "images.list": lambda: {
                "names": [one.name for one in box.images.list()],
                "scripts": [one.script for one in box.images.list()],
            },
            "images.export": lambda: self.keep(name, box.images.export(given["name"])),
            "images.load": lambda: box.images.load(given["name"], self.values[given["image"]]),
            "images.delete": lambda: box.images.delete(given["name"]),
            "siblings": lambda: {"labels": [one.label for one in box.siblings()]},
            "destroy": box.destroy,
        }
        return actions[step["do"]]


@pytest.mark.parametrize("name", sorted(path.name for path in SCENARIOS.glob("*.json")))
def test_a_scenario(name: str, tmp_path: Path) -> None:
    scenario = json.loads((SCENARIOS / name).read_text("utf-8"))
    with create(scenario["options"], tmp_path) as main:
        world = World(main)
        for number, step in enumerate(scenario["steps"]):
            where = f"step {number} of {name}: {step}"
            action = world.action(step)
            if "error" in step:
                with pytest.raises(wardian.WardianError) as raised:
                    action()
                assert type(raised.value).__name__ == step["error"]["class"], where
                if "errno" in step["error"]:
                    assert getattr(raised.value, "errno", None) == step["error"]["errno"], where
            else:
                done = action()
                result = done if isinstance(done, dict) else {}
                for field, value in step["expect"].items():
                    assert result[field] == value, f"{field} in {where}"
