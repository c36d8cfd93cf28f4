//! Limits never lie.

use wardian::internals::Inside;
use wardian::{
    Errno, Error, ErrorClass, Extension, ExtensionAnswer as Answer, ExtensionSpec, Limit, Limits, Sandbox,
};

use crate::support::{output, run, text};

async fn limited(limits: Limits) -> Sandbox {
    Sandbox::builder().limits(limits).build().await.expect("a sandbox")
}

#[tokio::test]
async fn output_past_the_cap_is_cut_and_reported() {
    let sandbox = limited(Limits { stdout_bytes: 8, stderr_bytes: 5, ..Limits::default() }).await;
    let result = run(&sandbox, "echo ééééé; echo fine >&2; exit 3").await;
    assert_eq!(text(result.stdout), "éééé");
    assert_eq!(text(result.stderr), "fine\n");
    assert_eq!((result.truncated.stdout, result.truncated.stderr), (true, false));
    assert_eq!((result.exit_code, result.error_class, result.limit), (3, None, Some(Limit::StdoutBytes)));
    let odd = limited(Limits { stdout_bytes: 3, ..Limits::default() }).await;
    assert_eq!(text(run(&odd, "printf éé").await.stdout), "é");
}

#[tokio::test]
async fn a_flood_of_output_does_not_fill_memory_or_stop_the_script() {
    let sandbox = limited(Limits { stdout_bytes: 1000, ..Limits::default() }).await;
    let result = run(&sandbox, "yes | head -c 50000000; echo end >&2").await;
    assert_eq!(result.stdout.len(), 1000);
    assert_eq!(text(result.stderr), "end\n");
    assert!(result.truncated.stdout);
}

#[tokio::test]
async fn a_command_that_is_too_long_is_not_run() {
    let sandbox = limited(Limits { command_bytes: 20, ..Limits::default() }).await;
    let result = run(&sandbox, "touch /tmp/never; # twenty-one").await;
    assert_eq!((result.exit_code, result.error_class), (1, Some(ErrorClass::LimitExceeded)));
    assert_eq!(text(result.stderr), "wardian: command too long (30 bytes, limit 20)\n");
    assert_eq!(result.limit, Some(Limit::CommandBytes));
    assert_eq!(output(&sandbox, "ls /tmp").await, "");
}

#[tokio::test]
async fn a_full_disk_is_an_error_the_script_sees() {
    let sandbox = limited(Limits { fs_bytes: 100_000, ..Limits::default() }).await;
    let result = run(&sandbox, "yes | head -c 200000 > /tmp/big; echo $?").await;
    assert_ne!(text(result.stdout), "0\n");
    assert_eq!(result.limit, Some(Limit::FsBytes));
    assert_eq!(output(&sandbox, "rm /tmp/big; echo ok > /tmp/small; cat /tmp/small").await, "ok\n");
}

#[tokio::test]
async fn a_fork_bomb_is_held_at_the_limit() {
    let sandbox = limited(Limits { processes: 12, ..Limits::default() }).await;
    let result = run(&sandbox, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 1000 & done").await;
    assert_eq!(result.limit, Some(Limit::Processes));
    assert!(sandbox.machine().census().processes <= 12);
}

/// A function that is given all of its input at once.
async fn with_function(limits: Limits) -> Sandbox {
    let count = Extension::function(ExtensionSpec::new("count", "Counts"), |call| async move {
        Answer::stdout(format!("{} {}\n", call.args.len(), call.stdin.len()))
    });
    Sandbox::builder().limits(limits).extension(count).build().await.expect("a sandbox")
}

#[tokio::test]
async fn what_a_host_function_is_given_counts_as_memory() {
    let sandbox = with_function(Limits { memory_bytes: 16 << 20, ..Limits::default() }).await;
    let small = run(&sandbox, "head -c 2000000 /dev/zero | count a b").await;
    assert_eq!((text(small.stdout), small.limit), ("2 2000000\n".to_owned(), None));
    let large = run(&sandbox, "head -c 40000000 /dev/zero | count").await;
    assert_eq!((large.exit_code, large.limit), (1, Some(Limit::MemoryBytes)));
    let again = run(&sandbox, "head -c 2000000 /dev/zero | count").await;
    assert_eq!(
        (text(again.stdout), again.limit),
        ("0 2000000\n".to_owned(), None),
        "all of it was given back"
    );
}

#[tokio::test]
async fn results_of_host_functions_count_as_memory_until_read() {
    let spec = ExtensionSpec::new("give", "Prints so many bytes");
    let give = Extension::function(spec, |call| async move {
        Answer::stdout(vec![b'x'; call.args[0].parse().expect("a number")])
    });
    let limits = Limits { memory_bytes: 128 << 20, ..Limits::default() };
    let sandbox = Sandbox::builder().limits(limits).extension(give).build().await.unwrap();
    let large = run(&sandbox, "give 200000000 > /dev/null").await;
    assert_eq!((large.exit_code, large.limit), (1, Some(Limit::MemoryBytes)));
    assert!(text(large.stderr).contains("give: an answer of 200000000 bytes"));
    // Each of them fits, but not all while nobody reads.
    let many = "for i in 1 2 3 4 5 6 7 8; do { give 30000000 || echo no >&2; } | sleep 5 & done; wait";
    let many = run(&sandbox, many).await;
    let refused = text(many.stderr).lines().filter(|line| *line == "no").count();
    assert!((1..8).contains(&refused), "{refused} of 8 refused");
    assert_eq!(output(&sandbox, "give 60000000 | wc -c").await, "60000000\n", "all of it was given back");
}

#[tokio::test]
async fn a_host_function_takes_no_more_arguments_than_it_can_hold() {
    let sandbox = with_function(Limits::default()).await;
    let result = run(&sandbox, "count $(seq 16000)").await;
    assert_eq!(text(result.stdout), "16000 0\n");
    let result = run(&sandbox, "count $(seq 17000)").await;
    assert_eq!(result.exit_code, 126);
    assert!(text(result.stderr).contains("too long"));
}

#[tokio::test]
async fn empty_files_fill_the_disk() {
    let sandbox = limited(Limits { fs_bytes: 1 << 20, ..Limits::default() }).await;
    assert_eq!(output(&sandbox, "df -B1 --output=used /tmp | tail -1 | tr -d ' '").await, "0\n");
    let result = run(&sandbox, "mkdir /tmp/d; for i in $(seq 10000); do : > /tmp/d/$i || break; done").await;
    assert_eq!(result.limit, Some(Limit::FsBytes));
    let usage = sandbox.machine().tree().await.usage();
    assert!((500..5000).contains(&usage.inodes), "{usage:?}");
    let used = output(&sandbox, "df -B1 --output=avail /tmp | tail -1 | tr -d ' '").await;
    assert!(used.trim().parse::<u64>().unwrap() < 8192, "{used}");
    assert_eq!(
        output(&sandbox, "rm -r /tmp/d; df -B1 --output=used /tmp | tail -1 | tr -d ' '").await,
        "0\n"
    );
}

#[tokio::test]
async fn the_number_of_files_has_a_limit_by_default() {
    let sandbox = limited(Limits::default()).await;
    assert_eq!(output(&sandbox, "df --output=itotal /tmp | tail -1 | tr -d ' '").await, "1000000\n");
}

#[tokio::test]
async fn a_program_that_cannot_run_gives_a_reason() {
    let sandbox = limited(Limits::default()).await;
    let tries = [
        ("printf '\\0asm\\1\\0\\0\\0\\5\\3\\1\\4\\1'", "memory64"),
        ("printf '\\0asm\\1\\0\\0\\0'", "it exports no function _start: it is a library, not a program"),
        ("printf '\\0asm\\r\\0\\1\\0'", "components are not supported, only modules"),
        ("{ printf '\\0asm'; head -c 40000000 /dev/zero; }", "40000004 bytes, and 33554432 are allowed"),
    ];
    for (writing, reason) in tries {
        let script = format!("{writing} > /tmp/p; chmod +x /tmp/p; /tmp/p; echo $?; rm /tmp/p");
        let result = run(&sandbox, &script).await;
        assert_eq!(text(result.stdout), "126\n", "{writing}");
        let stderr = text(result.stderr);
        assert!(stderr.starts_with("/tmp/p: cannot run: "), "{stderr}");
        assert!(stderr.contains(reason) && stderr.lines().count() == 1, "{stderr}");
    }
    // A script without `#!` is none of that.
    assert_eq!(output(&sandbox, "echo echo fine > /tmp/s; chmod +x /tmp/s; /tmp/s").await, "fine\n");
}

#[tokio::test]
async fn a_snapshot_counts_what_differs_from_the_one_before() {
    let sandbox = Sandbox::builder().build().await.unwrap();
    let take = async |script: &str| {
        assert_eq!(sandbox.run(script).await.unwrap().exit_code, 0, "{script}");
        sandbox.snapshot().await.unwrap()
    };
    let first = take("head -c 4000000 /dev/urandom > f; mkdir d; touch d/{1..1000}").await;
    let same = take(":").await;
    let touched = take("printf x | dd of=f bs=1 seek=2000000 conv=notrunc 2>/dev/null").await;
    let replaced = take("head -c 4000000 /dev/urandom > f").await;
    assert!(first.bytes_beyond(None) > 4_000_000 + 1000 * 512);
    assert!(same.bytes_beyond(Some(&first)) < 200_000, "{}", same.bytes_beyond(Some(&first)));
    assert!(touched.bytes_beyond(Some(&same)) < 400_000, "{}", touched.bytes_beyond(Some(&same)));
    assert!(replaced.bytes_beyond(Some(&touched)) > 4_000_000);
    assert_eq!(first.bytes_beyond(Some(&first)), first.bytes_beyond(Some(&first.clone())));
}

#[tokio::test]
async fn a_snapshot_counts_open_files_and_what_is_mounted_as_bytes() {
    let sandbox = Sandbox::builder().build().await.unwrap();
    let take = async |script: &str| {
        assert_eq!(sandbox.run(script).await.unwrap().exit_code, 0, "{script}");
        sandbox.snapshot().await.unwrap()
    };
    let deep = "d=/tmp; for i in {1..15}; do d=$d/$(printf 'x%.0s' {1..250}); done; mkdir -p $d; echo > $d/f";
    let before = take(deep).await;
    let open = take("for i in {1..200}; do exec {fd}<$d/f; done").await;
    let names = open.bytes_beyond(Some(&before));
    assert!(names > 200 * 3700, "{names}");
    let same = take(":").await.bytes_beyond(Some(&open));
    assert!((1..400_000).contains(&same), "{same}: names are shared, but no snapshot is free");
    // The same inode in each, but other bytes.
    let mut last = open;
    for byte in 0..3 {
        sandbox.mount_files("/m", [("a", vec![byte; 3 << 20])], false).await.unwrap();
        let mounted = sandbox.snapshot().await.unwrap();
        let bytes = mounted.bytes_beyond(Some(&last));
        assert!(bytes > 3 << 20, "{bytes}");
        let same = sandbox.snapshot().await.unwrap().bytes_beyond(Some(&mounted));
        assert!(same < 200_000, "{same}");
        sandbox.restore(&before).await.unwrap();
        last = mounted;
    }
}

#[tokio::test]
async fn what_is_mounted_as_bytes_is_charged_in_every_fork() {
    let limits = Limits { fs_bytes: 3 << 20, ..Limits::default() };
    let files = || [("a/b", vec![b'x'; 2 << 20])];
    let sandbox = Sandbox::builder().limits(limits).mount_files("/m", files(), true).build().await.unwrap();
    let fork = sandbox.fork().await.unwrap();
    for sandbox in [&sandbox, &fork] {
        let errno = |result: Result<(), Error>| result.unwrap_err().errno();
        assert_eq!(errno(sandbox.mount_files("/n", files(), false).await), Some(Errno::ENOSPC));
        assert_eq!(errno(sandbox.write_file("f", vec![0; 2 << 20]).await), Some(Errno::ENOSPC));
        assert!(sandbox.read_file("/n/a/b").await.is_err());
    }
    sandbox.unmount("/m").await.unwrap();
    sandbox.write_file("f", vec![0; 2 << 20]).await.unwrap();
}

#[tokio::test]
async fn a_parallel_script_works_by_default() {
    let sandbox = limited(Limits::default()).await;
    let result =
        run(&sandbox, "for i in {1..250}; do sleep 1000 & done; jobs -r | wc -l; kill $(jobs -p)").await;
    assert_eq!((text(result.stdout), result.limit), ("250\n".to_owned(), None), "{}", text(result.stderr));
    let script = "for i in {1..60}; do echo $i | sort | (cat) & done | wc -l; wait; \
                  for i in {1..200}; do (exit $((i % 7))) & done; wait; echo end";
    let result = run(&sandbox, script).await;
    assert_eq!(
        (text(result.stdout), result.limit),
        ("60\nend\n".to_owned(), None),
        "{}",
        text(result.stderr)
    );
}

#[tokio::test]
async fn a_process_that_cannot_be_started_names_the_limit() {
    let sandbox = limited(Limits { processes: 8, ..Limits::default() }).await;
    let result = run(&sandbox, "for i in {1..20}; do sleep 1000 & done").await;
    let stderr = text(result.stderr);
    let told = "wardian: a process could not be started: processes limit of 8 reached\n";
    assert!(stderr.ends_with(told) && stderr.matches("limit of").count() == 1, "{stderr}");
    assert_eq!((result.limit, result.error_class), (Some(Limit::Processes), None));
    // It names that limit, not another one that was hit before.
    let sandbox = limited(Limits { processes: 8, fs_bytes: 50_000, ..Limits::default() }).await;
    let result = run(&sandbox, "yes > /tmp/full; for i in {1..20}; do sleep 1000 & done").await;
    let stderr = text(result.stderr);
    assert!(stderr.ends_with(told) && stderr.matches("limit of").count() == 1, "{stderr}");
    assert_eq!(result.limit, Some(Limit::FsBytes));
}

#[tokio::test]
async fn a_full_disk_names_the_limit_to_the_caller() {
    let said = |result: Result<(), Error>| result.expect_err("it is full").to_string();
    let sandbox = limited(Limits { fs_bytes: 50_000, ..Limits::default() }).await;
    let reached = "ENOSPC: no space left on device: /tmp/f: fsLimitBytes limit of 50000 reached";
    assert_eq!(said(sandbox.write_file("/tmp/f", vec![b'x'; 60_000]).await), reached);
    let mounted = sandbox.mount_files("/m", [("f", vec![b'x'; 60_000])], false).await;
    assert_eq!(said(mounted), reached.replace("/tmp/f", "/m"));
    let sandbox = limited(Limits { file_count: 2, ..Limits::default() }).await;
    let mounted = sandbox.mount_files("/m", [("a", ""), ("b", ""), ("c", "")], false).await;
    assert_eq!(said(mounted), "ENOSPC: no space left on device: /m: fileCount limit of 2 reached");
    sandbox.mkdir("/tmp/a").await.expect("there is room");
    sandbox.write_file("/tmp/b", "").await.expect("there is room");
    let reached = |path| format!("ENOSPC: no space left on device: {path}: fileCount limit of 2 reached");
    assert_eq!(said(sandbox.write_file("/tmp/c", "").await), reached("/tmp/c"));
    assert_eq!(said(sandbox.mkdir("/tmp/d").await), reached("/tmp/d"));
    assert_eq!(said(sandbox.symlink("/tmp", "/tmp/e").await), reached("/tmp/e"));
}

#[tokio::test]
async fn limits_that_no_shell_can_live_with_or_that_cannot_be_kept_are_refused_by_name() {
    let refused = |limits: Limits| async move {
        match Sandbox::builder().limits(limits).build().await {
            Err(Error::Option(why)) => why,
            other => panic!("{:?}", other.map(|_| ())),
        }
    };
    let memory = refused(Limits { memory_bytes: 65_536, ..Limits::default() }).await;
    assert_eq!(memory, "memoryBytes is 65536, which is too little for a shell: at least 2097152");
    let processes = refused(Limits { processes: 0, ..Limits::default() }).await;
    assert_eq!(processes, "processes is 0, which is too little for a shell: at least 1");
    let files = refused(Limits { open_files: 3, ..Limits::default() }).await;
    assert_eq!(files, "openFiles is 3, which is too little for a shell: at least 16");
    let files = refused(Limits { open_files: 4097, ..Limits::default() }).await;
    assert_eq!(files, "openFiles is 4097: at most 4096");
    let processes = refused(Limits { processes: 32_001, ..Limits::default() }).await;
    assert_eq!(processes, "processes is 32001: at most 32000");
    let most = limited(Limits { processes: 32_000, open_files: 4096, ..Limits::default() }).await;
    assert_eq!(text(run(&most, "exec 4095>&1; echo a >&4095").await.stdout), "a\n");
    let least =
        limited(Limits { memory_bytes: 2 << 20, processes: 4, open_files: 16, ..Limits::default() }).await;
    let result =
        run(&least, "ls / > /dev/null; echo b | wc -l; x=$(echo a); echo $x > /tmp/x; cat /tmp/x").await;
    assert_eq!((text(result.stdout), result.limit), ("1\na\n".to_owned(), None), "{}", text(result.stderr));
}

#[tokio::test]
async fn a_program_out_of_memory_reports_it_in_one_line() {
    let sandbox = limited(Limits { memory_bytes: 24 << 20, fs_bytes: 64 << 20, ..Limits::default() }).await;
    output(&sandbox, "head -c 40000000 /dev/zero | tr '\\0' a > long").await;
    let programs = ["awk 1", "sed s/a/b/", "grep -c b", "tac", "rg b", "column -t", "rev", "sort", "jq -R ."];
    for program in programs {
        let result = run(&sandbox, &format!("{program} < long > /dev/null")).await;
        let (name, stderr) = (program.split(' ').next().unwrap(), text(result.stderr));
        assert!(stderr.starts_with(&format!("{name}: ")), "{program}: {stderr}");
        assert!(stderr.contains("memory"), "{program}: {stderr}");
        let expected = match name {
            "awk" | "grep" | "rg" | "sort" => 2,
            "sed" => 4,
            _ => 1,
        };
        assert_eq!((result.exit_code, result.limit), (expected, Some(Limit::MemoryBytes)), "{program}");
        assert!(!stderr.contains("RUST_BACKTRACE") && !stderr.contains("panicked"), "{program}: {stderr}");
    }
}

#[tokio::test]
async fn a_shell_out_of_memory_reports_it_and_the_session_continues() {
    let sandbox = limited(Limits { memory_bytes: 20 << 20, fs_bytes: 64 << 20, ..Limits::default() }).await;
    output(&sandbox, "kept=1; head -c 40000000 /dev/zero | tr '\\0' a > long").await;
    for script in ["read line < long", "x=$(cat long)", "mapfile lines < long", "(read line < long)"] {
        let result = run(&sandbox, script).await;
        let stderr = text(result.stderr);
        assert_eq!((stderr.as_str(), result.exit_code), ("sh: out of memory\n", 2), "{script}");
        assert_eq!(output(&sandbox, "echo $kept").await, "1\n", "{script}");
    }
}
