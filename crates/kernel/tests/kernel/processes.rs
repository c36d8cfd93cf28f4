//! Starting, forking, waiting, pipes.

use wardian_kernel::{Input, Limits, Start, Status};

use crate::support::{finish, machine, machine_with, run, settled, start, wasm};

#[tokio::test]
async fn exit_codes_of_all_sizes_arrive() {
    let machine = machine();
    for code in ["0", "1", "125", "126", "255"] {
        assert_eq!(run(&machine, &["exit", code]).await.status, Status::Exited(code.parse().unwrap()));
    }
    settled(&machine).await;
}

#[tokio::test]
async fn arguments_and_environment_arrive_unchanged() {
    let machine = machine();
    let done = run(&machine, &["args", "a b", "", "ü"]).await;
    assert_eq!(done.stdout, "a b\n\nü\n");
    let mut start = Start::new("/bin/testing", &["env"]);
    start.env = vec![b"A=1".to_vec(), b"B=x=y".to_vec()];
    assert_eq!(finish(&machine, start).await.stdout, "A=1\nB=x=y\n");
}

#[tokio::test]
async fn a_child_starts_with_the_three_streams_only() {
    assert_eq!(run(&machine(), &["fds"]).await.stdout, "0\n1\n2\n");
}

#[tokio::test]
async fn forks_in_a_row_together_and_nested() {
    let machine = machine();
    for how in ["row", "together", "nested"] {
        let words: &[&str] = if how == "row" { &["fork", "30"] } else { &["fork", "30", how] };
        let done = run(&machine, words).await;
        assert_eq!(done.status, Status::Exited(0), "{how}: {done:?}");
    }
    settled(&machine).await;
}

#[tokio::test]
async fn a_chain_of_pipes_loses_nothing() {
    let done = run(&machine(), &["pipes", "3000000", "4"]).await;
    assert_eq!(done.status, Status::Exited(0), "{done:?}");
}

#[tokio::test]
async fn input_reaches_the_program_and_ends() {
    let machine = machine();
    let mut start = Start::new("/bin/testing", &["cat"]);
    start.input = Input::bytes(b"one\ntwo\n".to_vec());
    assert_eq!(finish(&machine, start).await.stdout, "one\ntwo\n");
}

#[tokio::test]
async fn too_many_processes_are_refused_and_reported() {
    let machine = machine_with(Limits { processes: 8, ..Limits::default() });
    let done = run(&machine, &["fork", "30", "together"]).await;
    assert_ne!(done.status, Status::Exited(0));
    assert_eq!(done.limit, Some("processes"));
    settled(&machine).await;
}

#[tokio::test]
async fn a_foreign_program_finds_its_files() {
    let machine = machine();
    {
        let mut tree = machine.tree().await;
        let (who, root) = (wardian_vfs::Caller::USER, tree.root());
        use wardian_vfs::OpenFlags;
        let flags = OpenFlags::WRITE | OpenFlags::CREATE;
        let mut file = tree.open(&who, &root, b"/tmp/file", flags, 0o644).unwrap();
        tree.write(&mut file, b"in tmp").unwrap();
        tree.close(file);
    }
    let mut start = Start::new("/bin/foreign", &["x"]);
    start.cwd = b"/tmp".to_vec();
    let done = finish(&machine, start).await;
    assert_eq!(done.status, Status::Exited(0), "{done:?}");
    assert_eq!(done.stdout.matches("in tmp").count(), 2, "{done:?}");
}

#[tokio::test]
async fn a_program_put_into_the_file_system_runs_when_it_may() {
    let machine = machine();
    let put = async |mode: u32| {
        let mut tree = machine.tree().await;
        let (who, root) = (wardian_vfs::Caller::USER, tree.root());
        use wardian_vfs::OpenFlags;
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNC;
        let mut file = tree.open(&who, &root, b"/tmp/prog", flags, 0o644).unwrap();
        let bytes = wasm("testing");
        assert_eq!(tree.write(&mut file, &bytes).unwrap(), bytes.len());
        tree.close(file);
        tree.chmod(&who, &root, b"/tmp/prog", true, mode).unwrap();
    };
    put(0o644).await;
    let refused = machine.start(Start::new("/tmp/prog", &["exit", "7"])).await.err();
    assert_eq!(refused, Some(wardian_vfs::Errno::EACCES));
    put(0o755).await;
    let mut start = Start::new("/tmp/prog", &[]);
    start.argv = [&b"testing"[..], b"exit", b"7"].map(<[u8]>::to_vec).to_vec();
    assert_eq!(finish(&machine, start).await.status, Status::Exited(7));
}

#[tokio::test]
async fn what_cannot_be_run_says_why() {
    use wardian_vfs::Errno;
    let machine = machine();
    for (path, errno) in
        [("/bin/nothing", Errno::ENOENT), ("/bin", Errno::EACCES), ("/bin/testing/x", Errno::ENOTDIR)]
    {
        assert_eq!(machine.start(Start::new(path, &[])).await.err(), Some(errno), "{path}");
    }
    assert_eq!(machine.census().processes, 0);
}

#[tokio::test]
async fn a_signal_to_oneself_ends_one_at_once() {
    let machine = machine();
    assert_eq!(run(&machine, &["kill", "15"]).await.status, Status::Signaled(15));
    assert_eq!(run(&machine, &["kill", "9"]).await.status, Status::Signaled(9));
    let sleeper = start(&machine, &["sleep", "60000"]).await;
    sleeper.signal(15);
    assert_eq!(sleeper.wait().await, Status::Signaled(15));
    settled(&machine).await;
}
