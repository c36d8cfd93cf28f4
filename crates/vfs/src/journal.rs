//! The journal of an apply: what is about to be done to a host directory, so that a crash at any point leaves it either
//! in the old or in the new state.
//!
//! ```text
//! Staging  before anything is made      a crash: what was staged is removed
//! Intent   before anything is visible   a crash: every step that was taken is undone
//! Done     after the last step          a crash: what was staged is removed; the directory is new
//! Undone   after all has been undone    a crash: what was staged is removed; the directory is as it was
//! ```
//! Each replaces the one before as a whole, and is removed when there is nothing left to do. Journals are in Wardian's
//! state directory, under the device and inode of the directory they are about.

use crate::host::HostDir;
use crate::state::{Lock, MOMENT, PATIENCE, StateDir};
use crate::steps::Step;
use crate::{Errno, Result};

const MAGIC: &[u8; 8] = b"WARDAPL1";

/// The progress of an apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Staging = 1,
    Intent = 2,
    Done = 3,
    Undone = 4,
}

/// The contents of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) phase: Phase,
    /// The directory in the host directory where new contents wait, and old ones until everything is done.
    pub(crate) stage: Vec<u8>,
    /// Its inode; 0 before it is created.
    pub(crate) stage_ino: u64,
    pub(crate) steps: Vec<Step>,
}

/// The journal of one host directory, locked.
pub(crate) struct Journal {
    state: StateDir,
    name: String,
    _lock: Lock,
}

impl Journal {
    /// Returns the journal of `host`, to change it. Waits for another process that has it.
    pub(crate) fn lock(host: &HostDir) -> Result<Journal> {
        let state = StateDir::create(host.state().ok_or(Errno::ENOENT)?)?;
        let name = host.key()?;
        Ok(Journal { _lock: state.lock(&name, PATIENCE)?, state, name })
    }

    /// Returns the journal of `host`, if a crash left one behind; with `wait`, also if the process that writes it may
    /// still be running.
    pub(crate) fn left_behind(host: &HostDir, wait: bool) -> Result<Option<Journal>> {
        let Some(state) = host.state() else { return Ok(None) };
        let state = match StateDir::open(state) {
            Ok(state) => state,
            // A directory that is not there, or not for us, has no journal of Wardian's.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES | Errno::EPERM) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        let name = host.key()?;
        if state.read(&name)?.is_none() {
            return Ok(None);
        }
        let lock = match state.lock(&name, if wait { PATIENCE } else { MOMENT }) {
            // Somebody is at work on it.
            Err(Errno::EBUSY) if !wait => return Ok(None),
            lock => lock?,
        };
        // The holder of the lock may have finished meanwhile.
        let left = state.read(&name)?.is_some();
        Ok(left.then_some(Journal { state, name, _lock: lock }))
    }

    pub(crate) fn read(&self) -> Result<Option<Record>> {
        self.state.read(&self.name)?.map(|content| Record::decode(&content).ok_or(Errno::EIO)).transpose()
    }

    pub(crate) fn write(&self, record: &Record) -> Result<()> {
        self.state.write(&self.name, &record.encode())
    }

    pub(crate) fn remove(&self) -> Result<()> {
        self.state.remove(&self.name)
    }
}

impl Record {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer(MAGIC.to_vec());
        out.number(self.phase as u64);
        out.bytes(&self.stage);
        out.number(self.stage_ino);
        out.number(self.steps.len() as u64);
        self.steps.iter().for_each(|step| out.step(step));
        out.0
    }

    /// Reads a record, and refuses one with a path that leads out of the directory.
    fn decode(content: &[u8]) -> Option<Record> {
        let mut input = Reader(content.strip_prefix(MAGIC)?);
        let phase = match input.number()? {
            1 => Phase::Staging,
            2 => Phase::Intent,
            3 => Phase::Done,
            4 => Phase::Undone,
            _ => return None,
        };
        let stage = input.bytes().filter(|stage| crate::host::is_stage(stage))?.to_vec();
        let (stage_ino, count) = (input.number()?, input.number()?);
        let mut steps = Vec::new();
        for _ in 0..count {
            steps.push(input.step()?);
        }
        Some(Record { phase, stage, stage_ino, steps }).filter(|_| input.0.is_empty())
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn step(&mut self, step: &Step) {
        let (kind, path, numbers) = match step {
            Step::TakeAway { path, ino } => (1, path, [*ino, 0]),
            Step::RemoveDir { path, mode } => (2, path, [u64::from(*mode), 0]),
            Step::Put { path, ino, dir } => (3, path, [*ino, u64::from(*dir)]),
            Step::Replace { path, old, new } => (4, path, [*old, *new]),
            Step::SetMode { path, from, to } => (5, path, [u64::from(*from), u64::from(*to)]),
        };
        self.number(kind);
        self.bytes(path);
        numbers.into_iter().for_each(|number| self.number(number));
    }
}

struct Reader<'c>(&'c [u8]);

impl<'c> Reader<'c> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Option<&'c [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn step(&mut self) -> Option<Step> {
        let kind = self.number()?;
        let path = self.bytes().filter(|path| stays_inside(path))?.to_vec();
        let (first, second) = (self.number()?, self.number()?);
        let mode = |number: u64| u32::try_from(number).ok().filter(|mode| *mode <= 0o7777);
        Some(match kind {
            1 => Step::TakeAway { path, ino: first },
            2 => Step::RemoveDir { path, mode: mode(first)? },
            3 => Step::Put { path, ino: first, dir: second != 0 },
            4 => Step::Replace { path, old: first, new: second },
            5 => Step::SetMode { path, from: mode(first)?, to: mode(second)? },
            _ => return None,
        })
    }
}

/// A relative path of plain names.
fn stays_inside(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b"..") && !name.contains(&0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let path = b"a/b".to_vec();
        Record {
            phase: Phase::Intent,
            stage: crate::host::stage_name().unwrap(),
            stage_ino: 7,
            steps: vec![
                Step::TakeAway { path: path.clone(), ino: 1 },
                Step::RemoveDir { path: path.clone(), mode: 0o755 },
                Step::Put { path: path.clone(), ino: 2, dir: true },
                Step::Replace { path: path.clone(), old: 3, new: 4 },
                Step::SetMode { path, from: 0o644, to: 0o600 },
            ],
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = record();
        assert_eq!(Record::decode(&record.encode()), Some(record));
    }

    #[test]
    fn what_is_damaged_or_leads_out_is_not_believed() {
        let good = record().encode();
        for len in 0..good.len() {
            assert_eq!(Record::decode(&good[..len]), None);
        }
        for path in ["/etc/passwd", "..", "a/../..", "", "a//b", "./a", "a\0b"] {
            let mut bad = record();
            bad.steps[0] = Step::TakeAway { path: path.into(), ino: 1 };
            assert_eq!(Record::decode(&bad.encode()), None, "{path}");
        }
        for stage in
            ["", "..", "sub", ".wardian-apply-1", "a/.wardian-apply-00000000000000000000000000000000"]
        {
            let bad = Record { stage: stage.into(), ..record() };
            assert_eq!(Record::decode(&bad.encode()), None, "{stage}");
        }
    }
}
