//! Repositories that native git wrote, read by this one, the other way round, and broken ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const OURS: &str = env!("CARGO_BIN_EXE_git");

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// An empty directory that goes when the test ends.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let place = std::env::temp_dir().join(format!("wardian-git-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).unwrap();
        Place(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(program: &str, place: &Path, clock: usize, arguments: &[&str]) -> Output {
    let date = format!("{} +0000", 1_700_000_000 + clock * 60);
    Command::new(program)
        .args(arguments)
        .current_dir(place)
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("LC_ALL", "C.UTF-8"), ("GIT_CONFIG_NOSYSTEM", "1"), ("TZ", "UTC")])
        .env("HOME", place)
        .envs([("GIT_AUTHOR_NAME", "Ann"), ("GIT_AUTHOR_EMAIL", "ann@x"), ("GIT_AUTHOR_DATE", &date)])
        .envs([("GIT_COMMITTER_NAME", "Carl"), ("GIT_COMMITTER_EMAIL", "c@x"), ("GIT_COMMITTER_DATE", &date)])
        .output()
        .unwrap()
}

fn well(program: &str, place: &Path, arguments: &[&str]) -> String {
    let output = run(program, place, 0, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A line or file is changed, added, removed or renamed.
fn edit(random: &mut Random, place: &Path) {
    let directories = ["", "d/", "d/e/", "f/"];
    let name = format!("{}file{}", directories[random.below(4)], random.below(8));
    let file = place.join(&name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let old = fs::read_to_string(&file).unwrap_or_default();
    let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
    match random.below(6) {
        0 if file.exists() => fs::remove_file(&file).unwrap(),
        1 if file.exists() => fs::rename(&file, place.join(format!("moved{}", random.below(4)))).unwrap(),
        _ => {
            for _ in 0..=random.below(5) {
                let at = random.below(lines.len() + 1);
                lines.insert(at, format!("line {}", random.below(100_000)));
            }
            fs::write(&file, lines.join("\n") + "\n").unwrap();
        }
    }
}

/// Makes commits on branches, and merges them.
fn history(program: &str, place: &Path, seed: u64, steps: usize) -> String {
    let mut random = Random(seed);
    let mut said = String::new();
    well(program, place, &["init", "-q", "-b", "main", "."]);
    fs::write(place.join(".git/info/exclude"), "").unwrap();
    for clock in 0..steps {
        let branch = format!("b{}", random.below(3));
        match random.below(8) {
            0 => drop(run(program, place, clock, &["branch", &branch])),
            1 => drop(run(program, place, clock, &["switch", "-q", &branch])),
            2 => {
                let merge = run(program, place, clock, &["merge", "-q", "--no-edit", &branch]);
                said += &format!("merge {:?}\n", merge.status.code());
                if !merge.status.success() {
                    said += &String::from_utf8_lossy(&run(program, place, clock, &["status", "-s"]).stdout);
                    drop(run(program, place, clock, &["add", "-A"]));
                    drop(run(program, place, clock, &["commit", "-qm", "solved"]));
                }
            }
            3 => drop(run(program, place, clock, &["tag", "-m", "text", &format!("t{clock}")])),
            _ => {
                for _ in 0..=random.below(4) {
                    edit(&mut random, place);
                }
                said += &String::from_utf8_lossy(&run(program, place, clock, &["status", "-s"]).stdout);
                drop(run(program, place, clock, &["add", "-A"]));
                drop(run(program, place, clock, &["commit", "-qm", &format!("step {clock}")]));
            }
        }
        said += &String::from_utf8_lossy(&run(program, place, clock, &["rev-parse", "HEAD^{tree}"]).stdout);
    }
    said
}

#[test]
fn random_histories_are_those_of_native_git_and_sound() {
    let mut all = String::new();
    for seed in 1..=6 {
        let (ours, native) = (Place::new(&format!("ours{seed}")), Place::new(&format!("native{seed}")));
        let said = history(OURS, &ours.0, seed, 40);
        let wanted = history("git", &native.0, seed, 40);
        assert_eq!(said, wanted, "seed {seed}");
        all += &said;
        let checked = run("git", &ours.0, 0, &["fsck", "--strict", "--no-dangling"]);
        let errors = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.success() && checked.stdout.is_empty(), "seed {seed}: {errors}");
        for look in
            [&["log", "--all", "--format=%H %P %s"][..], &["status", "--porcelain"], &["ls-files", "-s"]]
        {
            assert_eq!(well(OURS, &ours.0, look), well("git", &ours.0, look), "seed {seed}: {look:?}");
        }
    }
    let count = |code: i32| all.matches(&format!("merge Some({code})")).count();
    assert!(count(0) > 5 && count(1) > 2, "{} clean merges, {} conflicts", count(0), count(1));
}

#[test]
fn packs_of_native_git_are_read() {
    let place = Place::new("packs");
    history("git", &place.0, 77, 60);
    well("git", &place.0, &["gc", "-q", "--aggressive", "--prune=now"]);
    assert!(place.0.join(".git/packed-refs").exists());
    let looks = [
        &["log", "--all", "--stat", "--format=%H %s"][..],
        &["log", "-p"],
        &["ls-tree", "-r", "HEAD"],
        &["for-each-ref"],
        &["status", "--porcelain=v2", "-b"],
        &["cat-file", "--batch-all-objects", "--batch-check"],
    ];
    for look in looks {
        assert_eq!(well(OURS, &place.0, look), well("git", &place.0, look), "{look:?}");
    }
    well(OURS, &place.0, &["fsck"]);
    fs::write(place.0.join("new"), "new\n").unwrap();
    well(OURS, &place.0, &["add", "new"]);
    well(OURS, &place.0, &["commit", "-qm", "on top of a pack"]);
    well("git", &place.0, &["fsck", "--strict"]);
}

fn files_below(place: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn broken_repositories_are_errors() {
    let place = Place::new("broken");
    let repository = place.0.join("r");
    fs::create_dir(&repository).unwrap();
    history("git", &repository, 5, 25);
    well("git", &repository, &["gc", "-q"]);
    fs::write(repository.join("loose"), "loose\n").unwrap();
    well("git", &repository, &["add", "loose"]);
    well("git", &repository, &["commit", "-qm", "loose"]);
    let mut files = Vec::new();
    files_below(&repository.join(".git"), &mut files);
    files.retain(|file| !file.to_string_lossy().contains("/hooks/"));
    files.sort();
    let mut random = Random(9);
    for round in 0..60 {
        let file = &files[random.below(files.len())];
        let whole = fs::read(file).unwrap();
        let mut broken = whole.clone();
        match round % 3 {
            0 => broken.truncate(random.below(whole.len() + 1)),
            _ if whole.is_empty() => {}
            _ => (0..=random.below(4))
                .for_each(|_| broken[random.below(whole.len())] = random.below(256) as u8),
        }
        drop(fs::remove_file(file));
        fs::write(file, &broken).unwrap();
        for look in [&["log", "--all", "-p"][..], &["status"], &["fsck"], &["diff", "HEAD~1"], &["reflog"]] {
            let output = run(OURS, &repository, 0, look);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let code = output.status.code();
            assert!(code.is_some_and(|code| code != 101), "{look:?} with {}: {errors}", file.display());
            assert!(!errors.contains("panicked"), "{look:?} with {}: {errors}", file.display());
        }
        fs::write(file, &whole).unwrap();
    }
}
