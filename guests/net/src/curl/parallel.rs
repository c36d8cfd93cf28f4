//! `-Z`: many transfers at once, each in a process of its own, since programs here have one thread.

use super::operation::{Operation, Target};
use super::options::{Global, Parsed};
use super::overview::Overview;
use super::run::{self, Job};
use super::urls::Urls;
use super::worker::{self, Kind, Teller};
use super::{Failure, Session};
use crate::http::url::Url;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;
use wardian_abi as abi;
use wardian_abi::{Errno, Who};

/// How long to wait for news before looking whether a transfer has ended without any.
const LOOK: Duration = Duration::from_millis(500);

/// Codes after which nothing else is worth trying: no memory, a wrong use of the library.
const FATAL: [i32; 5] = [2, 27, 41, 43, 48];

/// Performs everything; returns the exit code. The error is one that was found before anything began.
pub fn all(parsed: &Parsed) -> Result<i32, i32> {
    let global = &parsed.global;
    let ready: Result<Vec<Operation>, i32> =
        parsed.operations.iter().map(|operation| run::ready(operation, global)).collect();
    let operations = ready?;
    let pipe = abi::pipe(true).map_err(|_| 2)?;
    // Whoever ends this process ends the transfers.
    let before = abi::sigaction(worker::GIVE_UP, abi::Disposition::Flag).map_err(|_| 2)?;
    let mut pool = Pool {
        global,
        most: most(global),
        session: Session::new(global.verbose),
        jobs: operations.iter().map(|operation| (operation, Urls::of(operation))).collect(),
        prepared: HashSet::new(),
        live: Vec::new(),
        known: HashMap::new(),
        number: 0,
        pipe,
        unread: Vec::new(),
        code: 0,
        stops: false,
        overview: Overview::new(shows(global, &operations)),
    };
    pool.run();
    let code = pool.code;
    pool.overview.finish(&pool.progress(), 0);
    for operation in &operations {
        run::save_cookies(&pool.session, operation);
    }
    // Nothing waits any more: a signal that comes now does what it would have done.
    let _ = abi::sigaction(worker::GIVE_UP, before);
    Ok(code)
}

/// How many transfers there may be at once: what was asked for, if there are descriptors for so many.
fn most(global: &Global) -> usize {
    let descriptors = abi::getrlimit(abi::Resource::Descriptors).map_or(-1, |limit| limit.soft);
    match usize::try_from(descriptors) {
        Ok(descriptors) => global.parallel_max.min((descriptors / 4).max(1)),
        Err(_) => global.parallel_max,
    }
}

/// Whether progress is shown: not if a terminal shows content.
fn shows(global: &Global, operations: &[Operation]) -> bool {
    let mut targets = operations.iter().flat_map(|operation| &operation.targets);
    let on_output = targets.any(|target| target.output.is_none() && !target.remote_name);
    let hidden = global.silent || global.no_meter || on_output && abi::isatty(1);
    !hidden
}

/// Waits for a process to end.
fn end_of(pid: abi::Pid) -> Option<abi::Status> {
    loop {
        match abi::wait(Who::Child(pid), abi::WaitFlags::default()) {
            Err(Errno::INTR) => {}
            ended => return ended.ok().flatten().map(|(_, status)| status),
        }
    }
}

/// A transfer that has begun, or waits for another to find out about its server.
struct Live<'a> {
    operation: &'a Operation,
    target: Target,
    url: String,
    number: u64,
    /// Its server, unless it needs none.
    place: Option<String>,
    /// Its process, once it has one, and how that ended.
    pid: Option<abi::Pid>,
    status: Option<abi::Status>,
    /// The cookies it began with, and those it has said to have now.
    before: String,
    cookies: Vec<u8>,
    progress: [u64; 4],
}

/// What is known about a server.
#[derive(PartialEq, Eq)]
enum Known {
    /// The transfer of this number finds out whether it takes several requests on one connection.
    Asked(u64),
    /// It does not.
    Serial,
}

struct Pool<'a> {
    global: &'a Global,
    most: usize,
    session: Session,
    jobs: VecDeque<(&'a Operation, Urls<'a>)>,
    /// The operations whose cookies were read, by address.
    prepared: HashSet<*const Operation>,
    live: Vec<Live<'a>>,
    known: HashMap<String, Known>,
    number: u64,
    pipe: abi::Pipe,
    /// What was read and is no whole message yet.
    unread: Vec<u8>,
    code: i32,
    /// Nothing more is begun.
    stops: bool,
    overview: Overview,
}

impl<'a> Pool<'a> {
    fn run(&mut self) {
        loop {
            self.begin();
            if self.live.is_empty() {
                return;
            }
            self.overview.show(&self.progress(), self.live.len());
            self.listen();
            if abi::sigpending() & 1 << worker::GIVE_UP != 0 {
                self.give_up();
                abi::exit(128 + worker::GIVE_UP);
            }
            self.reap();
        }
    }

    /// Begins as many transfers as there may be.
    fn begin(&mut self) {
        while !self.stops && self.live.len() < self.most {
            let Some(next) = self.next() else { break };
            self.live.push(next);
        }
        let mut at = 0;
        while at < self.live.len() {
            if self.live[at].pid.is_some() || !self.may_begin(at) {
                at += 1;
                continue;
            }
            match self.fork(at) {
                Ok(pid) => {
                    self.live[at].pid = Some(pid);
                    at += 1;
                }
                // There are as many processes as there may be: it waits for one of them, or does without.
                Err(_) if self.live.iter().any(|live| live.pid.is_some()) => return,
                Err(_) => self.here(at),
            }
        }
    }

    /// Takes the next URL. A pattern that is none ends everything.
    fn next(&mut self) -> Option<Live<'a>> {
        loop {
            let (operation, urls) = self.jobs.front_mut()?;
            let operation = *operation;
            match urls.next() {
                None => drop(self.jobs.pop_front()),
                Some(Err(failure)) => {
                    run::say(self.global, &failure);
                    self.code = failure.code;
                    self.give_up();
                    return None;
                }
                Some(Ok((target, url))) => {
                    let place = self.prepare(operation, &url);
                    let number = self.number;
                    self.number += 1;
                    self.overview.added += 1;
                    return Some(Live {
                        operation,
                        target,
                        url,
                        number,
                        place,
                        pid: None,
                        status: None,
                        before: String::new(),
                        cookies: Vec::new(),
                        progress: [0; 4],
                    });
                }
            }
        }
    }

    /// Does what the first transfer of an operation does for all; returns the URL's server.
    fn prepare(&mut self, operation: &'a Operation, url: &str) -> Option<String> {
        let default = operation.default_protocol.as_deref().unwrap_or("http");
        let url = Url::parse(url, default).ok()?;
        if self.prepared.insert(std::ptr::from_ref(operation)) {
            self.session.load_cookies(operation, &url);
            self.session.start_headers(operation);
        }
        (url.scheme != "file").then(|| format!("{}:{}", url.host, url.port_or_default()))
    }

    /// Whether a transfer may begin. Unless told otherwise, curl waits for the first answer of a server: it might take several
    /// requests on one connection.
    fn may_begin(&mut self, at: usize) -> bool {
        let Live { place, number, .. } = &self.live[at];
        let Some(place) = place.as_ref().filter(|_| !self.global.parallel_immediate) else { return true };
        match self.known.get(place) {
            Some(Known::Serial) => true,
            Some(Known::Asked(asks)) => asks == number,
            None => {
                self.known.insert(place.clone(), Known::Asked(*number));
                true
            }
        }
    }

    /// Gives a transfer a process of its own.
    fn fork(&mut self, at: usize) -> Result<abi::Pid, Errno> {
        let (global, session, live) = (self.global, &mut self.session, &mut self.live[at]);
        session.keeps_cookies = live.operation.keeps_cookies();
        live.before = if session.keeps_cookies { session.jar.lines() } else { String::new() };
        let (parent, live) = (abi::getpid(), &self.live[at]);
        let teller = Teller { pipe: self.pipe.write, number: live.number };
        abi::fork(move || {
            worker::begin(parent);
            session.teller = Some(teller);
            session.connections = live.number as usize;
            let global = Global { no_meter: true, ..global.clone() };
            let code = live.job(&global).run(session, &mut true);
            if session.keeps_cookies {
                teller.tell(Kind::Cookies, session.jar.lines().as_bytes());
            }
            teller.tell(Kind::End, b"");
            code
        })
    }

    /// Performs a transfer in this process, where no other can be made.
    fn here(&mut self, at: usize) {
        let live = self.live.remove(at);
        self.session.keeps_cookies = live.operation.keeps_cookies();
        let global = Global { no_meter: true, ..self.global.clone() };
        let code = live.job(&global).run(&mut self.session, &mut true);
        self.ended(&live, code);
    }

    /// Reads what the transfers say, if they say anything soon.
    fn listen(&mut self) {
        let mut buffer = [0; 16 * 1024];
        if !matches!(abi::poll_read(self.pipe.read, Some(LOOK)), Ok(true)) {
            return;
        }
        let Ok(count) = abi::read(self.pipe.read, &mut buffer) else { return };
        self.unread.extend_from_slice(&buffer[..count]);
        let unread = std::mem::take(&mut self.unread);
        let mut rest = unread.as_slice();
        while let Some((number, kind, bytes, after)) = worker::message(rest) {
            rest = after;
            self.hear(number, kind, bytes);
        }
        self.unread = rest.to_vec();
    }

    fn hear(&mut self, number: u64, kind: Kind, bytes: &[u8]) {
        let Some(live) = self.live.iter_mut().find(|live| live.number == number) else { return };
        match kind {
            Kind::Answered => {
                if let Some(place) = live.place.clone() {
                    self.known.insert(place, Known::Serial);
                }
            }
            Kind::Progress => {
                for (value, bytes) in live.progress.iter_mut().zip(bytes.chunks_exact(8)) {
                    *value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
                }
            }
            Kind::Cookies => live.cookies.extend_from_slice(bytes),
            // It is as good as gone: nothing is left to do for it.
            Kind::End => {
                if let (Some(pid), None) = (live.pid, live.status) {
                    live.status = end_of(pid);
                }
                self.take(number);
            }
        }
    }

    /// Finds the transfers that ended without a word.
    fn reap(&mut self) {
        let flags = abi::WaitFlags { no_hang: true, ..Default::default() };
        let mut gone = Vec::new();
        for live in &mut self.live {
            if let (Some(pid), None) = (live.pid, live.status)
                && let Ok(Some((_, status))) = abi::wait(Who::Child(pid), flags)
            {
                live.status = Some(status);
                gone.push(live.number);
            }
        }
        // Their last words may still be in the pipe.
        while !gone.is_empty() && matches!(abi::poll_read(self.pipe.read, Some(Duration::ZERO)), Ok(true)) {
            self.listen();
        }
        gone.into_iter().for_each(|number| self.take(number));
    }

    /// A transfer's process has ended.
    fn take(&mut self, number: u64) {
        let Some(at) = self.live.iter().position(|live| live.number == number) else { return };
        let live = self.live.remove(at);
        let code = live.status.and_then(abi::Status::code);
        if live.operation.keeps_cookies() && code.is_some() {
            self.session.jar.merge(&live.before, &String::from_utf8_lossy(&live.cookies));
        }
        let code = code.unwrap_or_else(|| {
            let signal = live.status.and_then(abi::Status::signal).unwrap_or_default();
            let words = format!("The process of this transfer was ended by signal {signal}");
            run::say(self.global, &Failure::new(worker::ABORTED, &words));
            worker::ABORTED
        });
        self.ended(&live, code);
    }

    fn ended(&mut self, live: &Live<'a>, code: i32) {
        self.overview.add(live.progress);
        // The next one asks, if this one did not find out.
        if let Some(place) = &live.place
            && self.known.get(place) == Some(&Known::Asked(live.number))
        {
            self.known.remove(place);
        }
        if code == 0 || self.stops {
            return;
        }
        self.code = code;
        if self.global.fail_early || FATAL.contains(&code) {
            self.give_up();
        }
    }

    /// Has all transfers end, and begins no other.
    fn give_up(&mut self) {
        self.stops = true;
        self.live.retain(|live| live.pid.is_some());
        for pid in self.live.iter().filter_map(|live| live.pid) {
            // One that has ended meanwhile needs no telling.
            let _ = abi::kill(Who::Child(pid), worker::GIVE_UP);
        }
    }

    fn progress(&self) -> Vec<[u64; 4]> {
        self.live.iter().map(|live| live.progress).collect()
    }
}

impl Live<'_> {
    fn job<'b>(&'b self, global: &'b Global) -> Job<'b> {
        Job { operation: self.operation, global, target: &self.target, url: &self.url, number: self.number }
    }
}
