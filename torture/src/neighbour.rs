//! A client that means no harm, and notices how well it is served.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::client::Client;

/// The deadline whose lateness is measured.
const DEADLINE: Duration = Duration::from_millis(50);

/// A client with a sandbox of its own.
pub(crate) struct Neighbour(Client);

/// How long its commands took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Service {
    echoes: Vec<Duration>,
    lateness: Vec<Duration>,
}

impl Neighbour {
    pub(crate) fn new(socket: &Path) -> Result<Neighbour> {
        let mut client = Client::connect(socket)?;
        client.call("create", json!({}))?;
        Ok(Neighbour(client))
    }

    /// Once: an `echo` through a pipe, and a loop that is ended by its deadline.
    pub(crate) fn try_once(&mut self, service: &mut Service) -> Result<()> {
        let start = Instant::now();
        let result = self.0.call("run", json!({ "command": "echo neighbour | cat" }))?;
        service.echoes.push(start.elapsed());
        ensure!(result["stdout"] == "neighbour\n", "a neighbour's echo gave {result}");
        let deadline = json!({ "command": "while :; do :; done", "timeoutMs": DEADLINE.as_millis() as u64 });
        let start = Instant::now();
        let result = self.0.call("run", deadline)?;
        service.lateness.push(start.elapsed().saturating_sub(DEADLINE));
        ensure!(result["errorClass"] == "TIMEOUT", "a neighbour's loop gave {result}");
        Ok(())
    }

    pub(crate) fn leave(self) -> Vec<String> {
        self.0.leave()
    }
}

impl Service {
    /// Worse than `control` by more than this is a failure: attackers may take their share of the processors, as others
    /// who compute do, and what the system needs for their memory on top.
    const WORSE: u32 = 8;
    /// The worst of all may be worse by more: once in a while the system itself has something else to do.
    const WORST: u32 = 20;
    /// Less than this is nobody's delay but the system's.
    const NOTHING: Duration = Duration::from_millis(25);
    const NOTHING_ONCE: Duration = Duration::from_millis(100);

    /// What is worse than it may be.
    pub(crate) fn compared_with(&self, control: &Service) -> Vec<String> {
        let one = |what: &str, ours: Duration, theirs: Duration, allowed: Duration| {
            (ours > allowed).then(|| format!("{what} {ours:.1?}, beside sandboxes that compute {theirs:.1?}"))
        };
        let both = |what: &str, ours: &[Duration], theirs: &[Duration]| {
            let (most, control) = (typical(ours), typical(theirs));
            let typical = one(what, most, control, control.max(Service::NOTHING) * Service::WORSE);
            let (most, control) = (worst(ours), worst(theirs));
            let allowed = control.max(Service::NOTHING_ONCE) * Service::WORST;
            typical.into_iter().chain(one(&format!("at worst {what}"), most, control, allowed))
        };
        let echoes = both("a neighbour's echo took", &self.echoes, &control.echoes);
        let lateness = both("a neighbour's deadline was late by", &self.lateness, &control.lateness);
        echoes.chain(lateness).collect()
    }

    /// The two figures, for people.
    pub(crate) fn told(&self) -> String {
        format!(
            "echo {:.1?} (worst {:.1?}), late {:.1?} (worst {:.1?})",
            typical(&self.echoes),
            worst(&self.echoes),
            typical(&self.lateness),
            worst(&self.lateness)
        )
    }
}

fn worst(times: &[Duration]) -> Duration {
    times.iter().max().copied().unwrap_or_default()
}

/// Three in four took no longer.
fn typical(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() * 3 / 4).or(times.last()).copied().unwrap_or_default()
}
