//! This process and others: arguments, variables, children, signals, clocks, terminals, and waiting.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rquickjs::{Ctx, Object};
use wardian_abi::{self as abi, Disposition, Errno, Fd, FdMap, Group, Spawn, StringList, WaitFlags, Who};

use super::Answer;

fn lossy(strings: Vec<Vec<u8>>) -> Vec<String> {
    strings.into_iter().map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
}

/// Starts a program: its descriptors are `fds[N]` as N.
fn spawn(
    path: String,
    argv: Vec<String>,
    env: Vec<String>,
    cwd: String,
    fds: Vec<Fd>,
    own_group: bool,
) -> Answer<i32> {
    let (argv, env): (StringList, StringList) = (argv.iter().collect(), env.iter().collect());
    let fds: Vec<FdMap> = fds.iter().enumerate().map(|(to, &from)| FdMap { to: to as Fd, from }).collect();
    Answer(abi::spawn(&Spawn {
        path: path.as_bytes(),
        argv: argv.as_bytes(),
        env: env.as_bytes(),
        cwd: cwd.as_bytes(),
        fds: &fds,
        group: if own_group { Group::New } else { Group::Caller },
    }))
}

/// Waits for a child: its code or -1, and the signal that ended it or 0. Nothing if it still runs.
fn wait(pid: i32, hang: bool) -> Answer<Option<Vec<i32>>> {
    loop {
        match abi::wait(Who::Child(pid), WaitFlags { no_hang: !hang, stopped: false }) {
            Err(Errno::INTR) if hang => {}
            done => {
                let status = |(_, status): (_, abi::Status)| {
                    vec![status.code().unwrap_or(-1), status.signal().unwrap_or(0)]
                };
                return Answer(done.map(|ended| ended.map(status)));
            }
        }
    }
}

fn pipe() -> Answer<Vec<Fd>> {
    Answer(abi::pipe(true).map(|ends| vec![ends.read, ends.write]))
}

/// Has a signal do what it does by itself (0), nothing (1), or be kept for `signals` (2).
fn on_signal(signal: i32, what: i32) -> Answer<()> {
    let disposition = match what {
        1 => Disposition::Ignore,
        2 => Disposition::Flag,
        _ => Disposition::Default,
    };
    Answer(abi::sigaction(signal, disposition).map(|_| ()))
}

/// The signals that came since the last call.
fn signals() -> Vec<i32> {
    let pending = abi::sigpending();
    (1..64).filter(|signal| pending >> signal & 1 == 1).collect()
}

/// Waits until one of the descriptors can be read (bit 1 of what is wanted) or written (bit 2), at most so many
/// milliseconds, or for ever if negative. Returns what each can do.
fn poll(fds: Vec<Fd>, wanted: Vec<i32>, timeout: f64) -> Answer<Vec<i32>> {
    let events = |wanted: i32| {
        let read = if wanted & 1 != 0 { libc::POLLIN } else { 0 };
        read | if wanted & 2 != 0 { libc::POLLOUT } else { 0 }
    };
    let mut polled: Vec<libc::pollfd> = fds
        .iter()
        .zip(&wanted)
        .map(|(&fd, &wanted)| libc::pollfd { fd, events: events(wanted), revents: 0 })
        .collect();
    let timeout = if timeout < 0.0 { -1 } else { timeout.min(f64::from(i32::MAX)).ceil() as i32 };
    if polled.is_empty() && timeout >= 0 {
        std::thread::sleep(std::time::Duration::from_millis(timeout as u64));
        return Answer(Ok(vec![]));
    }
    // SAFETY: the array has as many elements as its length says.
    let count = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };
    if count < 0 {
        return Answer(Err(std::io::Error::last_os_error().into()));
    }
    let able = |polled: &libc::pollfd, wanted: i32| {
        // An error or the end of a stream is found by reading or writing.
        let all = polled.revents & !(libc::POLLIN | libc::POLLOUT) != 0;
        let read = i32::from(all || polled.revents & libc::POLLIN != 0);
        wanted & (read | i32::from(all || polled.revents & libc::POLLOUT != 0) << 1)
    };
    Answer(Ok(polled.iter().zip(&wanted).map(|(polled, &wanted)| able(polled, wanted)).collect()))
}

/// Nanoseconds of a clock that only goes forward.
fn hrtime() -> f64 {
    thread_local! {
        static START: Instant = Instant::now();
    }
    START.with(|start| start.elapsed().as_nanos() as f64)
}

/// Milliseconds since 1970, with a fraction.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_nanos() as f64 / 1e6)
}

fn times() -> Vec<f64> {
    let times = abi::times();
    [times.user, times.system].map(|nanos| nanos as f64 / 1000.0).to_vec()
}

/// Lets a terminal give each key at once, or whole lines again.
fn raw_mode(fd: Fd, raw: bool) -> Answer<()> {
    const ECHO_ICANON_ISIG_IEXTEN: u32 = 0o10 | 0o2 | 0o1 | 0o100_000;
    const ICRNL_IXON: u32 = 0o400 | 0o2000;
    let set = || {
        let mut mode = abi::tcgetattr(fd)?;
        if raw {
            mode.local &= !ECHO_ICANON_ISIG_IEXTEN;
            mode.input &= !ICRNL_IXON;
        } else {
            mode.local |= ECHO_ICANON_ISIG_IEXTEN;
            mode.input |= ICRNL_IXON;
        }
        abi::tcsetattr(fd, &mode, false)
    };
    Answer(set())
}

fn window(fd: Fd) -> Answer<Vec<u16>> {
    Answer(abi::winsize(fd).map(|(rows, columns)| vec![rows, columns]))
}

fn exit(code: i32) {
    abi::exit(code);
}

pub fn register<'js>(ctx: &Ctx<'js>, bridge: &Object<'js>) -> rquickjs::Result<()> {
    bridge.set("wasi", cfg!(target_os = "wasi"))?;
    crate::functions!(ctx, bridge;
        "spawn" => spawn, "wait" => wait, "pipe" => pipe, "onSignal" => on_signal, "signals" => signals,
        "poll" => poll, "hrtime" => hrtime, "now" => now, "times" => times, "rawMode" => raw_mode,
        "window" => window, "exit" => exit,
        "args" => || lossy(abi::args()),
        "environ" => || lossy(abi::environ()),
        "pid" => abi::getpid, "ppid" => abi::getppid, "uid" => abi::getuid, "gid" => abi::getgid,
        "isatty" => abi::isatty,
        "kill" => |pid: i32, signal: i32| Answer(abi::kill(Who::from_number(pid), signal)),
        "setNonblocking" => |fd: Fd, value: bool| Answer(abi::set_nonblocking(fd, value)),
        "setCloexec" => |fd: Fd, value: bool| Answer(abi::set_cloexec(fd, value).map(|_| ())),
    );
    Ok(())
}
