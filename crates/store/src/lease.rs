//! Leases: who may change a name. One holder at a time, until it lets go, ends, or is not heard of for a while.
//!
//! A lease prevents surprises; what prevents damage is that a commit checks, in its transaction, both the lease and the
//! head. A clock that jumps can at worst end a lease too early, and then its holder's next commit is refused.

use std::fmt;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::remote::tables;
use crate::store::Shared;
use crate::{CommitId, Kind, Store, StoreError, full_name, schema};

/// How long a lease lasts without being renewed, in milliseconds.
const LASTS: i64 = 60_000;
/// How often a lease that another machine ended while it was taken is taken again.
const CLAIMS: usize = 4;

/// The right to change what a name stands for. Dropping it lets go.
pub struct Lease {
    pub(crate) sandbox: i64,
    pub(crate) token: i64,
    pub(crate) name: Box<str>,
    store: Arc<Shared>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Lease {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (sandbox, token) = (self.sandbox, self.token);
        self.store.writer.perform_later(move |connection| {
            let gone =
                connection.execute("DELETE FROM lease WHERE sandbox = ? AND token = ?", [sandbox, token]);
            if let Err(error) = gone {
                tracing::warn!(%error, "a lease will have to expire");
            }
        });
        // So that other machines can have it.
        if let Some(remote) = &self.store.remote {
            remote.wake();
        }
    }
}

/// Who holds leases: this process.
pub(crate) struct Owner {
    pub(crate) id: i64,
    pub(crate) holder: String,
    /// Where its number means something: the boot of the machine, and the namespace of numbers.
    place: String,
    pid: i64,
    started: i64,
}

impl Owner {
    pub(crate) fn of_this_process() -> Result<Owner, StoreError> {
        let pid = i64::from(std::process::id());
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let place = format!("{} {}", read("/proc/sys/kernel/random/boot_id"), namespace.display());
        let holder = format!("process {pid} on {}", read("/proc/sys/kernel/hostname"));
        Ok(Owner { id: random()?, holder, place, pid, started: started(pid).unwrap_or(0) })
    }

    fn row(&self) -> OwnerRow {
        (self.id, self.holder.clone(), self.place.clone(), self.pid, self.started)
    }
}

/// Returns when a process started, in ticks since the machine did.
fn started(pid: i64) -> Option<i64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, can contain anything.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn random() -> Result<i64, StoreError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Io(format!("no randomness: {error}")))?;
    Ok(i64::from_le_bytes(bytes))
}

impl Store {
    /// Creates a name for a sandbox, and takes its lease. `meta` is kept with it.
    pub fn create(&self, name: &str, meta: &str) -> Result<Lease, StoreError> {
        self.create_as(name, Kind::Sandbox, meta)
    }

    /// Creates a name, and takes its lease.
    pub fn create_as(&self, name: &str, kind: Kind, meta: &str) -> Result<Lease, StoreError> {
        let name = full_name(name)?;
        if let Some(remote) = &self.0.remote {
            let token = random()?;
            let sandbox = remote.create(&name, kind, meta, token, self.0.owner.row())?;
            return Ok(Lease { sandbox, token, name: name.into(), store: self.0.clone() });
        }
        let (full, meta) = (name.clone(), meta.to_owned());
        self.0.writer.perform(move |connection| {
            let created = connection.execute(
                "INSERT OR IGNORE INTO sandbox (name, kind, created, meta) VALUES (?, ?, ?, ?)",
                params![full, kind.number(), schema::now_ms(), meta],
            )?;
            if created == 0 { Err(StoreError::Exists(full)) } else { Ok(()) }
        })?;
        self.lease(&name)
    }

    /// Takes the lease of a name, and keeps the commit it is at from being collected as long as it is held.
    pub fn lease(&self, name: &str) -> Result<Lease, StoreError> {
        self.take_lease(name, false)
    }

    /// Does the same even if another has it: for a holder that is known to be gone. One that is not can no longer commit.
    pub fn take_over(&self, name: &str) -> Result<Lease, StoreError> {
        self.take_lease(name, true)
    }

    fn take_lease(&self, name: &str, by_force: bool) -> Result<Lease, StoreError> {
        let name = full_name(name)?;
        let Some(remote) = &self.0.remote else { return self.take_local(&name, by_force) };
        // Among the processes of this machine first: a lease that nobody here has is let go of.
        for _ in 0..CLAIMS {
            remote.pull(&name)?;
            let lease = self.take_local(&name, by_force)?;
            remote.claim(&name, by_force)?;
            // What another machine has uploaded in between has ended it.
            if self.holds(&lease)? {
                return Ok(lease);
            }
        }
        Err(StoreError::Conflict(name))
    }

    fn holds(&self, lease: &Lease) -> Result<bool, StoreError> {
        let (sandbox, token) = (lease.sandbox, lease.token);
        self.0.writer.perform(move |connection| {
            let held = "SELECT EXISTS (SELECT 1 FROM lease WHERE sandbox = ? AND token = ?)";
            Ok(connection.query_row(held, [sandbox, token], |row| row.get(0))?)
        })
    }

    /// Takes a lease among the processes of this machine.
    fn take_local(&self, name: &str, by_force: bool) -> Result<Lease, StoreError> {
        let token = random()?;
        let shared = self.0.clone();
        let full = name.to_owned();
        let row = self.0.owner.row();
        let sandbox =
            self.0.writer.perform(move |connection| take(connection, &full, token, &row, by_force))?;
        Ok(Lease { sandbox, token, name: name.into(), store: shared })
    }

    /// Removes a name with its commits and tags. What only they led to is freed when the store is collected.
    pub fn remove(&self, name: &str) -> Result<(), StoreError> {
        // So that nobody has it open.
        let lease = self.lease(name)?;
        let (sandbox, token) = (lease.sandbox, lease.token);
        if let Some(remote) = &self.0.remote {
            remote.remove(lease.name())?;
        }
        let is_part = self.0.remote.is_some();
        self.0.writer.perform(move |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let held =
                transaction.execute("DELETE FROM lease WHERE sandbox = ? AND token = ?", [sandbox, token])?;
            if held == 1 {
                if is_part {
                    tables::forget_sandbox(&transaction, sandbox)?;
                }
                for table in ["tag", "commits"] {
                    transaction.execute(&format!("DELETE FROM {table} WHERE sandbox = ?"), [sandbox])?;
                }
                transaction.execute("DELETE FROM sandbox WHERE id = ?", [sandbox])?;
            }
            Ok(transaction.commit()?)
        })
    }
}

pub(crate) type OwnerRow = (i64, String, String, i64, i64);

fn take(
    connection: &mut Connection,
    name: &str,
    token: i64,
    owner: &OwnerRow,
    by_force: bool,
) -> Result<i64, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = transaction
        .query_row("SELECT id, head FROM sandbox WHERE name = ?", [name], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<CommitId>>(1)?))
        })
        .optional()?;
    let Some((sandbox, head)) = found else { return Err(StoreError::Missing(name.to_owned())) };
    let now = schema::now_ms();
    let held = transaction
        .query_row(
            "SELECT holder, place, pid, started, expires FROM lease WHERE sandbox = ?",
            [sandbox],
            |row| {
                let holder = Holder {
                    place: row.get(1)?,
                    pid: row.get(2)?,
                    started: row.get(3)?,
                    expires: row.get(4)?,
                };
                Ok((row.get::<_, String>(0)?, holder))
            },
        )
        .optional()?;
    if let Some((holder, held)) = held
        && !by_force
        && held.is_there(&owner.2, now)
    {
        let holder =
            if (&held.place, held.pid) == (&owner.2, owner.3) { "this process".to_owned() } else { holder };
        return Err(StoreError::Busy { name: name.to_owned(), holder });
    }
    write(&transaction, (sandbox, head), token, owner)?;
    transaction.commit()?;
    Ok(sandbox)
}

/// Gives the lease to a process.
pub(crate) fn write(
    connection: &Connection,
    (sandbox, head): (i64, Option<CommitId>),
    token: i64,
    owner: &OwnerRow,
) -> Result<(), StoreError> {
    connection.execute(
        "INSERT OR REPLACE INTO lease VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![sandbox, token, owner.0, owner.1, owner.2, owner.3, owner.4, head, schema::now_ms() + LASTS],
    )?;
    Ok(())
}

struct Holder {
    place: String,
    pid: i64,
    started: i64,
    expires: i64,
}

impl Holder {
    /// Returns whether it may still use its lease. Of a process of the same machine we know whether it lives; of others
    /// we only know when they last said so. An expiry further away than a lease lasts is of a clock that was set back.
    fn is_there(&self, place: &str, now: i64) -> bool {
        if self.place == place && started(self.pid).is_none_or(|since| since != self.started) {
            return false;
        }
        self.expires > now && self.expires <= now + LASTS
    }
}

/// Renews all leases of this process.
pub(crate) fn renew(connection: &Connection, owner: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE lease SET expires = ? WHERE owner = ?")?
        .execute([schema::now_ms() + LASTS, owner])?;
    Ok(())
}
