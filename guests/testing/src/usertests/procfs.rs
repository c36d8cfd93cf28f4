//! `/proc`.

use wardian_abi::{self as abi, Dir, Errno, open_flags as o};

use crate::kit::*;

fn status_of(pid: abi::Pid, field: &str) -> String {
    let status = text(&format!("/proc/{pid}/status"));
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {field} in {status}")).trim().to_owned()
}

fn link(path: &str) -> Vec<u8> {
    abi::readlink(Dir::CWD, path.as_bytes()).unwrap_or_else(|errno| panic!("{path}: {errno}"))
}

tests! {
    fn self_is_the_reader() {
        assert_eq!(link("/proc/self"), abi::getpid().to_string().into_bytes());
        succeeded(child(|| assert_eq!(link("/proc/self"), abi::getpid().to_string().into_bytes())));
    }

    fn the_command_line_is_as_it_was_given() {
        let line = content("/proc/self/cmdline");
        let words: Vec<u8> = abi::args().into_iter().flat_map(|word| [&word[..], b"\0"].concat()).collect();
        assert_eq!(line, words);
        assert_eq!(text("/proc/self/comm").trim_end(), if cfg!(target_os = "wasi") { "usertests" } else { "exe" });
    }

    fn the_status_says_who_it_is() {
        let me = abi::getpid();
        assert_eq!(status_of(me, "Pid"), me.to_string());
        assert_eq!(status_of(me, "PPid"), abi::getppid().to_string());
        let uid = abi::getuid();
        assert_eq!(status_of(me, "Uid"), format!("{uid}\t{uid}\t{uid}\t{uid}"));
        abi::umask(0o031);
        assert_eq!(status_of(me, "Umask"), "0031");
        assert!(status_of(me, "State").starts_with('R'));
    }

    fn the_stat_line_has_its_fields() {
        let me = abi::getpid();
        let line = text(&format!("/proc/{me}/stat"));
        let (start, rest) = line.trim_end().rsplit_once(") ").expect("a name in parentheses");
        assert!(start.starts_with(&format!("{me} (")), "{line}");
        let fields: Vec<&str> = rest.split(' ').collect();
        assert_eq!(fields.len(), 50, "{line}");
        assert_eq!(fields[0], "R");
        assert_eq!(fields[1], abi::getppid().to_string());
        assert_eq!(fields[2], me.to_string(), "the group");
    }

    fn states_have_letters() {
        let pid = sleeper();
        kill(pid, STOP);
        eventually(|| status_of(pid, "State").starts_with('T'));
        kill(pid, KILL);
        eventually(|| status_of(pid, "State").starts_with('Z'));
        assert_eq!(content(&format!("/proc/{pid}/cmdline")), b"", "a zombie has none");
        ended(pid);
        assert_eq!(open(&format!("/proc/{pid}/status"), o::RDONLY), Err(Errno::NOENT));
        assert_eq!(stat(&format!("/proc/{pid}")), Err(Errno::NOENT));
    }

    fn cwd_leads_there() {
        mkdir("sub");
        abi::chdir(Dir::CWD, b"sub").expect("chdir");
        make("file", b"x");
        assert_eq!(link("/proc/self/cwd"), abi::getcwd().expect("getcwd"));
        assert_eq!(content("/proc/self/cwd/file"), b"x");
        assert_eq!(content(&format!("/proc/{}/cwd/file", abi::getpid())), b"x");
    }

    fn descriptors_are_listed_with_what_they_are() {
        make("file", b"x");
        let fd = opened("file", o::RDONLY);
        let here = abi::getcwd().expect("getcwd");
        assert_eq!(link(&format!("/proc/self/fd/{fd}")), [&here[..], b"/file"].concat());
        let ends = pipe();
        let ino = abi::fstat(ends.read).expect("fstat").ino;
        assert_eq!(link(&format!("/proc/self/fd/{}", ends.read)), format!("pipe:[{ino}]").into_bytes());
        assert_eq!(link(&format!("/proc/self/fd/{}", ends.write)), format!("pipe:[{ino}]").into_bytes());
        assert_eq!(abi::readlink(Dir::CWD, b"/proc/self/fd/99"), Err(Errno::NOENT));
        assert!(lstat(&format!("/proc/self/fd/{fd}")).expect("lstat").is_symlink());
        assert_eq!(stat(&format!("/proc/self/fd/{fd}")).map(|stat| stat.size), Ok(1));
    }

    fn a_removed_file_is_marked() {
        make("file", b"x");
        let fd = opened("file", o::RDONLY);
        unlink("file");
        let here = abi::getcwd().expect("getcwd");
        assert_eq!(link(&format!("/proc/self/fd/{fd}")), [&here[..], b"/file (deleted)"].concat());
    }

    fn uptime_is_two_numbers() {
        let line = text("/proc/uptime");
        let numbers: Vec<f64> = line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        assert!(numbers.len() == 2 && numbers[0] >= 0.0, "{line}");
    }

    fn meminfo_has_the_usual_lines() {
        let info = text("/proc/meminfo");
        for name in ["MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapTotal", "SwapFree"] {
            let line = info.lines().find(|line| line.starts_with(&format!("{name}:"))).expect(name);
            let mut words = line.split_whitespace().skip(1);
            assert!(words.next().is_some_and(|word| word.parse::<u64>().is_ok()), "{line}");
            assert_eq!(words.next(), Some("kB"), "{line}");
        }
    }

    fn mounts_have_six_fields() {
        let mounts = text("/proc/mounts");
        assert!(mounts.lines().all(|line| line.split(' ').count() == 6), "{mounts}");
        let points: Vec<&str> = mounts.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        assert!(points.contains(&"/") && points.contains(&"/proc"), "{mounts}");
    }

    fn cpuinfo_counts_processors() {
        assert!(text("/proc/cpuinfo").lines().any(|line| line.starts_with("processor\t: 0")));
    }

    fn version_names_a_linux() {
        assert!(text("/proc/version").starts_with("Linux version "));
    }

    fn loadavg_has_five_fields() {
        let line = text("/proc/loadavg");
        let fields: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(fields.len(), 5, "{line}");
        assert!(fields[..3].iter().all(|field| field.parse::<f64>().is_ok()), "{line}");
        let (running, all) = fields[3].split_once('/').expect("running/all");
        assert!(running.parse::<u32>().expect("a number") <= all.parse().expect("a number"), "{line}");
    }

    fn nothing_there_can_be_changed() {
        assert_eq!(open("/proc/uptime", o::WRONLY), Err(Errno::ACCES));
        for made in [open("/proc/new", o::WRONLY | o::CREAT).map(drop), abi::mkdir(Dir::CWD, b"/proc/new", 0o755)] {
            assert!(matches!(made, Err(Errno::NOENT | Errno::ACCES | Errno::PERM | Errno::ROFS)), "{made:?}");
        }
        assert!(abi::unlink(Dir::CWD, b"/proc/uptime").is_err());
        assert_eq!(open("/proc/nothing", o::RDONLY), Err(Errno::NOENT));
        assert_eq!(open("/proc/99999999/status", o::RDONLY), Err(Errno::NOENT));
        assert_eq!(open("/proc/uptime/x", o::RDONLY), Err(Errno::NOTDIR));
    }

    fn processes_are_listed() {
        let names: Vec<String> = std::fs::read_dir("/proc").expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        for name in [&*abi::getpid().to_string(), "self", "uptime", "meminfo", "mounts", "cpuinfo", "version", "loadavg"] {
            assert!(names.iter().any(|listed| listed == name), "{name} is not in {names:?}");
        }
    }

    fn a_file_is_read_in_pieces() {
        let whole = content("/proc/self/status");
        let fd = opened("/proc/self/status", o::RDONLY);
        assert_eq!(read_some(fd, 5).expect("read"), whole[..5]);
        assert_eq!(abi::seek(fd, 2, abi::Whence::Start), Ok(2));
        assert_eq!(read_some(fd, 5).expect("read"), whole[2..7]);
        let mut some = [0; 4];
        assert_eq!(abi::pread(fd, &mut some, 1), Ok(4));
        assert_eq!(some, whole[1..5]);
    }
}
