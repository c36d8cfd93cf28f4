"""Files, directories and what happens in them."""

from __future__ import annotations

import asyncio
import io
import time
import urllib.error
import urllib.request
import uuid
from typing import Iterator

import pytest
from e2b import AsyncSandbox, FileType, FilesystemEventType, Sandbox
from e2b.exceptions import FileNotFoundException, InvalidArgumentException, SandboxException


@pytest.fixture(scope="module")
def sandbox(server: str) -> Iterator[Sandbox]:
    sandbox = Sandbox.create(timeout=600)
    yield sandbox
    sandbox.kill()


def test_files_are_written_and_read_as_text_bytes_and_streams(sandbox: Sandbox) -> None:
    info = sandbox.files.write("/tmp/new/deep/file", "hällo")
    assert (info.name, info.path) == ("file", "/tmp/new/deep/file")
    assert sandbox.files.read("/tmp/new/deep/file") == "hällo"
    content = bytes(range(256)) * 20_000
    for data, options in (
        (content, {}),
        (io.BytesIO(content), {}),
        (content, {"gzip": True}),
        (content, {"use_octet_stream": True}),
        ((content[at : at + 65536] for at in range(0, len(content), 65536)), {}),
    ):
        sandbox.files.write("/tmp/large", data, **options)
        assert bytes(sandbox.files.read("/tmp/large", format="bytes")) == content
    with sandbox.files.read("/tmp/large", format="stream") as stream:
        assert b"".join(stream) == content
    assert bytes(sandbox.files.read("/tmp/large", format="bytes", gzip=True)) == content
    sandbox.files.write("/tmp/large", "short")
    assert sandbox.files.read("/tmp/large") == "short"
    sandbox.files.write("/tmp/empty", "")
    assert sandbox.files.read("/tmp/empty") == ""
    assert sandbox.files.write("relative", "at home").path == "/home/user/relative"
    with pytest.raises(FileNotFoundException):
        sandbox.files.read("/tmp/missing")
    with pytest.raises((InvalidArgumentException, SandboxException)):
        sandbox.files.read("/tmp")


def test_several_files_at_once(sandbox: Sandbox) -> None:
    files = [{"path": f"/tmp/many/{n} \u00e9.txt", "data": f"content {n}"} for n in range(5)]
    assert len(sandbox.files.write_files(files)) == 5
    for file in files:
        assert sandbox.files.read(file["path"]) == file["data"]


def test_entries_are_what_stat_says(sandbox: Sandbox) -> None:
    sandbox.commands.run(
        "mkdir -p /tmp/tree/a/b; echo hi > /tmp/tree/a/f; ln -s f /tmp/tree/a/link; chmod 640 /tmp/tree/a/f"
    )
    info = sandbox.files.get_info("/tmp/tree/a/f")
    assert (info.name, info.type, info.size, info.mode, info.permissions) == (
        "f",
        FileType.FILE,
        3,
        0o640,
        "-rw-r-----",
    )
    assert (info.owner, info.group) == ("user", "user")
    assert abs(info.modified_time.timestamp() - time.time()) < 60
    link = sandbox.files.get_info("/tmp/tree/a/link")
    assert (link.type, link.symlink_target) == (FileType.SYMLINK, "f")
    assert [entry.path for entry in sandbox.files.list("/tmp/tree")] == ["/tmp/tree/a"]
    deep = [entry.path for entry in sandbox.files.list("/tmp/tree", depth=2)]
    assert deep == ["/tmp/tree/a", "/tmp/tree/a/b", "/tmp/tree/a/f", "/tmp/tree/a/link"]
    assert sandbox.files.exists("/tmp/tree/a/f") and not sandbox.files.exists("/tmp/tree/z")
    with pytest.raises(InvalidArgumentException):
        sandbox.files.list("/tmp/tree/a/f")
    with pytest.raises(FileNotFoundException):
        sandbox.files.list("/tmp/missing")


def test_directories_are_made_moved_and_removed(sandbox: Sandbox) -> None:
    name = f"/tmp/{uuid.uuid4()}"
    assert sandbox.files.make_dir(f"{name}/one/two")
    assert not sandbox.files.make_dir(f"{name}/one/two")
    sandbox.files.write(f"{name}/one/file", "x")
    moved = sandbox.files.rename(f"{name}/one", f"{name}/elsewhere/one")
    assert moved.path == f"{name}/elsewhere/one"
    assert sandbox.files.read(f"{name}/elsewhere/one/file") == "x"
    with pytest.raises(FileNotFoundException):
        sandbox.files.rename(f"{name}/missing", f"{name}/x")
    sandbox.files.remove(name)
    assert not sandbox.files.exists(name)
    with pytest.raises(SandboxException):
        sandbox.files.write("/etc/passwd", "")


def test_signed_addresses_need_no_token_until_they_expire(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/signed", "secret")
    address = sandbox.download_url("/tmp/signed", use_signature_expiration=100)
    with urllib.request.urlopen(address) as response:
        assert response.read() == b"secret"
    for wrong in (
        address.replace("signed", "passwd"),
        sandbox.download_url("/tmp/signed", use_signature_expiration=-5),
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(wrong)
        assert refused.value.code == 401
    boundary = "xyz"
    body = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nup\r\n--{boundary}--\r\n'
    request = urllib.request.Request(
        sandbox.upload_url("/tmp/uploaded", use_signature_expiration=100),
        body.encode(),
        {"Content-Type": f"multipart/form-data; boundary={boundary}"},
    )
    with urllib.request.urlopen(request) as response:
        assert response.status == 200
    assert sandbox.files.read("/tmp/uploaded") == "up"


def test_a_watched_directory_tells_what_changed(sandbox: Sandbox) -> None:
    sandbox.files.make_dir("/tmp/watched/sub")
    with pytest.raises(SandboxException):
        sandbox.files.watch_dir("/tmp/not-there")
    watcher = sandbox.files.watch_dir("/tmp/watched", recursive=True)
    sandbox.files.write("/tmp/watched/sub/new", "x")
    events = {(event.name, event.type) for event in watcher.get_new_events()}
    assert ("sub/new", FilesystemEventType.CREATE) in events and ("sub/new", FilesystemEventType.WRITE) in events
    assert watcher.get_new_events() == []
    sandbox.commands.run("mv /tmp/watched/sub/new /tmp/watched/moved; chmod 600 /tmp/watched/moved")
    events = {(event.name, event.type) for event in watcher.get_new_events()}
    assert ("sub/new", FilesystemEventType.RENAME) in events and ("moved", FilesystemEventType.CREATE) in events
    sandbox.files.remove("/tmp/watched/moved")
    assert [(event.name, event.type) for event in watcher.get_new_events()] == [("moved", FilesystemEventType.REMOVE)]
    watcher.stop()


def test_events_come_by_themselves_to_asyncio() -> None:
    async def main() -> None:
        sandbox = await AsyncSandbox.create()
        await sandbox.files.make_dir("/tmp/watched")
        events: asyncio.Queue[str] = asyncio.Queue()
        handle = await sandbox.files.watch_dir("/tmp/watched", on_event=lambda event: events.put_nowait(event.name))
        await sandbox.files.write("/tmp/watched/hello", "x")
        assert await asyncio.wait_for(events.get(), 30) == "hello"
        await handle.stop()
        await sandbox.kill()

    asyncio.run(main())
