//! What it costs to save sandboxes and to resume them.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use wardian::{Sandbox, Store, StoreOptions};

use crate::table::{Table, faster, show};

const COMMITS: usize = 200;
const RESUMES: usize = 20;

pub(crate) async fn measure() -> Result<Table> {
    let columns = &["what", "ours", "SQLite", "tar and zstd", "faster", "goal"];
    let about = "Medians. SQLite: one transaction with the changed file's bytes, or all files read from a table. tar and zstd: the whole tree, as an archive. \"faster\" is the archive's time divided by ours.";
    let mut table = Table::new("store", columns).about(about);
    // Beside the target directory: a real disk, not one in memory.
    let directory = tempfile::tempdir_in("target")?;
    let disk = sync_time(directory.path())?;
    table.push(&["the disk's own fsync, after 12 KB", &show(disk), "–", "–", "–", "–"]);
    let tree = host_tree(directory.path())?;
    commits(&mut table, directory.path(), &tree).await?;
    resumes(&mut table, directory.path()).await?;
    wakes(&mut table, directory.path()).await?;
    templates(&mut table, directory.path()).await?;
    group(&mut table, directory.path()).await?;
    forks(&mut table, directory.path()).await?;
    Ok(table)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// How long the disk takes.
fn sync_time(directory: &Path) -> Result<Duration> {
    use std::io::Write;
    let mut file = std::fs::File::create(directory.join("sync"))?;
    let mut times = Vec::new();
    for _ in 0..COMMITS {
        file.write_all(&[7; 12_000])?;
        let start = Instant::now();
        file.sync_data()?;
        times.push(start.elapsed());
    }
    Ok(median(times))
}

/// The same 10,000 files on the host, for tar.
fn host_tree(directory: &Path) -> Result<std::path::PathBuf> {
    let tree = directory.join("tree");
    std::fs::create_dir(&tree)?;
    for number in 0..10_000 {
        std::fs::write(tree.join(number.to_string()), format!("{number}\n"))?;
    }
    Ok(tree)
}

fn open(directory: &Path, name: &str, sync: bool) -> Result<Store> {
    Ok(Store::open_with(directory.join(name), StoreOptions { sync, ..StoreOptions::default() })?)
}

/// A sandbox with 10,000 files and a Python session.
async fn large(store: &Store, name: &str) -> Result<Sandbox> {
    let sandbox = Sandbox::builder().persist(store, name).build().await?;
    sandbox.run("mkdir d; cd d; for i in {1..10000}; do echo $i > $i; done; cd").await?;
    sandbox.python("import json, re; x = list(range(1000))").await?;
    sandbox.run("echo > f").await?;
    Ok(sandbox)
}

async fn commits(table: &mut Table, directory: &Path, tree: &Path) -> Result<()> {
    let plain = Sandbox::builder().build().await?;
    plain.run("mkdir d; cd d; for i in {1..10000}; do echo $i > $i; done; cd; echo > f").await?;
    plain.python("import json, re; x = list(range(1000))").await?;
    let without = median(runs(&plain).await?);
    let archive = timed(5, || {
        let packed = std::process::Command::new("sh")
            .arg("-c")
            .arg(format!("tar -C {0} -cf - . | zstd -q -3 -o {0}.tar.zst -f", tree.display()))
            .status();
        packed.is_ok_and(|status| status.success())
    })?;
    for (sync, goal) in [(false, "1 ms"), (true, "fsync + 1 ms")] {
        let store = open(directory, &format!("commits-{sync}"), sync)?;
        let sandbox = large(&store, "large").await?;
        let with = median(runs(&sandbox).await?);
        let ours = with.saturating_sub(without);
        let sqlite = sqlite(directory, sync)?;
        let what = format!(
            "commit after `echo x >> f`, 10,000 files, Python, {} fsync",
            if sync { "with" } else { "without" }
        );
        let shown = archive.map_or_else(|| "–".to_owned(), show);
        table.push(&[&what, &show(ours), &show(sqlite), &shown, &faster(ours, archive), goal]);
        sandbox.close().await?;
    }
    Ok(())
}

async fn runs(sandbox: &Sandbox) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..COMMITS {
        let start = Instant::now();
        ensure!(sandbox.run("echo x >> f").await?.exit_code == 0);
        times.push(start.elapsed());
    }
    Ok(times)
}

/// Times something that may not be there.
fn timed(times: usize, mut work: impl FnMut() -> bool) -> Result<Option<Duration>> {
    let mut all = Vec::new();
    for _ in 0..times {
        let start = Instant::now();
        if !work() {
            return Ok(None);
        }
        all.push(start.elapsed());
    }
    Ok(Some(median(all)))
}

/// SQLite itself: a transaction with one row of 12 KB.
fn sqlite(directory: &Path, sync: bool) -> Result<Duration> {
    let connection = rusqlite::Connection::open(directory.join(format!("plain-{sync}.db")))?;
    let level = if sync { "FULL" } else { "NORMAL" };
    connection.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous={level}; CREATE TABLE f (name TEXT PRIMARY KEY, body BLOB)"
    ))?;
    let mut times = Vec::new();
    for number in 0..COMMITS {
        let start = Instant::now();
        connection.execute("INSERT OR REPLACE INTO f VALUES ('f', ?)", [vec![number as u8; 12_000]])?;
        times.push(start.elapsed());
    }
    Ok(median(times))
}

async fn resumes(table: &mut Table, directory: &Path) -> Result<()> {
    let store = open(directory, "resumes", false)?;
    let small = Sandbox::builder().persist(&store, "small").build().await?;
    small.run("mkdir d; for i in {1..100}; do echo $i > d/$i; done").await?;
    small.close().await?;
    large(&store, "large").await?.close().await?;
    let heap = Sandbox::builder().persist(&store, "heap").build().await?;
    heap.python("x = [bytes([n % 256]) * 1000 for n in range(50_000)]").await?;
    heap.close().await?;
    drop((small, heap));
    for (name, what, goal) in [
        ("small", "resume, 100 files", "3 ms"),
        ("large", "resume, 10,000 files and Python", "3 ms"),
        ("heap", "resume, a Python heap of 50 MB", "15 ms"),
    ] {
        let mut times = Vec::new();
        for _ in 0..RESUMES {
            let start = Instant::now();
            let sandbox = loop {
                match store.resume(name).await {
                    Err(wardian::Error::Store(wardian::StoreError::Busy { .. })) => {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    other => break other?,
                }
            };
            times.push(start.elapsed());
            sandbox.close().await?;
        }
        table.push(&[what, &show(median(times)), "–", "–", "–", goal]);
    }
    Ok(())
}

/// Sandboxes of one server that leave memory and come back: without taking the lease, and with what is known of the store.
async fn wakes(table: &mut Table, directory: &Path) -> Result<()> {
    let store = open(directory, "wakes", false)?;
    let small = Sandbox::builder().persist(&store, "small").build().await?;
    small.run("mkdir d; for i in {1..100}; do echo $i > d/$i; done").await?;
    let heap = Sandbox::builder().persist(&store, "heap").build().await?;
    heap.python("x = [bytes([n % 256]) * 1000 for n in range(50_000)]").await?;
    let all = [
        ("100 files", small, "3 ms"),
        ("10,000 files and Python", large(&store, "large").await?, "3 ms"),
        ("a Python heap of 50 MB", heap, "15 ms"),
    ];
    for (what, mut sandbox, goal) in all {
        let (mut left, mut woke) = (Vec::new(), Vec::new());
        for _ in 0..RESUMES {
            let start = Instant::now();
            let dormant = sandbox.hibernate().await?.context("it can sleep")?;
            left.push(start.elapsed());
            let start = Instant::now();
            sandbox = store.wake(&dormant, Sandbox::builder()).await?;
            ensure!(sandbox.run("true").await?.exit_code == 0);
            woke.push(start.elapsed());
        }
        table.push(&[&format!("hibernate, {what}"), &show(median(left)), "–", "–", "–", "–"]);
        table.push(&[&format!("wake and run `true`, {what}"), &show(median(woke)), "–", "–", "–", goal]);
        sandbox.close().await?;
    }
    Ok(())
}

/// A commit that writes a whole memory.
async fn templates(table: &mut Table, directory: &Path) -> Result<()> {
    for sync in [false, true] {
        let store = open(directory, &format!("templates-{sync}"), sync)?;
        let sandbox = Sandbox::builder().persist(&store, "heap").build().await?;
        let plain = Sandbox::builder().build().await?;
        let mut times = Vec::new();
        for round in 0..5 {
            let code = format!("x = [bytes([(n + {round}) % 256]) * 1000 for n in range(50_000)]");
            let start = Instant::now();
            plain.python(code.clone()).await?;
            let without = start.elapsed();
            let start = Instant::now();
            sandbox.python(code).await?;
            times.push(start.elapsed().saturating_sub(without));
        }
        let what =
            format!("commit of a rewritten heap of 50 MB, {} fsync", if sync { "with" } else { "without" });
        table.push(&[&what, &show(median(times)), "–", "–", "–", "60 ms"]);
        sandbox.close().await?;
    }
    Ok(())
}

/// Commits of many sandboxes at once.
async fn group(table: &mut Table, directory: &Path) -> Result<()> {
    let store = open(directory, "group", true)?;
    let mut sandboxes = Vec::new();
    for number in 0..100 {
        sandboxes.push(Sandbox::builder().persist(&store, format!("g{number}")).build().await?);
    }
    let start = Instant::now();
    let tasks: Vec<_> = sandboxes
        .into_iter()
        .map(|sandbox| {
            tokio::spawn(async move {
                for _ in 0..10 {
                    sandbox.run("echo x >> f").await?;
                }
                sandbox.close().await
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let rate = 1000.0 / start.elapsed().as_secs_f64();
    table.push(&[
        "commands and commits per second, 100 sandboxes, with fsync",
        &format!("{rate:.0}"),
        "–",
        "–",
        "–",
        "1,000",
    ]);
    Ok(())
}

/// How much more 1,000 sandboxes take that differ by one file.
async fn forks(table: &mut Table, directory: &Path) -> Result<()> {
    let store = open(directory, "forks", false)?;
    let sandbox = Sandbox::builder().persist(&store, "first").build().await?;
    sandbox.run("head -c 20000000 /dev/urandom > large; echo 0 > own").await?;
    sandbox.close().await?;
    let (_, one) = store.usage()?;
    for number in 0..1000 {
        store.branch("first", None, &format!("b{number}"))?;
    }
    // The file that differs, for some: the others cost the same.
    for number in 0..20 {
        let branch = store.resume(&format!("b{number}")).await.context("a branch")?;
        branch.write_file("own", number.to_string()).await?;
        branch.close().await?;
    }
    let (_, all) = store.usage()?;
    let each = (all - one) as f64 / 20.0;
    let ratio = (one as f64 + each * 1000.0) / one as f64;
    table.push(&[
        "storage of 1,000 branches of 20 MB that differ by one file, to one",
        &format!("{ratio:.2}x"),
        "–",
        "–",
        "–",
        "1.1x",
    ]);
    Ok(())
}
