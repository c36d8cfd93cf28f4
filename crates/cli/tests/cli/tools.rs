//! Native programs through the gateway, from the command line and from inside a sandbox.

use std::path::Path;
use std::process::{Command, Output};

use crate::shown;

/// `wardian WORDS…` in this directory, with a state directory of its own.
fn wardian_in(directory: &Path, words: &[&str]) -> Output {
    let mut wardian = Command::new(env!("CARGO_BIN_EXE_wardian"));
    wardian
        .args(words)
        .current_dir(directory)
        .env("XDG_STATE_HOME", directory.parent().unwrap().join("state"));
    wardian.output().expect("it starts")
}

fn git(directory: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(words).current_dir(directory);
    let output = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git");
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// A directory `project` with a repository, in a directory of its own with a file outside.
fn project() -> (tempfile::TempDir, std::path::PathBuf) {
    let root = tempfile::tempdir().expect("a directory");
    let project = root.path().canonicalize().expect("a path").join("project");
    std::fs::create_dir_all(project.join("sub")).expect("a directory");
    std::fs::write(root.path().join("outside"), "not for you\n").expect("a file");
    std::fs::write(project.join("file"), "one\n").expect("a file");
    std::fs::write(project.join("sub/inner"), "two\n").expect("a file");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "first"]);
    (root, project)
}

#[test]
fn what_is_allowed_runs_and_what_is_not_is_refused_by_name() {
    let (_root, project) = project();
    let run = |words: &[&str]| shown(wardian_in(&project, &[&["tools", "run"], words].concat()));
    assert_eq!(run(&["--", "git", "log", "--format=%s"]), (0, "first\n".to_owned(), String::new()));
    assert_eq!(run(&["git log --format='%s %%'"]), (0, "first %\n".to_owned(), String::new()));
    assert_eq!(run(&["--", "grep", "nothing", "file"]).0, 1);
    for (words, code) in [
        (&["git", "push"][..], "SUBCOMMAND_DENIED"),
        (&["git", "-c", "x", "status"], "FLAG_DENIED"),
        (&["cat", "../outside"], "PATH_DENIED"),
        (&["sh", "-c", "id"], "PROGRAM_DENIED"),
        (&["git status; id"], "SYNTAX_DENIED"),
    ] {
        let (exit, out, err) = run(&[&["--"], words].concat());
        assert_eq!((exit, out.as_str()), (126, ""), "{words:?}");
        assert!(err.starts_with(&format!("wardian: {code}: ")), "{err}");
    }
    let log = project.parent().expect("a parent").join("state/wardian/tools.jsonl");
    let (exit, out, _) = shown(wardian_in(&project, &["audit", "verify", log.to_str().expect("text")]));
    assert_eq!(exit, 0, "{out}");
    // Three ran, with a record at both ends; five were refused.
    assert!(out.contains("records: 11,"), "{out}");
}

#[test]
fn it_works_where_it_is_called_if_that_is_in_the_jail() {
    let (root, project) = project();
    let jail = project.to_str().expect("text");
    let cat = ["tools", "run", "--jail", jail, "--", "cat", "inner", "../file"];
    assert_eq!(shown(wardian_in(&project.join("sub"), &cat)).1, "two\none\n");
    let cat = ["tools", "run", "--jail", jail, "--", "cat", "file"];
    assert_eq!(shown(wardian_in(root.path(), &cat)).1, "one\n");
}

#[test]
fn check_says_which_stage_would_refuse() {
    let (_root, project) = project();
    let check = |words: &[&str]| shown(wardian_in(&project, &[&["tools", "check", "--"], words].concat()));
    let (exit, out, _) = check(&["git", "-c", "x", "status"]);
    assert_eq!(exit, 1);
    assert!(out.starts_with("refused by stage 'flags': FLAG_DENIED: git: -c is denied"), "{out}");
    let (exit, out, _) = check(&["git", "status"]);
    assert_eq!(exit, 0);
    assert!(out.starts_with("allowed: /") && out.contains("git status"), "{out}");
    assert!(!project.parent().expect("a parent").join("state").exists(), "nothing is recorded of it");
}

#[test]
fn the_policy_can_be_shown_and_replaced() {
    let (root, project) = project();
    let (exit, text, _) = shown(wardian_in(&project, &["tools", "policy", "show"]));
    assert_eq!(exit, 0);
    assert!(text.contains("[programs.git]"));
    let policy = root.path().join("policy.toml");
    std::fs::write(&policy, "[programs.cat]\n").expect("a file");
    let policy = policy.to_str().expect("text");
    let run = |word| shown(wardian_in(&project, &["tools", "run", "--policy", policy, "--", word, "file"])).0;
    assert_eq!((run("cat"), run("head")), (0, 126));
    std::fs::write(policy, "[programs.cat]\nalow = 1\n").expect("a file");
    assert_eq!(run("cat"), 2);
}

#[test]
fn a_closed_door_stays_closed() {
    let (_root, project) = project();
    let mut wardian = Command::new(env!("CARGO_BIN_EXE_wardian"));
    wardian.args(["tools", "run", "--audit", "../log", "--", "ls"]).current_dir(&project);
    let output = wardian.env("WARDIAN_TOOLS_MODE", "disabled").output().expect("it starts");
    let (exit, _, err) = shown(output);
    assert_eq!(exit, 126);
    assert!(err.starts_with("wardian: SANDBOX_DISABLED: "), "{err}");
}

#[test]
fn a_tool_is_a_command_of_the_sandbox_on_the_files_it_has_mounted() {
    let (_root, project) = project();
    let run = |script| {
        shown(wardian_in(&project, &["run", "--mount", ".:/src:rw", "--tool", "git", "--env", "x=1", script]))
    };
    assert_eq!(run("cd /src; git log --format=%s | tr a-z A-Z"), (0, "FIRST\n".to_owned(), String::new()));
    assert_eq!(
        run("cd /src/sub; git status --porcelain; echo three > new; git status --porcelain").1,
        "?? sub/new\n"
    );
    assert_eq!(run("cd /src/sub; git rev-parse --show-toplevel").1, "/src\n");
    assert_eq!(run("cd /src/sub; git log --format=%s -- /src/file").1, "first\n");
    assert_eq!(run("type git").1, "git is /usr/bin/git\n");
    assert_eq!(run("cd /src; git log nothing 2>/dev/null; echo $?").1, "128\n");
    let (exit, out, err) = run("cd /src; git push; echo $?");
    assert_eq!((exit, out.as_str()), (0, "126\n"));
    assert!(err.starts_with("git: SUBCOMMAND_DENIED: "), "{err}");
    let (_, out, err) = run("cd /tmp; git status; echo $?");
    assert_eq!((out.as_str(), err.contains("/src only")), ("126\n", true), "{err}");
    let (_, out, err) = run("cd /src; git diff --no-ext-diff -- ../outside; echo $?");
    assert_eq!((out.as_str(), err.contains("PATH_DENIED")), ("126\n", true), "{err}");
}

#[test]
fn a_tool_that_would_see_other_files_than_the_sandbox_is_refused() {
    let (_root, project) = project();
    for (words, what) in [
        (&["--tool", "git"][..], "--mount"),
        (&["--mount", ".:/a", "--mount", ".:/b", "--tool", "git"], "git@/a"),
        (&["--mount", ".:/src", "--tool", "git@/other"], "/other"),
        (&["--mount", ".:/src", "--tool", "sh"], "not listed in the policy"),
    ] {
        let (exit, _, err) = shown(wardian_in(&project, &[&["run"], words, &[":"]].concat()));
        assert_eq!(exit, 2, "{words:?}");
        assert!(err.contains(what), "{words:?}: {err}");
    }
    let two = ["run", "--mount", ".:/a", "--mount", ".:/b", "--tool", "git@/a", "cd /a; git log --format=%s"];
    assert_eq!(shown(wardian_in(&project, &two)).1, "first\n");
}

/// Everything below a directory: names, modes, contents.
fn everything(directory: &Path) -> String {
    let mut found = Command::new("sh");
    found.args(["-c", "find . -printf '%p %y %m %l\\n' | sort; find . -type f | sort | xargs -d '\\n' cat"]);
    let output = found.current_dir(directory).output().expect("sh");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn git_works_on_an_overlay_and_the_host_stays_as_it_was() {
    let (_root, project) = project();
    let before = everything(&project);
    let run = |words: &[&str], script: &str| {
        let mount = ["run", "--mount", ".:/repo:overlay", "--tool", "git"];
        shown(wardian_in(&project, &[&mount[..], words, &[script]].concat()))
    };
    let script = "cd /repo && echo x > f && git add f && git commit -q -m second && git log --format=%s && git status -s";
    assert_eq!(run(&[], script), (0, "second\nfirst\n".to_owned(), String::new()));
    let (exit, out, _) = run(&["--diff"], "cd /repo && echo x > f && git add f && git commit -q -m second");
    assert_eq!(exit, 0);
    assert!(out.contains("+++ b/f\n") && out.contains(".git/refs/heads/main"), "{out}");
    let script = "cd /repo/sub && git rev-parse --show-toplevel && git checkout -q -b side && echo 2 > inner && \
                  git commit -q -a -m side && git checkout -q main && cat inner && git merge -q side && cat inner && \
                  git rm -q inner && ls; git mv ../file ../moved && ls ..; git log --format='%an %s' -1";
    // git keeps the directory that it is started in.
    let expected = "/repo\ntwo\n2\nmoved\nsub\nuser side\n";
    assert_eq!(run(&[], script), (0, expected.to_owned(), String::new()));
    let named =
        "cd /repo; export GIT_AUTHOR_NAME=Ann; echo 3 > file; git commit -q -a -m x; git log -1 --format=%an";
    assert_eq!(run(&[], named).1, "Ann\n");
    let settings = "cd /repo; git config user.name Bo && git config --get user.name && git config --unset user.name; \
                    git config --get user.name; stat -c %a .git/config; git config core.x 1 && \
                    git config --list | grep core.x";
    assert_eq!(run(&[], settings), (0, "Bo\n644\ncore.x=1\n".to_owned(), String::new()));
    let (exit, _, err) = run(&[], "cd /repo; git push");
    assert!(exit == 126 && err.contains("SUBCOMMAND_DENIED"), "{err}");
    assert_eq!(everything(&project), before);
    // And what it has done can be applied.
    let (exit, _, err) = run(&["--apply"], "cd /repo && echo x > f && git add f && git commit -q -m second");
    assert_eq!(exit, 0, "{err}");
    assert_eq!(git(&project, &["log", "--format=%s"]), "second\nfirst\n");
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
    assert_eq!(git(&project, &["fsck", "--strict"]), "");
}

#[test]
fn git_commit_opens_an_editor_of_the_sandbox() {
    let (_root, project) = project();
    let run = |script: &str| {
        let script = format!("cd /repo && echo x > file && {script}");
        shown(wardian_in(&project, &["run", "--mount", ".:/repo:overlay", "--tool", "git", &script]))
    };
    let (exit, out, err) =
        run("GIT_EDITOR='sed -i \"1s/.*/the message/\"' git commit -qa && git log -1 --format=%B");
    assert_eq!((exit, out.as_str(), err.as_str()), (0, "the message\n\n", ""));
    let (exit, out, _) = run("EDITOR='cat' git commit --amend && git log --format=%s");
    assert!(exit == 0 && out.starts_with("first\n") && out.ends_with("\nfirst\n"), "{out}");
    assert!(out.contains("# On branch main\n"), "{out}");
    let (exit, _, err) = run("GIT_EDITOR=true git commit -a");
    assert_eq!((exit, err.as_str()), (1, "Aborting commit due to empty commit message.\n"));
    let edit = "export GIT_EDITOR='sed -i \"1s/.*/the message/\"'";
    for (script, printed) in [
        ("cd / && git -C /repo --no-pager commit -qa && git -C /repo log -1 --format=%s", "the message\n"),
        ("git --no-pager -C . commit -qa", "FLAG_DENIED"),
        ("git commit -qa --amend && git log --format=%s", "the message\n"),
        ("git tag -a v1 && git tag -n", "v1              the message\n"),
    ] {
        let (exit, out, err) = run(&format!("{edit}; {script}"));
        match printed {
            "FLAG_DENIED" => assert!(exit != 0 && err.contains("only listed flags may precede"), "{err}"),
            _ => assert_eq!((exit, out.as_str(), err.as_str()), (0, printed, ""), "{script}"),
        }
    }
    let advice = |what: &str| format!("git {what}: a host tool cannot open the sandbox's editor\n");
    for (script, told) in [
        ("GIT_EDITOR=false git commit -a", "git commit: the editor failed; nothing was done\n".to_owned()),
        ("GIT_EDITOR=true git tag -a v1", "git tag: the message is empty; nothing was done\n".to_owned()),
        ("git commit -a", advice("commit: give the message with -m or -F")),
        ("git tag -a v1", advice("tag: give the message with -m or -F")),
        ("EDITOR=cat git commit -c HEAD", advice("commit: give the message with -m or -F, without -c")),
        ("git revert -e HEAD", advice("revert: leave out -e")),
        ("git rebase -i HEAD", advice("rebase: leave out -i")),
    ] {
        let (exit, _, err) = run(script);
        assert_eq!((exit, err), (1, told), "{script}");
    }
}

#[test]
fn a_tool_whose_changes_do_not_fit_leaves_the_overlay_unchanged() {
    let (_root, project) = project();
    // What cannot be made smaller: more than the sandbox may have.
    let mut seed = 1_u32;
    let noise = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as u8
    });
    std::fs::write(project.join("big"), noise.take(3 << 20).collect::<Vec<u8>>()).expect("a file");
    let before = everything(&project);
    let script = "cd /src; git add big; echo $?; git status -s; ls";
    let options = ["run", "--disk", "1M", "--mount", ".:/src:overlay", "--tool", "git", script];
    let (_, out, err) = shown(wardian_in(&project, &options));
    assert_eq!(out, "126\n?? big\nbig\nfile\nsub\n", "{err}");
    assert!(err.starts_with("git: what it changed was dropped: "), "{err}");
    assert_eq!(everything(&project), before);
}

#[test]
fn settings_that_disable_tools_win_over_the_command_line() {
    let (root, project) = project();
    let config = root.path().join("tools.toml");
    std::fs::write(&config, "enabled = false\n").expect("a file");
    let config = config.to_str().expect("text");
    let mount = format!("{}:/src", project.display());
    let run = |words: &[&str], variables: &[(&str, &str)]| {
        let mut wardian = Command::new(env!("CARGO_BIN_EXE_wardian"));
        wardian.args(words).current_dir(&project).env("XDG_STATE_HOME", root.path().join("state"));
        shown(wardian.envs(variables.iter().copied()).output().expect("it starts"))
    };
    let off = &[("WARDIAN_TOOLS_ENABLED", "false")][..];
    let direct = ["tools", "run", "--", "cat", "file"];
    let by_file = ["tools", "run", "--config", config, "--", "cat", "file"];
    for (words, variables) in [(&direct[..], off), (&by_file, &[])] {
        let (exit, out, err) = run(words, variables);
        assert_eq!((exit, out.as_str()), (126, ""), "{words:?}: {err}");
        assert!(err.starts_with("wardian: SANDBOX_DISABLED: "), "{words:?}: {err}");
    }
    let (exit, out, _) = run(&["tools", "check", "--", "cat", "file"], off);
    assert!(exit == 1 && out.contains("SANDBOX_DISABLED"), "{out}");
    let in_sandbox = ["run", "--mount", &mount, "--tool", "cat", "cat /src/file; echo ran"];
    let served = ["serve", "--http", "0", "--tools", "."];
    for variables in [off, &[("WARDIAN_TOOLS_MODE", "disabled")]] {
        for words in [&in_sandbox[..], &served] {
            let (exit, out, err) = run(words, variables);
            assert_eq!((exit, out.as_str()), (2, ""), "{words:?}: {err}");
            assert!(err.contains("host tools are disabled"), "{words:?}: {err}");
        }
    }
    // The environment is over the file, and who says nothing has not disabled anything.
    let on = &[("WARDIAN_TOOLS_ENABLED", "true")][..];
    assert_eq!(run(&by_file, on), (0, "one\n".to_owned(), String::new()));
    std::fs::write(config, "timeout_ms = 9000\n").expect("a file");
    assert_eq!(run(&by_file, &[]), (0, "one\n".to_owned(), String::new()));
}
