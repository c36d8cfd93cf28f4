//! Host directories in the sandbox.

use wardian::{MountMode, Sandbox};

use crate::support::{output, run, text};

fn host() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("a"), "host a\n").expect("a file");
    std::fs::create_dir(dir.path().join("sub")).expect("a directory");
    std::fs::write(dir.path().join("sub/b"), "host b\n").expect("a file");
    dir
}

async fn mounted(dir: &tempfile::TempDir, mode: MountMode) -> Sandbox {
    Sandbox::builder().mount(dir.path(), "/src", mode).build().await.expect("a sandbox")
}

#[tokio::test]
async fn read_only_means_it() {
    let dir = host();
    let sandbox = mounted(&dir, MountMode::ReadOnly).await;
    assert_eq!(output(&sandbox, "cat /src/a /src/sub/b; ls /src").await, "host a\nhost b\na\nsub\n");
    for script in ["rm -rf /src", "echo x > /src/a", "echo x > /src/new", "mkdir /src/d", "mv /src/a /src/z"]
    {
        let result = run(&sandbox, script).await;
        assert_ne!(result.exit_code, 0, "{script}");
        assert!(text(result.stderr).to_lowercase().contains("read-only"), "{script}");
    }
    assert_eq!(std::fs::read_to_string(dir.path().join("a")).unwrap(), "host a\n");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn read_write_changes_the_host() {
    let dir = host();
    let sandbox = mounted(&dir, MountMode::ReadWrite).await;
    output(&sandbox, "echo changed > /src/a; mkdir /src/d; mv /src/sub/b /src/d/c").await;
    assert_eq!(std::fs::read_to_string(dir.path().join("a")).unwrap(), "changed\n");
    assert_eq!(std::fs::read_to_string(dir.path().join("d/c")).unwrap(), "host b\n");
}

#[tokio::test]
async fn an_overlay_keeps_changes_in_the_sandbox() {
    let dir = host();
    let sandbox = mounted(&dir, MountMode::Overlay).await;
    output(&sandbox, "echo more >> /src/a; rm /src/sub/b; echo new > /src/n").await;
    assert_eq!(
        output(&sandbox, "cat /src/a; ls /src /src/sub").await,
        "host a\nmore\n/src:\na\nn\nsub\n\n/src/sub:\n"
    );
    assert_eq!(std::fs::read_to_string(dir.path().join("a")).unwrap(), "host a\n");
    assert!(dir.path().join("sub/b").exists());
}

#[tokio::test]
async fn a_mount_that_cannot_be_had_is_one_clear_error() {
    let error = Sandbox::builder().mount("/nowhere/at/all", "/src", MountMode::ReadOnly).build().await.err();
    let message = error.expect("an error").to_string();
    assert!(message.contains("/nowhere/at/all") && !message.contains('\n'), "{message}");
}

#[tokio::test]
async fn syncing_a_file_of_the_host_reaches_the_disk() {
    let dir = host();
    let sandbox = mounted(&dir, MountMode::ReadWrite).await;
    for tool in [
        "shred -n 1 a",
        "sync a",
        "sync -d a",
        "sync .",
        "dd if=a of=b conv=fsync status=none",
        "dd if=a of=b conv=fdatasync status=none",
    ] {
        let before = wardian_vfs::probe::synced();
        output(&sandbox, &format!("cd /src; echo x > a; {tool}")).await;
        assert!(wardian_vfs::probe::synced() > before, "{tool}");
    }
    let before = wardian_vfs::probe::synced();
    output(
        &sandbox,
        "cd /tmp; echo x > new; shred -n 1 new; sync new; dd if=new of=b conv=fsync status=none",
    )
    .await;
    assert_eq!(wardian_vfs::probe::synced(), before, "what is in memory has nothing to wait for");
}
