//! The policy that comes with us, with the real programs: what it lets through answers as it does without us, what it
//! refuses never runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use wardian_hosttools::{Policy, Request, ToolSandbox};

use crate::yard::{Yard, exists, output, refusal, run};

/// The line gives what the program gives without us.
async fn as_without_us(yard: &Yard, door: &ToolSandbox, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let mut plain = std::process::Command::new(words[0]);
    plain
        .args(&words[1..])
        .current_dir(yard.jail())
        .env("LANG", "C.UTF-8")
        .env_remove("LC_ALL")
        .env("GIT_PAGER", "cat");
    let plain = plain.output().unwrap();
    let ours = door.run(Request::words(&words)).await.unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(String::from_utf8_lossy(&ours.stdout), String::from_utf8_lossy(&plain.stdout), "{line}");
    assert_eq!(Some(ours.status.code()), plain.status.code(), "{line}");
}

#[tokio::test]
async fn git_looks_at_a_repository() {
    let yard = Yard::with_repository();
    fs::write(yard.jail().join("file"), "one\n2\nthree\nfour\n").unwrap();
    let door = yard.door();
    for line in [
        "git log",
        "git log --oneline -n 1 -- file",
        "git log -Sfour --format=%h%x09%s",
        "git log HEAD~1..HEAD",
        "git status",
        "git status --porcelain=v2 --branch",
        "git diff",
        "git diff --stat HEAD~1 HEAD -- file",
        "git diff --text -U0 file",
        "git show HEAD:file",
        "git show --stat HEAD~1",
        "git rev-parse HEAD",
        "git rev-parse --git-dir",
        "git branch",
        "git branch --list -v",
        "git blame -s file",
        "git ls-files",
        "git ls-files -m",
        "git --no-pager log -1",
        "git log nothing",
    ] {
        as_without_us(&yard, &door, line).await;
    }
}

#[tokio::test]
async fn the_others_look_at_files() {
    let yard = Yard::with_repository();
    let door = yard.door();
    for line in [
        "ls",
        "ls -la sub",
        "ls --color=never -1 .",
        "cat file words",
        "cat -n file",
        "cat missing",
        "wc file",
        "wc -l file words",
        "head -n 1 file",
        "head -n1 -q file words",
        "tail -n 2 file",
        "tail -n+2 file",
        "grep -n o file",
        "grep -rn --include=in* side sub",
        "grep /api/users words",
        "grep -c -e one -e two file",
        "grep -f words file",
        "grep nothing file",
        "grep x /dev/null file",
        "find sub",
        "find . -name in* -type f",
        "find . -newer words -o -path ./sub/inner -print",
        "find sub -maxdepth 1 -printf %p\\n",
    ] {
        as_without_us(&yard, &door, line).await;
    }
}

#[tokio::test]
async fn nothing_leads_out() {
    let yard = Yard::with_repository();
    let door = yard.door();
    let canary = yard.canary();
    let canary = canary.to_str().unwrap();
    for path in [
        "../outside/canary",
        canary,
        "song",
        "out/canary",
        "abs/canary",
        "sub/up/../outside/canary",
        "sub/up/song",
    ] {
        for program in [
            "cat",
            "wc",
            "head",
            "tail",
            "ls",
            "find",
            "ls -l",
            "head -n 1",
            "grep sings",
            "grep -r sings",
            "git diff --",
            "git log --",
        ] {
            assert_eq!(refusal(&door, &format!("{program} {path}")).await, "PATH_DENIED", "{program} {path}");
        }
        for line in [
            "grep -f{} file",
            "grep -f {} file",
            "grep --file={} file",
            "grep --exclude-from={} x file",
            "find . -newer {}",
            "find . -samefile {}",
            "git blame --contents={} file",
            "git blame --contents {} file",
            "git blame -S{} file",
            "git log -O{}",
            "git diff -O{}",
            "git ls-files -X{}",
            "git ls-files --exclude-from={}",
            "git rev-parse --resolve-git-dir {}",
            "cat @{}",
            "cat --x={}",
            "cat -x{}",
        ] {
            let line = line.replace("{}", path);
            assert_eq!(refusal(&door, &line).await, "PATH_DENIED", "{line}");
        }
    }
    yard.assert_untouched(&"all");
}

/// Links inside a directory that is asked for are not followed out of it, neither by search nor by listing.
#[tokio::test]
async fn links_met_on_the_way_are_not_followed() {
    let yard = Yard::with_repository();
    let door = yard.door();
    for line in ["grep -r sings .", "find . -type f", "ls -lR", "git diff", "git status", "ls -laR ."] {
        let finished = run(&door, line).await;
        let text = String::from_utf8_lossy(&finished.stdout).into_owned();
        assert!(!text.contains(crate::yard::SONG) && !text.contains(crate::yard::UNSEEN), "{line}: {text}");
    }
    for line in [
        "grep -R sings .",
        "grep -rR sings",
        "grep --deref sings .",
        "find -L . -type f",
        "find . -follow",
        "ls -L",
        "ls -lRL",
        "ls --dereference",
    ] {
        assert_eq!(refusal(&door, line).await, "FLAG_DENIED", "{line}");
    }
}

#[tokio::test]
async fn nothing_can_be_written_or_run() {
    let yard = Yard::with_repository();
    let door = yard.door();
    for line in [
        "find . -exec cat '{}' +",
        "find . -name file -execdir id ';'",
        "find . -ok id ';'",
        "find . -delete",
        "find . -fprint made",
        "find . -fprintf made x",
        "find . -fprint0 made",
        "find . -fls made",
        "find -files0-from file",
        "git log --output=made",
        "git diff --output made",
        "git diff --no-index file words",
        "git diff --ext-diff",
        "git log -p --textconv",
        "git log --show-signature",
        "git branch -D main",
        "git branch -m other",
        "git branch --edit-desc",
        "wc --files0-from=file",
        "tail -f file",
        "tail --follow=name file",
        "tail -n1f file -fn1",
    ] {
        assert_eq!(refusal(&door, line).await, "FLAG_DENIED", "{line}");
    }
    assert!(!exists(&yard.jail().join("made")));
    // An old way to write -f, which would never end; here it is the name of a file.
    let finished = run(&door, "tail +1f file").await;
    assert_eq!((finished.status.code(), finished.timed_out), (1, false));
    // What no rule names, the system refuses: the policy lets git read only.
    let finished = run(&door, "git branch made").await;
    assert_ne!(finished.status.code(), 0);
    assert_eq!(yard.git(&["branch"]), "* main\n");
}

/// A repository is the agent's: its configuration may name programs. Those that can be switched off never run.
#[tokio::test]
async fn programs_named_by_the_repository_do_not_run() {
    let yard = Yard::with_repository();
    let jail = yard.jail();
    let evil = jail.join("evil");
    fs::write(
        &evil,
        format!("#!/bin/sh\necho \"$0 $@\" >> {}\ncat 2>/dev/null\n", jail.join("ran").display()),
    )
    .unwrap();
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(jail.join("hooks")).unwrap();
    for hook in ["post-index-change", "pre-commit", "fsmonitor-watchman"] {
        fs::copy(&evil, jail.join("hooks").join(hook)).unwrap();
    }
    let evil = evil.to_str().unwrap();
    for (key, value) in [
        ("core.fsmonitor", evil),
        ("core.hooksPath", "hooks"),
        ("core.pager", evil),
        ("pager.log", evil),
        ("pager.diff", evil),
        ("pager.branch", evil),
        ("core.editor", evil),
        ("core.askPass", evil),
        ("core.sshCommand", evil),
        ("diff.external", evil),
        ("diff.x.command", evil),
        ("diff.x.textconv", evil),
        ("gpg.program", evil),
        ("gpg.ssh.program", evil),
        ("log.showSignature", "true"),
        ("alias.status", &format!("!{evil}")),
        ("alias.log", &format!("!{evil}")),
        ("man.viewer", "evil"),
        ("man.evil.cmd", evil),
        ("merge.x.driver", evil),
        ("log.diffMerges", "remerge"),
    ] {
        yard.git(&["config", key, value]);
    }
    let merge = a_merge_with_a_conflict(&yard);
    yard.git(&["add", ".gitattributes"]);
    let _ = fs::remove_file(jail.join("ran"));
    fs::write(jail.join("file"), "changed\n").unwrap();
    // With what the gateway sets, but free to write: were one of them run, it would leave its mark.
    let text = Policy::standard().text().replace("[programs.git]\n", "[programs.git]\nwrite = true\n");
    let door = yard.door_with(yard.config(), Policy::parse(&text).unwrap());
    for line in [
        "git status",
        "git diff",
        "git diff 'HEAD~1'",
        "git log -p",
        "git log '--format=%G?'",
        "git show",
        "git show HEAD:file",
        "git blame file",
        "git branch",
        "git ls-files -m",
        "git rev-parse HEAD",
        "git diff --stat",
    ] {
        run(&door, line).await;
        assert!(!exists(&jail.join("ran")), "{line}: {:?}", fs::read_to_string(jail.join("ran")));
    }
    run(&door, &format!("git show -m {merge}")).await;
    assert!(!exists(&jail.join("ran")), "a merge: {:?}", fs::read_to_string(jail.join("ran")));
    // What cannot be switched off is refused.
    for line in [
        "git branch --help",
        "git status -v",
        "git status -sv",
        "git status --verb",
        "git show --remerge-diff",
        "git log -p --diff-merges=remerge",
    ] {
        assert_eq!(refusal(&door, line).await, "FLAG_DENIED", "{line}");
    }
    // The traps themselves work: without us they snap.
    for args in [&["diff"][..], &["status", "-v"], &["branch", "--help"], &["show", "-m", &merge]] {
        let _ = fs::remove_file(jail.join("ran"));
        yard.git(args);
        assert!(exists(&jail.join("ran")), "{args:?}");
    }
}

/// A commit that merged two changes of one line, made without any program but git.
fn a_merge_with_a_conflict(yard: &Yard) -> String {
    let tree_with = |contents: &str| {
        fs::write(yard.jail().join("file"), contents).unwrap();
        let blob = yard.git(&["hash-object", "-w", "file"]);
        let index = yard.jail().join(".git/other-index");
        let git = |args: &[&str]| {
            let mut git = std::process::Command::new("git");
            git.args(args).current_dir(yard.jail()).env("GIT_INDEX_FILE", &index);
            String::from_utf8(git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap().stdout).unwrap()
        };
        for (name, contents) in [("file", blob.trim()), (".gitattributes", &attributes(yard))] {
            git(&["update-index", "--add", "--cacheinfo", &format!("100644,{contents},{name}")]);
        }
        git(&["write-tree"]).trim().to_owned()
    };
    let commit = |contents: &str, parents: &[&str]| {
        let tree = tree_with(contents);
        let parents: Vec<&str> = parents.iter().flat_map(|parent| ["-p", *parent]).collect();
        yard.git(&[&["commit-tree", "-m", contents.trim(), &tree], parents.as_slice()].concat())
            .trim()
            .to_owned()
    };
    let base = commit("base\n", &[]);
    let (ours, theirs) = (commit("ours\n", &[&base]), commit("theirs\n", &[&base]));
    commit("both\n", &[&ours, &theirs])
}

/// The object of attributes that name a merge driver.
fn attributes(yard: &Yard) -> String {
    fs::write(yard.jail().join(".gitattributes"), "* diff=x merge=x\n").unwrap();
    yard.git(&["hash-object", "-w", ".gitattributes"]).trim().to_owned()
}

/// A submodule has a configuration of its own, which git reads where it runs itself in there.
#[tokio::test]
async fn programs_named_by_a_submodule_do_not_run() {
    let yard = Yard::with_repository();
    let jail = yard.jail();
    let submodule = |args: &[&str]| yard.git(&[&["-C", "part"], args].concat());
    yard.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./.git", "part"]);
    yard.git(&["commit", "-qm", "with a submodule"]);
    fs::write(jail.join("part/file"), "other\n").unwrap();
    submodule(&["commit", "-qam", "of the submodule"]);
    fs::write(jail.join("part/file"), "changed\n").unwrap();
    let evil = format!("echo ran >> {}; cat 2> /dev/null; :", jail.join("ran").display());
    for setting in ["core.fsmonitor", "diff.external"] {
        submodule(&["config", setting, &evil]);
    }
    yard.git(&["config", "diff.submodule", "diff"]);
    yard.git(&["config", "status.submoduleSummary", "true"]);
    let text = Policy::standard().text().replace("[programs.git]\n", "[programs.git]\nwrite = true\n");
    let door = yard.door_with(yard.config(), Policy::parse(&text).unwrap());
    for line in ["git status", "git diff", "git log -p", "git show", "git diff HEAD", "git ls-files -m"] {
        run(&door, line).await;
        assert!(!exists(&jail.join("ran")), "{line}");
    }
    for line in [
        "git diff --submodule=diff",
        "git log -p --submod=diff",
        "git status --ignore-submodules=none",
        "git ls-files --recurse-submodules",
    ] {
        assert_eq!(refusal(&door, line).await, "FLAG_DENIED", "{line}");
    }
    // The trap itself works: without us it snaps.
    yard.git(&["diff"]);
    assert!(exists(&jail.join("ran")));
}

/// Where a policy lets git start programs there is no switch for filters; what they do is confined.
#[tokio::test]
async fn a_filter_named_by_the_repository_reaches_nothing_outside() {
    let yard = Yard::with_repository();
    let (jail, canary) = (yard.jail(), yard.canary());
    let evil = format!("cat {0} > seen; cat {0} >&2; echo x >> {0}; rm {0}; cat", canary.display());
    yard.git(&["config", "filter.x.clean", &evil]);
    fs::write(jail.join(".gitattributes"), "* filter=x\n").unwrap();
    fs::write(jail.join("file"), "changed\n").unwrap();
    let text = Policy::standard()
        .text()
        .replace("[programs.git]\n", "[programs.git]\nwrite = true\nchildren = true\n");
    let door = yard.door_with(yard.config(), Policy::parse(&text).unwrap());
    let finished = run(&door, "git diff").await;
    // It ran, which is what this is about.
    assert_eq!(fs::read_to_string(jail.join("seen")).unwrap(), "");
    let text = [finished.stdout, finished.stderr].concat();
    assert!(!String::from_utf8_lossy(&text).contains(crate::yard::SONG));
    yard.assert_untouched(&"filter");
}

/// The flags a program names in its own help.
fn flags_of(program: &str) -> BTreeSet<String> {
    let help = std::process::Command::new(program).arg("--help").output().unwrap();
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let words = help.split(|character: char| !character.is_ascii_alphanumeric() && character != '-');
    let flags = words.filter(|word| word.len() > 1 && word.starts_with('-') && !word.ends_with('-'));
    flags.map(str::to_owned).collect()
}

/// Every file in the jail, and what is in it.
fn all_files(directory: &std::path::Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            all.extend(all_files(&entry.path()));
        } else {
            all.insert(entry.path(), fs::read(entry.path()).unwrap_or_default());
        }
    }
    all
}

/// Every flag of the other programs, as their own help names them, with a program and with a new file for a value: where
/// the policy lets it through, nothing is run and nothing written, also where the system would let it.
#[tokio::test]
async fn no_flag_of_the_others_runs_or_writes_anything() {
    let yard = Yard::new();
    let (jail, marks) = (yard.jail(), yard.outside().join("marks"));
    crate::rig::write_program(&jail.join("evil"), &format!("#!/bin/sh\necho ran >> {}\n", marks.display()));
    let mut policy = Policy::standard();
    for program in policy.programs.values_mut() {
        (program.write, program.children) = (true, true);
    }
    let door = yard.door_with(yard.config(), policy);
    let before = all_files(&jail);
    let (mut tried, mut let_through) = (0, 0);
    for program in ["ls", "cat", "wc", "head", "tail", "grep", "find"] {
        for flag in flags_of(program) {
            for value in ["./evil", "made"] {
                let words = match (program, flag.starts_with("--")) {
                    ("find", _) => vec![
                        "find".to_owned(),
                        "file".to_owned(),
                        flag.clone(),
                        value.to_owned(),
                        ";".to_owned(),
                    ],
                    (_, true) => vec![program.to_owned(), format!("{flag}={value}"), "file".to_owned()],
                    (_, false) => vec![program.to_owned(), flag.clone(), value.to_owned(), "file".to_owned()],
                };
                tried += 1;
                let_through += usize::from(door.run(Request::words(&words)).await.is_ok());
            }
        }
        assert_eq!(all_files(&jail), before, "{program}");
        assert!(!exists(&marks), "{program}");
    }
    assert!(tried > 300 && let_through > 200, "{let_through} of {tried}");
}

/// A repository around the jail, or named by a file in it, is not the jail's.
#[tokio::test]
async fn other_repositories_are_not_found() {
    let yard = Yard::new();
    let git = |directory: &std::path::Path, args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(args).current_dir(directory);
        assert!(git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap().status.success());
    };
    git(&yard.root(), &["init", "-q"]);
    git(&yard.root(), &["add", "outside/canary"]);
    git(&yard.root(), &["commit", "-qm", "outside"]);
    let door = yard.door();
    let found = run(&door, "git log -p").await;
    assert_eq!((found.status.code(), found.stdout.len()), (128, 0));
    fs::write(yard.jail().join(".git"), format!("gitdir: {}\n", yard.root().join(".git").display())).unwrap();
    let found = run(&door, "git log -p").await;
    assert_eq!((found.status.code(), found.stdout.len()), (128, 0));
}

#[tokio::test]
async fn patterns_may_look_like_paths() {
    let yard = Yard::with_repository();
    let door = yard.door();
    assert_eq!(output(&door, "grep /api words").await, "/api/users\n");
    assert_eq!(output(&door, "grep -e /api words").await, "/api/users\n");
    assert!(output(&door, "git log --grep=/etc --format=%s").await.is_empty());
    assert_eq!(output(&door, "find . -path /etc").await, "");
    // As soon as it could be a path it is taken for one.
    assert_eq!(refusal(&door, "grep -e one /etc/hostname").await, "PATH_DENIED");
}
