//! Attempts to get out, to break things, or to use up more than one's share; each with the outcome it must have.
//!
//! All run against sandboxes with tight limits and a host directory mounted read-only, with a secret beside it. After
//! each the sandbox must still answer, the tree must be sound, and the host must be as it was.

use std::path::Path;
use std::time::Duration;

use wardian::internals::Inside;
use wardian::{Limits, MountMode, Run, RunResult, Sandbox};

use crate::support::text;

/// What an attempt must come to.
enum Outcome {
    /// Exactly this on standard output.
    Prints(&'static str),
    /// A failure, with this in what it says.
    Fails(&'static str),
    /// This limit is named in the result.
    Limit(&'static str),
    /// It never ends by itself, and is ended on time.
    TimesOut,
}
use Outcome::{Fails, Limit, Prints, TimesOut};

/// What it tries, the script, the outcome.
type Attempt = (&'static str, &'static str, Outcome);

fn limits() -> Limits {
    Limits {
        fs_bytes: 4 << 20,
        file_count: 500,
        memory_bytes: 48 << 20,
        // Few enough that forks which have not become programs yet fit into the memory, however many of them there are at once.
        processes: 16,
        open_files: 32,
        stdout_bytes: 64 << 10,
        stderr_bytes: 64 << 10,
        ..Limits::default()
    }
}

/// A directory to mount, with a secret beside it and links that lead to it.
fn host() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("secret"), "SECRET\n").unwrap();
    let shared = dir.path().join("shared");
    std::fs::create_dir_all(shared.join("sub")).unwrap();
    std::fs::write(shared.join("file"), "shared\n").unwrap();
    std::os::unix::fs::symlink("../secret", shared.join("relative")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("secret"), shared.join("absolute")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", shared.join("system")).unwrap();
    dir
}

async fn attempt(dir: &Path, (what, script, outcome): Attempt) {
    let builder = Sandbox::builder().limits(limits()).mount(dir.join("shared"), "/src", MountMode::ReadOnly);
    let sandbox = builder.mount(dir.join("shared"), "/over", MountMode::Overlay).build().await.unwrap();
    let timeout = if matches!(outcome, TimesOut) { 300 } else { 20_000 };
    let result =
        sandbox.run_with(Run::new(script).timeout(Some(Duration::from_millis(timeout)))).await.unwrap();
    check(what, &outcome, &result);
    assert!(!result.stdout.windows(6).any(|six| six == b"SECRET"), "{what}: the secret is out");
    let after = sandbox.run("cd /; unset -f echo; builtin echo alive").await.unwrap();
    assert_eq!(text(after.stdout), "alive\n", "{what}: {}", text(after.stderr));
    let machine = sandbox.machine();
    assert_eq!(machine.tree().await.fsck(), Ok(()), "{what}");
    sandbox.destroy().await;
}

fn check(what: &str, outcome: &Outcome, result: &RunResult) {
    let (stdout, stderr) = (String::from_utf8_lossy(&result.stdout), String::from_utf8_lossy(&result.stderr));
    let shown: String = stderr.chars().take(300).collect();
    match outcome {
        Prints(expected) => assert_eq!(stdout, *expected, "{what}: exit {}, {shown}", result.exit_code),
        Fails(words) => {
            assert_ne!(result.exit_code, 0, "{what}: {stdout}");
            assert!(stderr.to_lowercase().contains(words), "{what}: exit {}, {shown}", result.exit_code);
        }
        Limit(limit) => assert_eq!(
            result.limit.map(|limit| limit.name()),
            Some(*limit),
            "{what}: exit {}, {shown}",
            result.exit_code
        ),
        TimesOut => assert_eq!(result.exit_code, 124, "{what}: {stdout} {shown}"),
    }
}

async fn all(attempts: Vec<Attempt>) {
    let dir = host();
    let mut failed = Vec::new();
    for this in attempts {
        let what = this.0;
        let path = dir.path().to_owned();
        // In a task of its own, so that one failure does not hide the others.
        if let Err(panic) = tokio::spawn(async move { attempt(&path, this).await }).await {
            failed.push((what, panic));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(std::fs::read_to_string(dir.path().join("secret")).unwrap(), "SECRET\n");
    assert_eq!(std::fs::read_to_string(dir.path().join("shared/file")).unwrap(), "shared\n");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    assert_eq!(std::fs::read_dir(dir.path().join("shared")).unwrap().count(), 5);
}

#[tokio::test]
async fn escapes_by_path_link_and_mount() {
    all(vec![
        ("dots above the root", "cat /../../../../../../etc/shadow", Fails("no such file")),
        ("dots out of a mount", "cat /src/../secret", Fails("no such file")),
        ("many dots out of a mount", "cd /src/sub; cat ../../../../secret", Fails("no such file")),
        ("dots out of an overlay", "cat /over/../secret /over/sub/../../secret", Fails("no such file")),
        ("a relative link out of a mount", "cat /src/relative", Fails("no such file")),
        ("an absolute link out of a mount", "cat /src/absolute", Fails("no such file")),
        ("a host's link means the sandbox's file", "cat /src/system", Prints("wardian\n")),
        ("a link out of an overlay", "cat /over/relative", Fails("no such file")),
        ("writing through a link out of an overlay", "echo x > /over/absolute", Fails("no such file")),
        (
            "a new link out of an overlay",
            "ln -s ../../secret /over/new && cat /over/new",
            Fails("no such file"),
        ),
        (
            "moving a directory up and stepping out",
            "mv /over/sub /over/s && cd /over/s && cat ../../secret",
            Fails("no such file"),
        ),
        ("a hard link out of a read-only mount", "ln /src/file /tmp/f", Fails("cross-device")),
        ("a hard link into a read-only mount", "echo x > /tmp/f; ln /tmp/f /src/f", Fails("")),
        ("writing to a read-only mount", "echo x > /src/file", Fails("read-only")),
        ("removing from a read-only mount", "rm -rf /src/file", Fails("read-only")),
        ("renaming over a read-only mount", "mv /src /elsewhere", Fails("")),
        ("changing a mode on a read-only mount", "chmod 777 /src/file", Fails("read-only")),
        ("touching a read-only mount", "touch /src/file", Fails("read-only")),
        ("a loop of links", "ln -s a /tmp/b; ln -s b /tmp/a; cat /tmp/a", Fails("too many levels")),
        ("a link to itself", "ln -s self /tmp/self; cd /tmp/self", Fails("too many levels")),
        (
            "a name with a newline and a dash",
            "cd /tmp; echo x > $'-rf\\n*'; ls | wc -l; cat ./-rf*",
            Prints("2\nx\n"),
        ),
        (
            "names that look like options",
            "cd /tmp; touch -- -rf --help; mkdir d; rm -f -- *; ls -A",
            Prints("d\n"),
        ),
        (
            "names that are not UTF-8",
            "cd /tmp; echo x > $'\\xff\\xfe'; cat $'\\xff\\xfe'; ls | od -An -tx1 | tr -d ' '",
            Prints("x\nfffe0a\n"),
        ),
        ("dots as names", "mkdir '/tmp/...' && cd '/tmp/...' && pwd", Prints("/tmp/...\n")),
        ("a path longer than paths are", "cat /tmp/$(printf 'a/%.0s' $(seq 3000))", Fails("too long")),
        ("a name longer than names are", "touch /tmp/$(printf 'a%.0s' $(seq 300))", Fails("too long")),
        ("the system's programs", "echo x > /bin/ls", Fails("permission denied")),
        ("removing the system's programs", "rm -rf /bin/ls /usr /etc", Fails("permission denied")),
        ("the system's files", "echo x >> /etc/passwd", Fails("permission denied")),
        (
            "becoming root by a mode",
            "printf '#!/bin/sh\\nid -u\\n' > /tmp/id; chmod 4777 /tmp/id; /tmp/id",
            Prints("1000\n"),
        ),
    ])
    .await;
}

#[tokio::test]
async fn escapes_by_proc_descriptors_and_signals() {
    all(vec![
        ("the memory of the host", "cat /proc/self/mem", Fails("")),
        ("the host's processes", "ls -d /proc/[0-9]* | wc -l", Prints("1\n")),
        ("the host's environment", "cat /proc/1/environ | tr '\\0' '\\n' | grep -c CARGO", Prints("0\n")),
        ("the host's root by /proc", "ls /proc/1/root/home", Fails("no such file")),
        ("another's descriptor by /proc", "cat /proc/999/fd/0", Fails("no such file")),
        ("writing to /proc", "echo x > /proc/sys/kernel/hostname", Fails("")),
        ("making files in /proc", "touch /proc/x", Fails("")),
        ("a closed descriptor", "exec 9>&-; echo x >&9", Fails("bad file descriptor")),
        (
            "a descriptor of a process that is gone",
            "exec 7< <(echo x); cat <&7; cat <&7; echo done",
            Prints("x\ndone\n"),
        ),
        (
            "a descriptor used again means the new file",
            "cd /tmp; echo a > a; echo b > b; exec 8<a; exec 8<b; cat <&8",
            Prints("b\n"),
        ),
        (
            "a removed file's name means the new file",
            "cd /tmp; echo a > f; exec 8<f; rm f; echo b > f; cat <&8; cat f",
            Prints("a\nb\n"),
        ),
        ("reading a directory as a file", "cat < /tmp", Fails("is a directory")),
        ("killing all there is", "kill -9 -1; echo $?", Prints("1\n")),
        ("killing the host's first process", "kill -9 1; echo here", Fails("")),
        ("killing a process of another's", "kill -9 4242", Fails("no such process")),
        ("a group that is not one's own", "kill -TERM -- -4242", Fails("no such process")),
        ("ignoring what cannot be ignored", "trap '' KILL; bash -c 'kill -9 $$'; echo $?", Prints("137\n")),
        ("stopping oneself for ever", "bash -c 'kill -STOP $$'", TimesOut),
        ("ignoring every signal", "trap '' HUP INT TERM QUIT USR1; while :; do :; done", TimesOut),
        ("a terminal that is not there", "echo x > /dev/tty", Fails("no such device")),
        ("devices of the host", "cat /dev/sda /dev/mem /dev/kmsg", Fails("no such file")),
        ("a device of one's own", "mknod /tmp/sda b 8 0", Fails("")),
        ("mounting", "mount /dev/sda /tmp", Fails("")),
        ("the network", "exec 3<>/dev/tcp/127.0.0.1/22", Fails("")),
    ])
    .await;
}

#[tokio::test]
async fn bombs() {
    all(vec![
        ("a fork bomb", ":() { : | : & }; :; while :; do :; done", Limit("processes")),
        ("a fork bomb says so", "for i in $(seq 40); do sleep 100 & done", Limit("processes")),
        ("a tree of shells", "f() { bash -c \"$(declare -f f); f\"; }; f", Limit("processes")),
        ("memory in a variable", "x=x; while :; do x=$x$x; done", Limit("memoryBytes")),
        ("memory in an array", "while :; do a+=(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx); done", Limit("memoryBytes")),
        ("memory in a tool", "head -c 200000000 /dev/zero | tr '\\0' a | sort | wc -c", Limit("memoryBytes")),
        ("recursion of a function", "f() { f; }; f", Fails("")),
        ("recursion of eval", "e='eval \"$e\"'; eval \"$e\"", Fails("")),
        ("recursion of source", "echo '. /tmp/s' > /tmp/s; . /tmp/s", Fails("")),
        ("recursion of arithmetic", "x=x; echo $((x))", Fails("recursion")),
        ("nested parentheses", "eval \"echo $(printf '$(%.0s' $(seq 3000)) $(printf ')%.0s' $(seq 3000))\"; echo end", Prints("end\n")),
        ("nested braces", "eval \"$(printf '{ %.0s' $(seq 20000))\"", Fails("")),
        ("descriptors", "for i in $(seq 3 60); do eval \"exec $i</dev/null\" || exit 1; done", Fails("")),
        ("descriptors by the shell's own choice", "while exec {fd}< /dev/null; do :; done; echo end", Limit("openFiles")),
        ("a large file", "head -c 10M /dev/zero > /tmp/big", Limit("fsLimitBytes")),
        ("many files of a byte", "for i in $(seq 600); do echo > /tmp/$i; done", Limit("fileCount")),
        ("many directories", "for i in $(seq 600); do mkdir /tmp/$i; done", Limit("fileCount")),
        ("many links", "for i in $(seq 600); do ln -s x /tmp/$i; done", Limit("fileCount")),
        ("many hard links", "echo x > /tmp/f; for i in $(seq 1200); do ln /tmp/f /tmp/$i; done", Limit("fileCount")),
        ("a sparse file costs nothing", "truncate -s 1T /tmp/s && stat -c %s /tmp/s && rm /tmp/s", Prints("1099511627776\n")),
        ("a sparse file read is bounded by time", "truncate -s 8E /tmp/s; cat /tmp/s > /dev/null", Fails("")),
        ("writing for ever", "while :; do echo x > /tmp/f; done", TimesOut),
        ("a flood of output", "yes | head -c 3000000", Limit("stdoutBytes")),
        ("a flood of errors", "yes | head -c 3000000 >&2", Limit("stderrBytes")),
        ("an environment", "export x=$(head -c 3000000 /dev/zero | tr '\\0' a); /bin/true", Fails("argument list too long")),
        ("a pattern that backtracks", "x=$(printf 'a%.0s' $(seq 40)); echo $x | grep -E '(a+)+$' | wc -l", Prints("1\n")),
        ("a backreference that backtracks", "x=$(printf 'a%.0s' $(seq 2000)); [[ $x =~ ^(a*)*b$ ]]; echo $?", Prints("1\n")),
        ("a glob that explodes", "cd /tmp; touch $(printf 'a%.0s' $(seq 100)); [[ $(echo *) == *a*a*a*a*a*a*a*a*a*a*a*a*b ]]; echo $?", Prints("1\n")),
        ("braces that explode", "echo {1..9}{1..9}{1..9}{1..9}{1..9}{1..9}{1..9}{1..9}{1..9}", Limit("memoryBytes")),
        ("a pipe that nobody reads", "yes | sleep 1000", TimesOut),
        ("a FIFO that nobody opens", "mkfifo /tmp/p; cat /tmp/p", TimesOut),
        ("a lock on oneself", "mkfifo /tmp/p; exec 3<>/tmp/p; cat <&3", TimesOut),
        ("an endless device", "cat /dev/zero > /dev/null", TimesOut),
        ("sleeping for ever", "sleep infinity", TimesOut),
        ("a pipeline of a hundred stages", "eval \"echo x $(printf '| cat %.0s' $(seq 100))\"", Limit("processes")),
        ("a loop of aliases", "shopt -s expand_aliases\nalias a='b' b='a'\na", Fails("not found")),
        ("a here-document without end", "cat <<E\nunfinished", Prints("unfinished\n")),
        ("a builtin overwritten", "echo() { builtin echo mine; }; echo x", Prints("mine\n")),
        ("exit in every corner", "trap 'exit 5' EXIT; (exit 3); exit 4", Fails("")),
        ("a date beyond time", "touch -d @99999999999999 /tmp/f; echo end", Prints("end\n")),
        ("a seek beyond the end", "dd if=/dev/zero of=/tmp/f bs=1 count=1 seek=9223372036854775807", Fails("")),
        ("a program that is no program", "head -c 1000 /dev/urandom > /tmp/x; printf '\\0asm\\1\\0\\0\\0junk' > /tmp/y; chmod +x /tmp/y; /tmp/y", Fails("cannot run")),
        ("an interpreter that is itself", "printf '#!/tmp/i\\n' > /tmp/i; chmod +x /tmp/i; /tmp/i", Fails("")),
    ])
    .await;
}

/// What Python can try that a shell cannot: each ends in an error, or in the end of that process and nothing more.
#[tokio::test]
async fn python_stays_inside() {
    all(vec![
        (
            "paths and links out of a mount",
            "python3 - <<'E'
import os
for path in ('/src/../secret', '/src/relative', '/src/absolute', '/over/relative', '/proc/self/root/src/../secret', '/../secret', '/proc/1/root/secret'):
    try: print(os.read(os.open(path, os.O_RDONLY), 9))
    except OSError: print('no')
E",
            Prints("no\nno\nno\nno\nno\nno\nno\n"),
        ),
        (
            "memory, devices and descriptors that are not its own",
            "python3 - <<'E'
import io, os
for path in ('/proc/self/mem', '/proc/kcore', '/dev/mem', '/dev/kmsg', '/proc/sys/kernel/core_pattern'):
    try: io.FileIO(path, 'r+').read(1); print('?', path)
    except OSError: pass
for fd in range(3, 3000):
    try: os.fstat(fd); print('?', fd)
    except OSError: pass
print('end')
E",
            Prints("end\n"),
        ),
        (
            "another user, another root, another's process",
            "python3 - <<'E'
import os, signal
for call in (lambda: os.setuid(0), lambda: os.chroot('/tmp'), lambda: os.mknod('/tmp/d', 0o60600, os.makedev(8, 0)), lambda: os.kill(99999, signal.SIGKILL), lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)):
    try: call(); print('?')
    except (OSError, AttributeError): print('no')
E",
            Prints("no\nno\nno\nno\nno\n"),
        ),
        (
            "an archive with names that lead out of it",
            "cd /tmp && python3 - <<'E'
import os, sys, zipfile, zipimport
with zipfile.ZipFile('a.zip', 'w') as z:
    z.writestr('../../secret.py', 'x = 1'); z.writestr('/src/up.py', 'x = 1'); z.writestr('fine.py', 'x = 2')
sys.path.insert(0, '/tmp/a.zip')
import fine
for name in ('up', '..secret', '../../nosuch'):
    try: zipimport.zipimporter('/tmp/a.zip').load_module(name); print('?')
    except ImportError: print('no')
zipfile.ZipFile('a.zip').extractall('/tmp/out')
print(fine.x, sorted(os.listdir('/tmp')))
E",
            Prints("no\nno\nno\n2 ['a.zip', 'out']\n"),
        ),
        (
            "bytecode that crashes the interpreter",
            "python3 - <<'E' 2> /dev/null || echo \"ended by $?\"
import dis
code = [dis.opmap['EXTENDED_ARG'], 15, dis.opmap['EXTENDED_ARG'], 255, dis.opmap['EXTENDED_ARG'], 255, dis.opmap['LOAD_CONST'], 255]
exec((lambda: 0).__code__.replace(co_code=bytes(code) + bytes([dis.opmap['RETURN_VALUE'], 0])))
E
python3 -c 'print(6 * 7)'",
            Prints("ended by 139\n42\n"),
        ),
        ("bytes that are no bytecode", "cd /tmp; head -c 300 /dev/zero > m.pyc; python3 m.pyc", Fails("")),
    ])
    .await;
}
