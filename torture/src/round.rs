//! Rounds: attackers at once, a neighbour beside them, and what must be true during and after.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use crate::attacks::{Attack, Attacker, FILE_BYTES, MEMORY_BYTES, TALK_BYTES};
use crate::client::Client;
use crate::dice::Dice;
use crate::neighbour::{Neighbour, Service};
use crate::server::{self, Server, Standing};

/// What the server may hold on top of what the sandboxes' limits add up to: compiled programs, instances that lie
/// ready, stacks.
const OVERHEAD_KIB: usize = 256 << 10;
/// How far from where it was it may be when the next round begins: memory is returned some time after it is free.
const BETWEEN_KIB: usize = 128 << 10;
/// How far from where it was it may be at the end: a leak goes past it in time; what the allocator cannot return does not.
const BACK_KIB: usize = 64 << 10;
/// Idle instances are kept, up to sixteen of each program, with a few mappings each.
const MAPPINGS_BAND: usize = 16 * 8 * 8;
/// The store keeps four connections for readers, of a few descriptors each.
const DESCRIPTORS_BAND: usize = 4 * 3;
/// How long it may take to get there: threads that wait for work end after ten seconds.
const SETTLING: Duration = Duration::from_secs(25);

/// Starts each program that ships and reads every file: they are unpacked when they are first used or read.
const EACH_PROGRAM: &str = "for program in $(find /bin -type f); do $program --version < /dev/null; done; \
    find / -xdev -type f -exec cat {} + > /dev/null";

/// A server, and what was measured before it was attacked.
pub(crate) struct Arena {
    server: Server,
    attackers: usize,
    before: Option<Standing>,
    control: Service,
}

/// The most memory that the server had in a round, in KiB.
#[derive(Clone, Copy)]
struct Peak {
    /// Its own, whenever it was looked at.
    own: usize,
    /// All that was mapped, at any moment.
    mapped: usize,
}

impl Arena {
    pub(crate) fn open(program: &Path, attackers: usize) -> Result<Arena> {
        let server = Server::start(program)?;
        Ok(Arena { server, attackers, before: None, control: Service::default() })
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.server.is_alive()
    }

    /// Runs each attack once, so that what is made once has been made; then measures how a neighbour is served beside
    /// sandboxes that only compute, and where the process stands.
    pub(crate) fn warm_up(&mut self, attacks: &[&Attack], dice: &mut Dice) -> Result<()> {
        let mut client = Client::connect(&self.server.socket())?;
        client.call("create", json!({}))?;
        client.call("run", json!({ "command": EACH_PROGRAM, "timeoutMs": 120_000 }))?;
        drop(client);
        for attack in attacks {
            let mut attacker =
                Attacker { socket: &self.server.socket(), http: self.server.http(), dice: dice.split() };
            (attack.run)(&mut attacker).with_context(|| format!("the first {}", attack.name))?;
        }
        self.control = self
            .beside(|socket, _| {
                let mut client = Client::connect(socket)?;
                client.call("create", json!({}))?;
                client.call("run", json!({ "command": "while :; do :; done & wait", "timeoutMs": 3_000 }))?;
                Ok(client.leave())
            })?
            .1;
        thread::sleep(SETTLING / 2);
        self.before = server::standing(self.server.pid());
        println!("torture: beside sandboxes that compute: {}", self.control.told());
        println!("torture: before: {:?}", self.before);
        Ok(())
    }

    /// Does `work` as many times at once as there are attackers, beside a neighbour that is asked how it fares.
    fn beside(
        &self,
        work: impl Fn(&Path, usize) -> Result<Vec<String>> + Sync,
    ) -> Result<(Vec<String>, Service, Peak)> {
        let (socket, pid) = (self.server.socket(), self.server.pid());
        server::forget_peak(pid)?;
        let mut neighbour = Neighbour::new(&socket)?;
        let (over, peak) = (AtomicBool::new(false), AtomicUsize::new(0));
        let mut service = Service::default();
        let wrong = thread::scope(|scope| {
            let watch = scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    peak.fetch_max(server::memory_kib(pid).unwrap_or(0), Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(20));
                }
            });
            let socket = &socket;
            let work = &work;
            let workers: Vec<_> =
                (0..self.attackers).map(|number| scope.spawn(move || work(socket, number))).collect();
            let mut wrong = Vec::new();
            while !workers.iter().all(|worker| worker.is_finished()) {
                if let Err(error) = neighbour.try_once(&mut service) {
                    wrong.push(format!("the neighbour: {error:#}"));
                    break;
                }
            }
            for worker in workers {
                match worker.join() {
                    Ok(Ok(found)) => wrong.extend(found),
                    Ok(Err(error)) => wrong.push(format!("{error:#}")),
                    Err(_) => wrong.push("an attacker panicked".to_owned()),
                }
            }
            over.store(true, Ordering::SeqCst);
            let _ = watch.join();
            wrong
        });
        let wrong = wrong.into_iter().chain(neighbour.leave()).collect();
        let mapped = server::peak_kib(pid).unwrap_or(0);
        Ok((wrong, service, Peak { own: peak.into_inner(), mapped }))
    }

    /// One round of random attacks; what was wrong.
    pub(crate) fn round(
        &mut self,
        number: usize,
        attacks: &[&Attack],
        dice: &mut Dice,
    ) -> Result<Vec<String>> {
        let chosen: Vec<(&Attack, Dice)> =
            (0..self.attackers).map(|_| (*dice.pick(attacks), dice.split())).collect();
        let names: Vec<_> = chosen.iter().map(|(attack, _)| attack.name).collect();
        let (mut wrong, service, peak) = self.beside(|socket, at| {
            let (attack, dice) = &chosen[at];
            let http = self.server.http();
            let found = (attack.run)(&mut Attacker { socket, http, dice: dice.clone() });
            found.with_context(|| format!("attack {}", attack.name))
        })?;
        let sandboxes: usize = chosen.iter().map(|(attack, _)| attack.sandboxes).sum();
        wrong.extend(service.compared_with(&self.control));
        wrong.extend(self.over_budget(peak, sandboxes));
        wrong.extend(self.server.panics());
        let after = self.settled(BETWEEN_KIB);
        wrong.extend(self.not_where_it_was(after, BETWEEN_KIB));
        let (names, told) = (names.join(" "), service.told());
        let left = after.map_or(0, |after| after.memory_kib);
        let (own, mapped) = (peak.own >> 10, peak.mapped >> 10);
        println!("round {number}: {names} | {told} | peak {own} MiB, {mapped} mapped, then {}", left >> 10);
        let wrong: Vec<_> =
            wrong.into_iter().map(|what| format!("round {number} ({names}): {what}")).collect();
        wrong.iter().for_each(|what| println!("  WRONG {what}"));
        Ok(wrong)
    }

    fn over_budget(&self, peak: Peak, sandboxes: usize) -> Vec<String> {
        let declared = sandboxes * (MEMORY_BYTES + FILE_BYTES + TALK_BYTES) / 1024;
        let over = |what: &str, base: Option<usize>, peak: usize| {
            let budget = base.unwrap_or(0) + declared + OVERHEAD_KIB;
            (peak > budget).then(|| format!("{what} reached {} MiB, {} declared", peak >> 10, budget >> 10))
        };
        let own = over("memory", self.before.map(|before| before.memory_kib), peak.own);
        let mapped = over("mapped memory", self.before.map(|before| before.mapped_kib), peak.mapped);
        own.into_iter().chain(mapped).collect()
    }

    /// Where the process stands when it has had time to tidy up.
    fn settled(&self, band: usize) -> Option<Standing> {
        let end = Instant::now() + SETTLING;
        loop {
            let now = server::standing(self.server.pid())?;
            if self.differences(now, band).is_empty() || Instant::now() > end {
                return Some(now);
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn not_where_it_was(&self, after: Option<Standing>, band: usize) -> Vec<String> {
        match after {
            Some(after) => self.differences(after, band),
            None => vec!["the server is gone".to_owned()],
        }
    }

    /// What there is more of than before, where memory may be more by `band`.
    fn differences(&self, now: Standing, band: usize) -> Vec<String> {
        let Some(before) = self.before else { return Vec::new() };
        let grown = |what: &str, before: usize, now: usize, band: usize| {
            (now > before + band).then(|| format!("{what} went from {before} to {now}"))
        };
        [
            grown("memory in KiB", before.memory_kib, now.memory_kib, band),
            grown("descriptors", before.descriptors, now.descriptors, DESCRIPTORS_BAND),
            grown("mappings", before.mappings, now.mappings, MAPPINGS_BAND),
            grown("threads", before.threads, now.threads, 8),
            grown("child processes", before.children, now.children, 0),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Lets the server tidy up and stops it; what was wrong about that.
    pub(crate) fn close(self) -> Result<Vec<String>> {
        let after = self.settled(BACK_KIB);
        println!("torture: after: {after:?}");
        let mut wrong = self.not_where_it_was(after, BACK_KIB);
        wrong.extend(self.server.stop().err().map(|error| format!("{error:#}")));
        Ok(wrong)
    }
}
