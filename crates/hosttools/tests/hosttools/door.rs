//! The nine stages, one after the other, and what is logged about them.

use std::time::Duration;

use tokio::sync::mpsc;
use wardian_audit::{AuditLog, Rotation, verify_audit};
use wardian_hosttools::{Config, Ended, Mode, Policy, REDACTED, Request, Stage, Stream, ToolSandbox};

use crate::yard::{Yard, code, output, refusal, run, scripted};

#[tokio::test]
async fn a_program_runs_in_the_jail_and_is_on_record() {
    let yard = Yard::with_repository();
    let door = yard.door();
    let finished = door.run(Request::line("git log --format=%s").session("s1")).await.unwrap();
    assert_eq!((finished.status, finished.stdout.as_slice()), (Ended::Exit(0), &b"second\nfirst\n"[..]));
    let records = yard.records();
    assert_eq!(yard.events(), ["tool.start", "tool.complete"]);
    assert!(records.iter().all(|record| record.session == "s1"));
    let (start, end) = (&records[0].data, &records[1].data);
    assert_eq!(start["call"], end["call"]);
    assert_eq!(start["command"][0], "git");
    assert!(start["program"].as_str().unwrap().starts_with('/'));
    assert_eq!(
        (&end["exit"], &end["truncated"], &end["lane"]),
        (&0.into(), &false.into(), &"interactive".into())
    );
    assert!(end["worker"].as_u64().unwrap() > 0 && end["durationMs"].is_u64());
}

#[tokio::test]
async fn each_stage_refuses_with_its_own_error_and_a_record() {
    let yard = Yard::with_repository();
    let door = yard.door();
    for (line, stage, code) in [
        ("git log | cat", Stage::Tokenize, "SYNTAX_DENIED"),
        ("sh -c id", Stage::Policy, "PROGRAM_DENIED"),
        ("git push", Stage::Subcommand, "SUBCOMMAND_DENIED"),
        ("git -c a.b=c log", Stage::Flags, "FLAG_DENIED"),
        ("git log --outp=x", Stage::Flags, "FLAG_DENIED"),
        ("cat ../outside/canary", Stage::Jail, "PATH_DENIED"),
    ] {
        let checked = door.check(&Request::line(line)).unwrap_err();
        let error = door.run(Request::line(line)).await.unwrap_err();
        assert_eq!((error.stage(), error.code(), checked.code()), (stage, code, code), "{line}");
        let records = yard.records();
        let last = records.last().unwrap();
        assert_eq!(
            (last.event, &last.data["code"], &last.data["stage"]),
            ("tool.refused", &code.into(), &stage.name().into())
        );
        assert_eq!(last.data["command"][0], line);
    }
    assert!(!yard.events().contains(&"tool.start"));
}

/// What several stages would refuse, the first does.
#[tokio::test]
async fn stages_come_in_their_order() {
    let yard = Yard::with_repository();
    let door = yard.door();
    for (line, stage) in [
        ("sh push -c ../x > y", Stage::Tokenize),
        ("sh push -c ../x", Stage::Policy),
        ("git -c x push ../x", Stage::Subcommand),
        ("git -c x log ../x", Stage::Flags),
        ("git log ../x", Stage::Jail),
    ] {
        assert_eq!(door.check(&Request::line(line)).unwrap_err().stage(), stage, "{line}");
    }
}

#[tokio::test]
async fn a_closed_gate_answers_every_call_and_needs_nothing() {
    let yard = Yard::new();
    for config in [Config::default(), Config { enabled: true, mode: Mode::Disabled, ..Config::default() }] {
        let door = yard.door_with(config, Policy::standard());
        assert_eq!(refusal(&door, "ls").await, "SANDBOX_DISABLED");
        assert_eq!(refusal(&door, "rm | x").await, "SANDBOX_DISABLED");
        assert!(door.stats().is_none());
        door.shutdown().await;
    }
    assert_eq!(yard.events(), ["tool.refused"; 4]);
}

#[tokio::test]
async fn an_open_gate_needs_a_jail_and_a_log() {
    let yard = Yard::new();
    let without_jail = Config { jail: None, ..yard.config() };
    let log = || AuditLog::to_callback(|_| ());
    assert!(ToolSandbox::with(without_jail, Policy::standard(), log()).is_err());
    assert!(ToolSandbox::open(yard.config()).is_err());
    for jail in ["/", "/nowhere-at-all", "/dev/null"] {
        let config = Config { jail: Some(jail.into()), ..yard.config() };
        assert!(ToolSandbox::with(config, Policy::standard(), log()).is_err(), "{jail}");
    }
}

#[tokio::test]
async fn words_are_taken_as_they_are() {
    let yard = Yard::new();
    std::fs::write(yard.jail().join("a b$;|"), "odd\n").unwrap();
    let door = yard.door();
    let finished = door.run(Request::words(["cat", "a b$;|"])).await.unwrap();
    assert_eq!(finished.stdout, b"odd\n");
    let finished = door.run(Request::line("cat 'a b$;|'")).await.unwrap();
    assert_eq!(finished.stdout, b"odd\n");
    let none: [&str; 0] = [];
    assert_eq!(code(door.run(Request::words(none)).await), Err("SYNTAX_DENIED"));
    assert_eq!(code(door.run(Request::words(["cat", "a\0b"])).await), Err("SYNTAX_DENIED"));
    assert_eq!(
        code(door.run(Request::words(["cat".to_owned(), "x".repeat(200_000)])).await),
        Err("SYNTAX_DENIED")
    );
    use std::os::unix::ffi::OsStringExt;
    let not_text = std::ffi::OsString::from_vec(vec![b'a', 0xff]);
    assert_eq!(code(door.run(Request::words(["cat".into(), not_text])).await), Err("SYNTAX_DENIED"));
}

#[tokio::test]
async fn the_working_directory_is_inside_and_paths_are_seen_from_it() {
    let yard = Yard::new();
    let door = yard.door();
    let jail = yard.jail();
    for cwd in ["sub", "./sub/", "sub/up/sub", jail.join("sub").to_str().unwrap()] {
        let finished = door.run(Request::line("cat inner ../file").cwd(cwd)).await.unwrap();
        assert_eq!(finished.stdout, b"inside\none\ntwo\nthree\n", "{cwd}");
        assert_eq!(
            code(door.run(Request::line("cat ../../outside/canary").cwd(cwd)).await),
            Err("PATH_DENIED")
        );
    }
    for cwd in ["..", "out", "abs", "sub/..//..", "/", "nowhere", "file", yard.outside().to_str().unwrap()] {
        assert_eq!(code(door.run(Request::line("ls").cwd(cwd)).await), Err("PATH_DENIED"), "{cwd}");
    }
}

#[tokio::test]
async fn the_environment_is_small_and_fixed() {
    let yard = Yard::new();
    let policy = scripted(&yard, "showenv", "/usr/bin/env", "env = { MORE = \"1\" }");
    // Whatever this test has, but for what is asked for.
    let config =
        Config { pass_env: vec!["CARGO_PKG_NAME".into(), "PATH".into(), "NOT_SET".into()], ..yard.config() };
    let door = yard.door_with(config, policy);
    let text = output(&door, "showenv").await;
    let mut names: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    // `_` and friends are the shell's own.
    names.retain(|name| !matches!(*name, "_" | "SHLVL" | "OLDPWD"));
    assert_eq!(
        names,
        [
            "CARGO_PKG_NAME",
            "EDITOR",
            "GIT_ASKPASS",
            "GIT_CEILING_DIRECTORIES",
            "GIT_CONFIG_GLOBAL",
            "GIT_CONFIG_NOSYSTEM",
            "GIT_CONFIG_SYSTEM",
            "GIT_EDITOR",
            "GIT_PAGER",
            "GIT_TERMINAL_PROMPT",
            "HOME",
            "LANG",
            "MANPAGER",
            "MORE",
            "PAGER",
            "PATH",
            "PWD",
            "SSH_ASKPASS",
            "TERM",
            "VISUAL",
        ]
    );
    let jail = yard.jail();
    for line in [
        "PATH=/usr/local/bin:/usr/bin:/bin".to_owned(),
        format!("HOME={}", jail.display()),
        "LANG=C.UTF-8".to_owned(),
        "TERM=dumb".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_logged_does_not_run() {
    let yard = Yard::new();
    let file = yard.root().join("audit");
    let log = AuditLog::to_file(&file, Rotation::default()).unwrap();
    let policy = scripted(&yard, "mark", "touch ran", "write = true");
    let door = ToolSandbox::with(yard.config(), policy, log).unwrap();
    run(&door, "mark").await;
    assert_eq!(verify_audit(&file).unwrap().records, 2);
    std::fs::remove_file(yard.jail().join("ran")).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(refusal(&door, "mark").await, "AUDIT_FAILED");
    assert_eq!(refusal(&door, "mark x | y").await, "AUDIT_FAILED");
    assert!(!yard.jail().join("ran").exists());
}

#[tokio::test]
async fn what_it_wrote_is_withheld_if_its_end_cannot_be_recorded() {
    let yard = Yard::new();
    let file = yard.root().join("audit");
    let log = AuditLog::to_file(&file, Rotation::default()).unwrap();
    let policy = scripted(&yard, "wait", "while [ ! -e go ]; do sleep 0.02; done", "");
    let door = ToolSandbox::with(yard.config(), policy, log).unwrap();
    let call = tokio::spawn({
        let door = door.clone();
        async move { door.run(Request::line("wait")).await }
    });
    while !std::fs::read_to_string(&file).is_ok_and(|text| text.contains("tool.start")) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::write(yard.jail().join("go"), "").unwrap();
    assert_eq!(code(call.await.unwrap()), Err("RECORD_LOST"));
}

#[tokio::test]
async fn a_call_nobody_waits_for_is_ended_and_on_record() {
    let yard = Yard::new();
    let policy = scripted(&yard, "wait", "touch begun; sleep 1000", "write = true");
    let door = yard.door_with(yard.config(), policy);
    let call = tokio::spawn(async move { door.run(Request::line("wait")).await });
    while !yard.jail().join("begun").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    call.abort();
    while yard.events().last() != Some(&"tool.cancelled") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_deadline_is_kept_and_recorded() {
    let yard = Yard::new();
    let policy = scripted(&yard, "wait", "sleep 1000", "timeout_ms = 100");
    let door = yard.door_with(yard.config(), policy);
    let finished = run(&door, "wait").await;
    assert!(finished.timed_out);
    assert_eq!(yard.records().last().unwrap().data["timedOut"], true);
    let finished = door.run(Request::line("wait").timeout(Duration::from_millis(50))).await.unwrap();
    assert!(finished.timed_out);
}

#[tokio::test]
async fn secrets_leave_neither_by_output_nor_by_record() {
    let yard = Yard::new();
    let secret = "correct-horse-battery";
    let token = "ghp_zyxwvutsrqponmlkjihgfedcba0129876543";
    let script = format!(
        "printf 'a %s b\\n' \"$@\"; echo {token} >&2; printf 'correct-'; sleep 0.05; printf 'horse-battery'; exit 3"
    );
    let policy = scripted(&yard, "tell", &script, "");
    let config = Config { secrets: vec![secret.to_owned()], ..yard.config() };
    let door = yard.door_with(config, policy);
    let finished = run(&door, &format!("tell {secret} -x")).await;
    assert_eq!(finished.status, Ended::Exit(3));
    let stdout = String::from_utf8(finished.stdout).unwrap();
    assert_eq!(stdout, format!("a {REDACTED} b\na -x b\n{REDACTED}"));
    assert_eq!(finished.stderr, format!("{REDACTED}\n").as_bytes());
    let _ = door.run(Request::line(format!("tell {secret}/../../{token}"))).await.unwrap_err();
    let _ = door.run(Request::line(format!("{secret} {token}"))).await.unwrap_err();
    let _ = door.run(Request::words(["tell", "--password", "hunter2"])).await.unwrap();
    let records = format!("{:?}", yard.records());
    for word in [secret, token, "hunter2"] {
        assert!(!records.contains(word), "{word} in {records}");
    }
    assert!(records.contains(REDACTED));
}

#[tokio::test]
async fn output_comes_as_it_is_written_without_secrets_split_between_pieces() {
    let yard = Yard::new();
    let script = "echo first; while [ ! -e go ]; do sleep 0.02; done; printf 'hun'; sleep 0.05; printf 'ter-two!\\n'; echo err >&2";
    let policy = scripted(&yard, "tell", script, "");
    let config = Config { secrets: vec!["hunter-two".to_owned()], ..yard.config() };
    let door = yard.door_with(config, policy);
    let (sink, mut chunks) = mpsc::unbounded_channel();
    let call = tokio::spawn(async move { door.run(Request::line("tell").output(sink)).await });
    // It is still running: it waits for the file that is made only now.
    let first = chunks.recv().await.unwrap();
    assert_eq!((first.stream, first.bytes.as_slice()), (Stream::Stdout, b"first\n".as_slice()));
    std::fs::write(yard.jail().join("go"), "").unwrap();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(chunk) = chunks.recv().await {
        match chunk.stream {
            Stream::Stdout => stdout.extend(chunk.bytes),
            Stream::Stderr => stderr.extend(chunk.bytes),
        }
    }
    assert_eq!(String::from_utf8(stdout).unwrap(), format!("{REDACTED}!\n"));
    assert_eq!(stderr, b"err\n");
    let finished = call.await.unwrap().unwrap();
    assert_eq!(String::from_utf8(finished.stdout).unwrap(), format!("first\n{REDACTED}!\n"));
}

#[tokio::test]
async fn output_is_cut_with_a_word_and_half_a_secret_goes() {
    let yard = Yard::new();
    let policy = scripted(&yard, "flood", "printf 'xxxx hunter-two yyyy'", "");
    let config = Config { secrets: vec!["hunter-two".to_owned()], max_output: 12, ..yard.config() };
    let door = yard.door_with(config, policy);
    let (sink, mut chunks) = mpsc::unbounded_channel();
    let finished = door.run(Request::line("flood").output(sink)).await.unwrap();
    assert!(finished.truncated);
    let text = String::from_utf8(finished.stdout.clone()).unwrap();
    assert!(text.starts_with(&format!("xxxx {REDACTED}")) && text.len() > 20, "{text}");
    assert!(!text.contains("hunter"));
    let mut streamed = Vec::new();
    while let Ok(chunk) = chunks.try_recv() {
        streamed.extend(chunk.bytes);
    }
    assert_eq!(streamed, finished.stdout);
    assert_eq!(yard.records().last().unwrap().data["truncated"], true);
}

#[tokio::test]
async fn no_call_takes_a_worker_for_longer_than_it_may() {
    let yard = Yard::new();
    let door = yard.door_with(Config { max_timeout_ms: 5000, ..yard.config() }, Policy::standard());
    let ask = async |milliseconds| {
        door.run(Request::line("ls").timeout(Duration::from_millis(milliseconds))).await.map(drop)
    };
    ask(5000).await.unwrap();
    let error = ask(5001).await.unwrap_err();
    assert_eq!(error.code(), "SYNTAX_DENIED");
    assert!(error.to_string().contains("max_timeout_ms"), "{error}");
}

#[tokio::test]
async fn a_callers_name_puts_no_secret_and_no_long_text_into_the_log() {
    let yard = Yard::new();
    let door = yard.door();
    let name = format!("password=hunter2 {}", "x".repeat(100_000));
    door.run(Request::line("ls").session(&name)).await.unwrap();
    door.run(Request::line("rm x").session(&name)).await.unwrap_err();
    for record in yard.records() {
        let session = &record.session;
        assert!(session.starts_with(&format!("password={REDACTED} xxx")) && session.len() < 200, "{session}");
    }
    assert_eq!(yard.events(), ["tool.start", "tool.complete", "tool.refused"]);
}

#[tokio::test]
async fn a_partial_secret_is_redacted_when_its_writer_is_killed() {
    let yard = Yard::new();
    let half = "ghp_abcdefghijklmnopqrstuvwxyz012345678";
    let policy = scripted(&yard, "leak", &format!("printf 'before {half}'; kill -9 $$"), "");
    let door = yard.door_with(yard.config(), policy);
    let (sink, mut chunks) = tokio::sync::mpsc::unbounded_channel();
    let finished = door.run(Request::line("leak").output(sink)).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&finished.stdout), format!("before {REDACTED}"));
    let mut streamed = Vec::new();
    while let Some(chunk) = chunks.recv().await {
        streamed.extend(chunk.bytes);
    }
    assert_eq!(streamed, finished.stdout);
}

#[tokio::test]
async fn a_program_inside_the_jail_is_not_run() {
    let yard = Yard::new();
    std::fs::copy("/bin/ls", yard.jail().join("mine")).unwrap();
    let policy = format!("[programs.mine]\npath = {:?}\n", yard.jail().join("mine"));
    let door = yard.door_with(yard.config(), Policy::parse(&policy).unwrap());
    assert_eq!(refusal(&door, "mine").await, "PROGRAM_DENIED");
    let policy = "[programs.absent]\n[programs.there]\npath = \"/dev/null\"\n";
    let door = yard.door_with(yard.config(), Policy::parse(policy).unwrap());
    assert_eq!(refusal(&door, "absent").await, "PROGRAM_DENIED");
    assert_eq!(refusal(&door, "there").await, "PROGRAM_DENIED");
}
