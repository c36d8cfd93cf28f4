//! exec and spawn: another program in this process, or in a new one.

use wardian_abi::{self as abi, Dir, Errno, FdMap, Group, Spawn, StringList, open_flags as o};

use crate::kit::*;
use crate::programs::path;

/// Starts this program as `usertests WORDS…` with its output in a pipe; answers what it printed.
fn output_of(words: &[&str], change: impl FnOnce(&mut Spawn<'_>)) -> String {
    let ends = abi::pipe(true).expect("pipe");
    let (program, argv) = (path(), arguments(words));
    let fds = [FdMap { to: 1, from: ends.write }];
    let mut request = Spawn { path: &program, argv: argv.as_bytes(), fds: &fds, ..Spawn::default() };
    change(&mut request);
    let pid = abi::spawn(&request).expect("spawn");
    close(ends.write);
    let printed = read_all(ends.read);
    close(ends.read);
    succeeded(pid);
    String::from_utf8(printed).expect("text").trim_end().to_owned()
}

fn arguments(words: &[&str]) -> StringList {
    std::iter::once("usertests").chain(words.iter().copied()).collect()
}

/// Replaces this process by `usertests WORDS…`.
fn become_program(words: &[&str]) -> ! {
    let (program, argv) = (path(), arguments(words));
    let errno = abi::exec(&Spawn { path: &program, argv: argv.as_bytes(), ..Spawn::default() });
    panic!("exec: {errno}");
}

/// What `work`, which ends in a program, prints.
fn printed(work: impl FnOnce()) -> String {
    let ends = abi::pipe(true).expect("pipe");
    let pid = child(|| {
        abi::dup2(ends.write, 1, false).expect("dup2");
        work();
    });
    close(ends.write);
    let printed = read_all(ends.read);
    close(ends.read);
    succeeded(pid);
    String::from_utf8(printed).expect("text").trim_end().to_owned()
}

fn exec_error(path: &str) -> Errno {
    let argv: StringList = [path].into_iter().collect();
    abi::exec(&Spawn { path: path.as_bytes(), argv: argv.as_bytes(), ..Spawn::default() })
}

fn script(path: &str, text: &[u8]) {
    make(path, text);
    abi::chmod(Dir::CWD, path.as_bytes(), true, 0o755).expect("chmod");
}

/// The first line of a script that another program interprets.
fn interpreted_by(program: &[u8], rest: &str) -> Vec<u8> {
    [b"#!", program, rest.as_bytes(), b"\n"].concat()
}

tests! {
    fn exec_keeps_the_number() {
        let ends = abi::pipe(true).expect("pipe");
        let pid = child(|| {
            abi::dup2(ends.write, 1, false).expect("dup2");
            become_program(&["--pid"]);
        });
        close(ends.write);
        assert_eq!(read_all(ends.read), format!("{pid}\n").into_bytes());
        succeeded(pid);
    }

    fn exec_gives_the_exit_code_of_the_new_program() {
        for code in [0, 1, 77, 255] {
            let pid = child(|| become_program(&["--code", &code.to_string()]));
            assert_eq!(ended(pid).code(), Some(code));
        }
    }

    fn exec_keeps_descriptors_but_those_marked() {
        make("file", b"");
        let open = printed(|| {
            let fd = opened("file", o::RDONLY);
            abi::dup2(fd, 7, false).expect("dup2");
            abi::dup2(fd, 8, true).expect("dup2");
            abi::dup2(fd, 9, false).expect("dup2");
            abi::set_cloexec(9, true).expect("cloexec");
            opened("file", o::RDONLY | o::CLOEXEC);
            close(fd);
            become_program(&["--fds"]);
        });
        assert_eq!(open, "[0, 1, 2, 7]");
    }

    fn exec_closes_what_is_marked_so_that_readers_see_the_end() {
        let ends = abi::pipe(true).expect("pipe");
        let pid = child(|| become_program(&["--sleep"]));
        close(ends.write);
        assert_eq!(read_all(ends.read), b"");
        finish(pid);
    }

    fn exec_keeps_offsets() {
        make("file", b"abcdef");
        let rest = printed(|| {
            let fd = opened("file", o::RDONLY);
            assert_eq!(read_some(fd, 2), Ok(b"ab".to_vec()));
            abi::dup2(fd, 0, false).expect("dup2");
            become_program(&["--cat"]);
        });
        assert_eq!(rest, "cdef");
    }

    fn exec_keeps_place_and_umask() {
        mkdir("sub");
        let place = printed(|| {
            abi::chdir(Dir::CWD, b"sub").expect("chdir");
            become_program(&["--cwd"]);
        });
        assert!(place.ends_with("/sub"), "{place}");
        let mask = printed(|| {
            abi::umask(0o037);
            become_program(&["--umask"]);
        });
        assert_eq!(mask, "37");
    }

    fn exec_keeps_ignored_signals_and_resets_the_rest() {
        let left = printed(|| {
            ignore(HUP);
            ignore(USR2);
            flag(INT);
            flag(TERM);
            become_program(&["--signals"]);
        });
        assert_eq!(left, "1 Ignore\n12 Ignore");
        let left = output_of(&["--signals"], |_| {
            ignore(QUIT);
            flag(USR1);
        });
        assert_eq!(left, "3 Ignore");
    }

    fn exec_keeps_the_alarm() {
        let pid = child(|| {
            abi::alarm(50_000_000).expect("alarm");
            become_program(&["--sleep"]);
        });
        assert_eq!(ended(pid).signal(), Some(ALRM));
    }

    fn arguments_arrive_as_they_are() {
        assert_eq!(output_of(&["--args", "a b", "", "ü", "*"], |_| ()),
            r#"["usertests", "--args", "a b", "", "ü", "*"]"#);
    }

    fn the_environment_is_the_one_given() {
        let env: StringList = ["A=1", "B=x=y", "EMPTY="].into_iter().collect();
        assert_eq!(output_of(&["--env"], |request| request.env = kept(&env)), "A=1\nB=x=y\nEMPTY=");
        assert_eq!(output_of(&["--env"], |_| ()), "");
    }

    fn a_program_starts_in_the_directory_given() {
        mkdir("sub");
        let place = output_of(&["--cwd"], |request| request.cwd = b"sub");
        assert!(place.ends_with("/sub"), "{place}");
        let argv = arguments(&["--cwd"]);
        for (cwd, errno) in [("nowhere", Errno::NOENT), ("sub/../file", Errno::NOTDIR)] {
            make("file", b"");
            let program = path();
            let request = Spawn { path: &program, argv: argv.as_bytes(), cwd: cwd.as_bytes(), ..Spawn::default() };
            assert_eq!(abi::spawn(&request), Err(errno), "{cwd}");
        }
    }

    fn descriptors_are_moved_in_any_order() {
        make("one", b"1");
        make("two", b"2");
        let (one, two) = (opened("one", o::RDONLY), opened("two", o::RDONLY));
        // Each becomes the other, at the same time.
        let swapped = [FdMap { to: one, from: two }, FdMap { to: two, from: one }, FdMap { to: 0, from: one }];
        let ends = abi::pipe(true).expect("pipe");
        let all = [&swapped[..], &[FdMap { to: 1, from: ends.write }]].concat();
        let (program, argv) = (path(), arguments(&["--cat"]));
        let pid = abi::spawn(&Spawn { path: &program, argv: argv.as_bytes(), fds: &all, ..Spawn::default() });
        close(ends.write);
        assert_eq!(read_all(ends.read), b"1");
        succeeded(pid.expect("spawn"));
    }

    fn a_descriptor_can_be_closed_or_missing() {
        make("file", b"");
        let fd = opened("file", o::RDONLY);
        abi::dup2(fd, 5, false).expect("dup2");
        abi::dup2(fd, 6, true).expect("dup2");
        close(fd);
        let ends = abi::pipe(true).expect("pipe");
        let fds = [
            FdMap { to: 1, from: ends.write }, FdMap { to: 5, from: -1 }, FdMap { to: 33, from: -1 },
            // A mark does not matter to what is asked for by number.
            FdMap { to: 10, from: 6 },
        ];
        let (program, argv) = (path(), arguments(&["--fds"]));
        let request = Spawn { path: &program, argv: argv.as_bytes(), fds: &fds, ..Spawn::default() };
        let pid = abi::spawn(&request).expect("spawn");
        close(ends.write);
        assert_eq!(read_all(ends.read), b"[0, 1, 2, 10]\n");
        succeeded(pid);
        let fds = [FdMap { to: 1, from: 99 }];
        assert_eq!(abi::spawn(&Spawn { fds: &fds, ..request }), Err(Errno::BADF));
    }

    fn a_program_joins_the_group_asked_for() {
        let (program, argv) = (path(), arguments(&["--sleep"]));
        let request = Spawn { path: &program, argv: argv.as_bytes(), ..Spawn::default() };
        let leader = abi::spawn(&Spawn { group: Group::New, ..request }).expect("spawn");
        let member = abi::spawn(&Spawn { group: Group::Of(leader), ..request }).expect("spawn");
        let ours = abi::spawn(&request).expect("spawn");
        assert_eq!(abi::getpgid(leader), Ok(leader));
        assert_eq!(abi::getpgid(member), Ok(leader));
        assert_eq!(abi::getpgid(ours), abi::getpgid(0));
        for group in [1 << 20, ours] {
            assert_eq!(abi::spawn(&Spawn { group: Group::Of(group), ..request }), Err(Errno::PERM));
        }
        [leader, member, ours].into_iter().for_each(finish);
    }

    fn what_is_no_program_says_why() {
        mkdir("dir");
        make("plain", b"#!/bin/sh\n");
        script("noise", b"\x7fnothing anybody knows");
        script("empty", b"");
        symlink("loop", "loop");
        let long = "n".repeat(256);
        for (path, errno) in [
            ("nothing", Errno::NOENT), ("", Errno::NOENT), ("dir", Errno::ACCES), ("plain", Errno::ACCES),
            ("plain/x", Errno::NOTDIR), ("noise", Errno::NOEXEC), ("empty", Errno::NOEXEC), ("loop", Errno::LOOP),
            (&long, Errno::NAMETOOLONG),
        ] {
            assert_eq!(exec_error(path), errno, "exec of '{path}'");
            let argv: StringList = [path].into_iter().collect();
            let request = Spawn { path: path.as_bytes(), argv: argv.as_bytes(), ..Spawn::default() };
            assert_eq!(abi::spawn(&request), Err(errno), "spawn of '{path}'");
        }
        assert_eq!(abi::wait(abi::Who::Any, Default::default()), Err(Errno::CHILD), "no child is left behind");
    }

    fn too_many_arguments_are_refused() {
        // More than Linux takes however large its stack may be.
        let word = "x".repeat(1023);
        let argv: StringList = std::iter::repeat_n(word, 8 << 10).collect();
        let program = path();
        let request = Spawn { path: &program, argv: argv.as_bytes(), ..Spawn::default() };
        assert_eq!(abi::exec(&request), Errno::TOOBIG);
        assert_eq!(abi::spawn(&request), Err(Errno::TOOBIG));
    }

    fn a_megabyte_of_arguments_is_fine() {
        let word = "x".repeat(1023);
        let words: Vec<&str> = std::iter::once("--args").chain(std::iter::repeat_n(&*word, 1 << 10)).collect();
        let printed = output_of(&words, |_| ());
        assert_eq!(printed.matches('x').count(), 1023 << 10);
    }

    fn a_script_is_given_to_its_interpreter() {
        let program = path();
        script("script", &interpreted_by(&program, " --args"));
        let name = String::from_utf8_lossy(&program).into_owned();
        let argv: StringList = ["called", "one", "two"].into_iter().collect();
        let printed = printed(|| {
            let errno = abi::exec(&Spawn { path: b"./script", argv: argv.as_bytes(), ..Spawn::default() });
            panic!("exec: {errno}");
        });
        assert_eq!(printed, format!("{:?}", [&name, "--args", "./script", "one", "two"]));
    }

    fn an_interpreter_gets_one_argument_at_most() {
        let program = path();
        script("script", &interpreted_by(&program, "   --args  with  blanks \t"));
        script("bare", &interpreted_by(&program, ""));
        // The rest of the line is one argument, which no program here is called by.
        let argv: StringList = ["x"].into_iter().collect();
        for path in ["./script", "./bare"] {
            let pid = child(|| {
                abi::dup2(opened("/dev/null", o::WRONLY), 1, false).expect("dup2");
                let errno = abi::exec(&Spawn { path: path.as_bytes(), argv: argv.as_bytes(), ..Spawn::default() });
                panic!("exec: {errno}");
            });
            assert_eq!(ended(pid).code(), Some(1), "{path}");
        }
    }

    fn scripts_interpret_scripts_but_not_for_ever() {
        let program = path();
        script("s0", &interpreted_by(&program, " --args"));
        for i in 1..5 {
            script(&format!("s{i}"), format!("#!./s{}\n", i - 1).as_bytes());
        }
        script("self", b"#!./self\n");
        script("lost", b"#!./nowhere\n");
        script("nameless", b"#!\n");
        script("to_dir", b"#!/\n");
        for (path, errno) in [
            ("./self", Errno::LOOP), ("./lost", Errno::NOENT), ("./nameless", Errno::NOEXEC), ("./to_dir", Errno::ACCES),
        ] {
            assert_eq!(exec_error(path), errno, "{path}");
        }
        let argv: StringList = ["x"].into_iter().collect();
        let out = printed(|| {
            let errno = abi::exec(&Spawn { path: b"./s3", argv: argv.as_bytes(), ..Spawn::default() });
            panic!("exec: {errno}");
        });
        let name = String::from_utf8_lossy(&program).into_owned();
        assert_eq!(out, format!("{:?}", [&name, "--args", "./s0", "./s1", "./s2", "./s3"]));
    }

    #[cfg(target_os = "wasi")]
    fn an_exec_that_fails_has_changed_nothing() {
        make("file", b"");
        mkdir("sub");
        let fd = opened("file", o::RDONLY | o::CLOEXEC);
        flag(USR1);
        let fds = [FdMap { to: 20, from: fd }];
        let request = Spawn { path: b"nothing", cwd: b"sub", fds: &fds, ..Spawn::default() };
        let before = abi::getcwd();
        assert_eq!(abi::exec(&request), Errno::NOENT);
        assert_eq!(abi::getcwd(), before);
        assert_eq!(abi::cloexec(fd), Ok(true));
        assert_eq!(abi::cloexec(20), Err(Errno::BADF));
        assert_eq!(abi::disposition(USR1), Ok(abi::Disposition::Flag));
    }

    #[cfg(target_os = "wasi")]
    fn a_foreign_program_runs_like_any_other() {
        mkdir("sub");
        make("sub/file", b"hello");
        let argv: StringList = ["foreign", "x"].into_iter().collect();
        let printed = output_of(&[], |request| {
            request.path = b"/bin/foreign";
            request.argv = kept(&argv);
            request.cwd = b"sub";
        });
        assert!(printed.contains("args [\"foreign\", \"x\"]"), "{printed}");
        assert!(printed.contains("preopen 3 .\n") && printed.contains(" /tmp\n"), "{printed}");
        assert!(printed.contains("./file \"hello\""), "{printed}");
    }

    #[cfg(target_os = "wasi")]
    fn a_wasi_program_gets_the_preopens_named_and_no_more() {
        mkdir("given");
        mkdir("given/deep");
        make("given/file", b"inside");
        make("file", b"outside");
        let here = String::from_utf8(abi::getcwd().expect("getcwd")).expect("text");
        symlink("../file", "given/up");
        symlink(&format!("{here}/file"), "given/absolute");
        symlink("deep/../file", "given/around");
        symlink("/", "given/root");
        let argv: StringList = ["foreign", "in/file", "in/up", "in/absolute", "in/around", "in/root/etc", "in/../file",
            "file", "/tmp", "in/deep/../file"].into_iter().collect();
        let env: StringList = ["ONLY=this"].into_iter().collect();
        let printed = printed(|| {
            let fd = opened("given", o::RDONLY | o::DIRECTORY);
            let spare = opened("file", o::RDONLY);
            abi::dup2(spare, 40, false).expect("dup2");
            let preopens = [abi::Preopen { fd, name: b"in" }];
            let request = Spawn { path: b"/bin/foreign", argv: argv.as_bytes(), env: env.as_bytes(), ..Spawn::default() };
            let errno = abi::exec_wasi(&request, &preopens);
            panic!("exec_wasi: {errno}");
        });
        let lines: Vec<&str> = printed.lines().collect();
        assert!(lines.contains(&"preopen 3 in"), "{printed}");
        assert_eq!(lines.iter().filter(|line| line.starts_with("preopen")).count(), 1, "{printed}");
        assert!(lines.contains(&"env ONLY=this"), "{printed}");
        assert_eq!(lines.iter().filter(|line| line.starts_with("env ")).count(), 1, "{printed}");
        assert!(lines.contains(&"open [0, 1, 2, 3]"), "{printed}");
        for given in ["in/file", "in/around", "in/deep/../file"] {
            assert!(lines.contains(&&*format!("{given} \"inside\"")), "{given}: {printed}");
        }
        for outside in ["in/up", "in/absolute", "in/root/etc", "in/../file", "file", "/tmp"] {
            let line = lines.iter().find(|line| line.starts_with(&format!("{outside} "))).expect("a line for each");
            assert!(!line.contains('"'), "{line}");
        }
    }

    #[cfg(target_os = "wasi")]
    fn a_wasi_program_may_get_nothing_at_all() {
        let argv: StringList = ["foreign", "/tmp/x", "."].into_iter().collect();
        let request = Spawn { path: b"/bin/foreign", argv: argv.as_bytes(), ..Spawn::default() };
        let printed = printed(|| panic!("exec_wasi: {}", abi::exec_wasi(&request, &[])));
        assert!(!printed.contains("preopen") && printed.contains("open [0, 1, 2]"), "{printed}");
    }

    #[cfg(target_os = "wasi")]
    fn exec_wasi_refuses_what_it_cannot_confine() {
        make("file", b"");
        let (dir, file) = (opened(".", o::RDONLY), opened("file", o::RDONLY));
        let foreign = Spawn { path: b"/bin/foreign", argv: b"foreign\0", ..Spawn::default() };
        let ours = Spawn { path: b"/bin/usertests", ..foreign };
        assert_eq!(abi::exec_wasi(&ours, &[]), Errno::INVAL, "it has calls that no preopen confines");
        for (fd, errno) in [(99, Errno::BADF), (file, Errno::NOTDIR), (0, Errno::NOTDIR)] {
            assert_eq!(abi::exec_wasi(&foreign, &[abi::Preopen { fd, name: b"x" }]), errno, "{fd}");
        }
        let gone = Spawn { path: b"nothing", ..foreign };
        assert_eq!(abi::exec_wasi(&gone, &[abi::Preopen { fd: dir, name: b"x" }]), Errno::NOENT);
        assert!(abi::fstat(dir).is_ok() && abi::fstat(file).is_ok(), "a failure changes nothing");
    }
}

/// A list that outlives the request it is for.
fn kept(list: &StringList) -> &'static [u8] {
    list.as_bytes().to_vec().leak()
}
