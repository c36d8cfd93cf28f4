//! Directories of this machine in sandboxes: only from where the server says, whoever asks and however.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use wardian::{HostRoots, MountMode, Sandbox, Store};
use wardian_server::{MountRoots, Options, Server};

use crate::support::{Client, base64};
use crate::tokens::Tenants;

fn below(path: &Path, writable: bool) -> Options {
    let of_others = HostRoots::default().with(path, writable).expect("a directory");
    Options { mounts: MountRoots { of_others, ..MountRoots::default() }, ..Options::default() }
}

fn at(host: &Path, path: &str, mode: &str) -> Value {
    json!({ "host": host, "path": path, "mode": mode })
}

#[tokio::test]
async fn directories_below_a_root_are_mounted_in_each_mode() {
    let root = tempfile::tempdir().expect("a directory");
    let project = root.path().join("project");
    fs::create_dir(&project).expect("a directory");
    fs::write(project.join("f"), "old").expect("a file");
    let mut client = Client::new(below(root.path(), true));
    let mounts = json!([
        { "host": project, "path": "/ro" }, at(&project, "/rw", "rw"), at(&project, "/over", "overlay"),
    ]);
    client.call("create", json!({ "hostMounts": mounts })).await;
    let script = "echo x 2>/dev/null > /ro/f || echo refused; echo mine > /over/f; echo new > /rw/g; cat /ro/f /over/f /ro/g";
    assert_eq!(client.stdout(script).await, "refused\noldmine\nnew\n");
    assert_eq!(fs::read(project.join("f")).expect("a file"), b"old");
    assert_eq!(fs::read(project.join("g")).expect("a file"), b"new\n");
    // Others of the client have the same.
    let other = client.call("sandbox.create", json!({})).await["sandboxId"].clone();
    let read = client.call("files.read", json!({ "path": "/over/f", "sandboxId": other })).await;
    assert_eq!(read["data"], base64("old"));
}

#[tokio::test]
async fn without_a_root_or_outside_of_it_mounts_are_refused_by_name() {
    let all = tempfile::tempdir().expect("a directory");
    let root = all.path().join("root");
    fs::create_dir_all(root.join("inside")).expect("a directory");
    symlink(all.path(), root.join("out")).expect("a link");
    let mut client = Client::new(Options::default());
    let none = "hostMounts: this server lets its client mount no directories (wardian serve --allow-mount)";
    let asked = json!({ "hostMounts": [at(&root, "/m", "ro")] });
    assert_eq!(client.failure("create", asked).await, (-32602, none.to_owned()));
    let mut client = Client::new(below(&root, false));
    let refused =
        |host: &Path, why: &str| (host.to_owned(), format!("cannot mount {}: {why}", host.display()));
    let outside = "not below a directory that may be mounted";
    let dots = "not an absolute path without '.' and '..'";
    for (host, message) in [
        refused(Path::new("/"), outside),
        refused(all.path(), outside),
        refused(Path::new("relative"), dots),
        refused(&root.join("../root"), dots),
        refused(&root.join("out"), "a symbolic link leads there: name the directory itself"),
        refused(&root.join("missing"), "no such file or directory"),
    ] {
        let asked = json!({ "hostMounts": [at(&host, "/m", "ro")] });
        assert_eq!(client.failure("create", asked).await, (-32602, message));
    }
    let inside = root.join("inside");
    let only_read = format!("cannot mount {}: only for reading", inside.display());
    for (mounts, message) in [
        (json!([at(&inside, "/m", "rw")]), only_read.as_str()),
        (json!([at(&inside, "/m", "wo")]), "hostMounts[0].mode must be \"ro\", \"rw\" or \"overlay\""),
        (json!([{ "host": inside }]), "Missing required param: hostMounts[0].path"),
        (
            json!([{ "host": inside, "path": "/m", "writable": true }]),
            "Unknown param: hostMounts[0].writable",
        ),
        (json!(vec![at(&inside, "/m", "ro"); 17]), "hostMounts must have at most 16 directories"),
        (json!([at(&inside, "m", "ro")]), "not a path to mount at: \"m\""),
    ] {
        assert_eq!(
            client.failure("create", json!({ "hostMounts": mounts })).await,
            (-32602, message.to_owned())
        );
    }
    let at_root = client.failure("create", json!({ "hostMounts": [at(&inside, "/", "ro")] })).await;
    assert!(at_root.1.contains("cannot mount at /: it is the sandbox's root"), "{at_root:?}");
    assert_eq!(
        client.call("create", json!({ "hostMounts": [at(&inside, "/m", "overlay")] })).await["ok"],
        true
    );
}

/// A sandbox that was saved where everything can be mounted.
#[tokio::test]
async fn a_saved_sandbox_has_its_mounts_again_only_below_a_root() {
    let all = tempfile::tempdir().expect("a directory");
    let (host, kept) = (all.path().join("host"), all.path().join("store"));
    fs::create_dir(&host).expect("a directory");
    fs::write(host.join("secret"), "secret").expect("a file");
    let store = || Store::open(&kept).expect("a store");
    let builder = Sandbox::builder().mount(&host, "/m", MountMode::ReadOnly);
    let sandbox = builder.persist(&store(), "mounted").build().await.expect("a sandbox");
    sandbox.close().await.expect("saved");
    let mut client = Client::new(Options { store: Some(store()), ..Options::default() });
    client.call("create", json!({})).await;
    let why = format!("cannot mount {} again: not below a directory that may be mounted", host.display());
    assert_eq!(client.failure("sandbox.open", json!({ "name": "mounted" })).await, (-32602, why));
    client.leave().await;
    let mut client = Client::new(Options { store: Some(store()), ..below(&host, false) });
    client.call("create", json!({})).await;
    let id = client.call("sandbox.open", json!({ "name": "mounted" })).await["sandboxId"].clone();
    let read = client.call("files.read", json!({ "path": "/m/secret", "sandboxId": id })).await;
    assert_eq!(read["data"], base64("secret"));
}

#[tokio::test]
async fn what_the_server_keeps_cannot_be_mounted() {
    let all = tempfile::tempdir().expect("a directory");
    let states = all.path().join("states");
    fs::create_dir_all(states.join("deep")).expect("a directory");
    for root in [all.path(), &states, &states.join("deep")] {
        let options = Options { state_dir: Some(states.clone()), ..below(root, false) };
        assert!(options.check().is_err(), "{}", root.display());
        let options = Options { store: Some(Store::open(&states).expect("a store")), ..below(root, false) };
        assert!(options.check().is_err(), "{}", root.display());
    }
    let beside = tempfile::tempdir().expect("a directory");
    let options = Options { state_dir: Some(states), ..below(beside.path(), true) };
    assert!(options.check().is_ok());
    drop(Server::new(options));
}

#[tokio::test]
async fn tenants_mount_only_what_the_server_says_is_for_them() {
    let root = tempfile::tempdir().expect("a directory");
    fs::write(root.path().join("f"), "theirs").expect("a file");
    let mounted = json!({ "hostMounts": [at(root.path(), "/m", "ro")] });
    let mut tenants = Tenants::with(None, below(root.path(), true)).await;
    tenants.show("token-of-another");
    let (status, answer) = tenants.site.send("POST", "/v1/sandboxes", &mounted).await;
    let why = "hostMounts: this server lets its client mount no directories (wardian serve --allow-mount)";
    assert_eq!((status, answer["error"]["message"].as_str()), (400, Some(why)));
    let of_tenants = HostRoots::default().with(root.path(), false).expect("a directory");
    let options =
        Options { mounts: MountRoots { of_tenants, ..MountRoots::default() }, ..Options::default() };
    let mut tenants = Tenants::with(None, options).await;
    tenants.show("token-of-another");
    let sandbox = tenants.site.create(mounted).await;
    let read =
        tenants.site.ask(&sandbox, "files.read", json!({ "path": "/m/f" })).await.expect("it is there");
    assert_eq!(read["data"], base64("theirs"));
}

#[tokio::test]
async fn what_an_overlay_has_is_told_and_applied_all_of_it_or_nothing() {
    let root = tempfile::tempdir().expect("a directory");
    for (name, content) in [("kept", "1\n"), ("changed", "old\n"), ("gone", "2\n")] {
        fs::write(root.path().join(name), content).expect("a file");
    }
    let mut client = Client::new(below(root.path(), true));
    client.call("create", json!({ "hostMounts": [at(root.path(), "/m", "overlay")] })).await;
    let nothing = json!({ "changes": [] });
    assert_eq!(client.call("mount.diff", json!({ "path": "/m" })).await, nothing);
    client.stdout("cd /m; echo new > changed; rm gone; mkdir d; echo 3 > d/f; chmod 600 kept").await;
    let changes = json!([
        { "path": "changed", "change": "M", "type": "file" },
        { "path": "d", "change": "A", "type": "dir", "mode": 0o755 },
        { "path": "d/f", "change": "A", "type": "file", "mode": 0o644 },
        { "path": "gone", "change": "D", "type": "file", "mode": 0o644 },
        { "path": "kept", "change": "P", "type": "file", "mode": 0o600 },
    ]);
    assert_eq!(client.call("mount.diff", json!({ "path": "/m" })).await, json!({ "changes": changes }));
    let told = client.call("mount.diff", json!({ "path": "/m", "patch": true })).await;
    let patch = told["patch"].as_str().expect("a patch");
    assert!(patch.contains("--- a/changed\n+++ b/changed\n@@ -1 +1 @@\n-old\n+new\n"), "{patch}");
    let checked = client.call("mount.apply", json!({ "path": "/m", "dryRun": true })).await;
    assert_eq!(checked, json!({ "changes": changes }));
    assert!(root.path().join("gone").exists(), "nothing is done");
    let other = client.call("sandbox.create", json!({})).await["sandboxId"].clone();
    let theirs = json!({ "command": "echo theirs > /m/changed", "sandboxId": other });
    client.call("run", theirs).await;
    assert_eq!(client.call("mount.apply", json!({ "path": "/m" })).await, json!({ "changes": changes }));
    assert_eq!(client.call("mount.diff", json!({ "path": "/m" })).await, nothing);
    // The directory has changed under the other one.
    let refused = client.failure("mount.apply", json!({ "path": "/m", "sandboxId": other })).await;
    assert_eq!((refused.0, refused.1.starts_with("EBUSY: ")), (1, true), "{refused:?}");
    assert_eq!(fs::read(root.path().join("changed")).expect("a file"), b"new\n");
    assert!(!root.path().join("gone").exists() && root.path().join("d/f").exists());
    for method in ["mount.diff", "mount.apply"] {
        let (code, message) = client.failure(method, json!({ "path": "/tmp" })).await;
        assert_eq!((code, message.as_str()), (1, "EINVAL: invalid argument: /tmp"), "{method}");
    }
}

#[tokio::test]
async fn an_overlay_over_a_directory_for_reading_is_told_but_not_applied() {
    let root = tempfile::tempdir().expect("a directory");
    let mut client = Client::new(below(root.path(), false));
    client.call("create", json!({ "hostMounts": [at(root.path(), "/m", "overlay")] })).await;
    client.stdout("echo mine > /m/f").await;
    let told = client.call("mount.diff", json!({ "path": "/m" })).await;
    assert_eq!(told["changes"][0]["path"], "f");
    for dry_run in [true, false] {
        let refused = client.failure("mount.apply", json!({ "path": "/m", "dryRun": dry_run })).await;
        assert_eq!(refused, (1, "EROFS: read-only file system: /m".to_owned()));
    }
    assert!(!root.path().join("f").exists());
}

#[tokio::test]
async fn more_changes_than_can_be_told_are_refused_and_the_server_serves_on() {
    let root = tempfile::tempdir().expect("a directory");
    let mut client = Client::new(below(root.path(), true));
    client.call("create", json!({ "hostMounts": [at(root.path(), "/m", "overlay")] })).await;
    // Long names, so that few files are many bytes.
    let many = "cd /m; d=$(printf 'd%.0s' {1..200}); mkdir -p $d/$d/$d/$d; cd $d/$d/$d/$d; for i in {1..10500}; do : > f$i; done";
    let made = client.call("run", json!({ "command": many, "timeoutMs": 0 })).await;
    assert_eq!(made["exitCode"], 0, "{made}");
    for (method, params) in [
        ("mount.diff", json!({ "path": "/m" })),
        ("mount.diff", json!({ "path": "/m", "patch": true })),
        ("mount.apply", json!({ "path": "/m" })),
    ] {
        let refused = client.failure(method, params).await;
        assert_eq!(refused, (1, "EFBIG: file too large: /m".to_owned()), "{method}");
    }
    assert_eq!(fs::read_dir(root.path()).expect("a directory").count(), 0);
    assert_eq!(client.stdout("echo here").await, "here\n");
}
