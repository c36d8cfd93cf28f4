//! The methods of the protocol.
//!
//! A method is a function that reads its params and takes its turn immediately, while the lines are in order; the work
//! it returns is done concurrently.

mod about;
mod create;
mod env;
mod extension;
mod files;
mod history;
mod images;
mod mount;
mod named;
mod names;
mod network;
mod overlays;
mod persistence;
mod ports;
mod process;
mod python;
mod requests;
mod run;
mod sandboxes;
mod snapshots;
mod storage;
mod suspend;
mod watch;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wardian_contract::params::{About, Nothing};

use crate::budget::Room;
use crate::entry::Entry;
use crate::lane::Hold;
use crate::params::Params;
use crate::rpc::{INVALID_REQUEST, METHOD_NOT_FOUND, RpcError};
use crate::session::Session;

pub(crate) use ports::CONNECT;

pub(crate) use files::kind;
pub use run::result_object;
pub(crate) use sandboxes::date;

/// The outcome of a request.
pub(crate) type Work = Pin<Box<dyn Future<Output = Result<Answer, RpcError>> + Send>>;

/// A result, as a value or already written.
pub(crate) enum Answer {
    Value(Value),
    Written(Written),
}

/// The result of a method as JSON, with the room it takes.
pub(crate) struct Written {
    pub(crate) json: Vec<u8>,
    pub(crate) room: Room,
}

/// The result of a method, or why there is none.
pub(crate) type Outcome = Result<Value, RpcError>;

/// Work, and the turn it holds until its response is sent: so a client that does not read has one response waiting per
/// sandbox, not thousands.
pub(crate) struct Task {
    pub(crate) work: Work,
    pub(crate) hold: Option<Hold>,
}

/// A task, by what it waits for.
pub(crate) enum Job {
    /// Never waits for a run.
    AtOnce(Task),
    /// May wait for a run, and so for something the client has yet to send.
    InTurn(Task),
    /// The end of this client.
    Kill,
}

type Prepared = Result<Job, RpcError>;

impl Job {
    fn at_once(
        hold: impl Into<Option<Hold>>,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> Prepared {
        let work = async move { work.await.map(Answer::Value) };
        Ok(Job::AtOnce(Task { work: Box::pin(work), hold: hold.into() }))
    }

    /// The same for a result that can be long, and is written straight into its line.
    fn written_at_once(
        hold: impl Into<Option<Hold>>,
        work: impl Future<Output = Result<Written, RpcError>> + Send + 'static,
    ) -> Prepared {
        let work = async move { work.await.map(Answer::Written) };
        Ok(Job::AtOnce(Task { work: Box::pin(work), hold: hold.into() }))
    }

    /// The same for one that waits for runs.
    fn answered_in_turn(
        hold: impl Into<Option<Hold>>,
        work: impl Future<Output = Result<Answer, RpcError>> + Send + 'static,
    ) -> Prepared {
        Ok(Job::InTurn(Task { work: Box::pin(work), hold: hold.into() }))
    }

    fn in_turn(
        hold: impl Into<Option<Hold>>,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> Prepared {
        let work = async move { work.await.map(Answer::Value) };
        Ok(Job::InTurn(Task { work: Box::pin(work), hold: hold.into() }))
    }
}

/// All of them, for `capabilities`.
const METHODS: [&str; 72] = [
    "create",
    "capabilities",
    "usage",
    "isRunning",
    "kill",
    "run",
    "python.run",
    "cancel",
    "files.read",
    "files.write",
    "files.list",
    "files.mkdir",
    "files.rm",
    "files.stat",
    "files.rename",
    "files.copy",
    "files.chmod",
    "files.symlink",
    "files.watch",
    "files.unwatch",
    "env.get",
    "env.set",
    "env.unset",
    "env.list",
    "mount",
    "mount.diff",
    "mount.apply",
    "snapshot.create",
    "snapshot.restore",
    "sandbox.fork",
    "sandbox.destroy",
    "sandbox.create",
    "sandbox.list",
    "sandbox.remove",
    "sandbox.suspend",
    "sandbox.resume",
    "persistence.export",
    "persistence.import",
    "persistence.list",
    "persistence.remove",
    "sandbox.open",
    "persistence.save",
    "persistence.checkout",
    "persistence.sandboxes",
    "persistence.log",
    "persistence.diff",
    "persistence.branch",
    "persistence.tag",
    "persistence.delete",
    "image.save",
    "image.list",
    "image.delete",
    "image.export",
    "image.import",
    "offload",
    "rehydrate",
    "net.connect",
    "net.write",
    "net.ack",
    "net.closeWrite",
    "net.close",
    "net.url",
    "process.start",
    "process.write",
    "process.closeStdin",
    "process.ack",
    "process.signal",
    "process.wait",
    "process.resize",
    "process.list",
    "shell.history.list",
    "shell.history.clear",
];

/// What counts as a run for the quota of a tenant.
const STARTS: [&str; 3] = ["run", "python.run", "process.start"];

/// Reads a request and takes its turn.
pub(crate) fn prepare(
    session: &Arc<Session>,
    id: Option<&Value>,
    method: &str,
    mut params: Params,
) -> Prepared {
    if !matches!(method, "create" | "capabilities") && !session.is_created() {
        return Err(RpcError::new(INVALID_REQUEST, "no sandbox yet: call create first"));
    }
    let params = &mut params;
    if let Some(quota) = session.quota.as_ref().filter(|_| STARTS.contains(&method)) {
        quota.run(Instant::now())?;
    }
    match method {
        "create" => create::create(session, params),
        "capabilities" => about::capabilities(session, params),
        "usage" => about::usage(session, params),
        "isRunning" => about::is_running(session, params),
        "kill" => alone(session, params).map(|_| Job::Kill),
        "run" => run::run(session, id, params),
        "python.run" => python::run(session, id, params),
        "cancel" => run::cancel(session, params),
        "files.read" => files::read(session, params),
        "files.write" => files::write(session, params),
        "files.list" => files::list(session, params),
        "files.mkdir" => files::mkdir(session, params),
        "files.rm" => files::rm(session, params),
        "files.stat" => files::stat(session, params),
        "files.rename" => names::rename(session, params),
        "files.copy" => names::copy(session, params),
        "files.chmod" => names::chmod(session, params),
        "files.symlink" => names::symlink(session, params),
        "files.watch" => watch::watch(session, id, params),
        "files.unwatch" => watch::unwatch(session, params),
        "env.get" => env::get(session, params),
        "env.set" => env::set(session, params),
        "env.unset" => env::unset(session, params),
        "env.list" => env::list(session, params),
        "mount" => mount::mount(session, params),
        "mount.diff" => overlays::diff(session, params),
        "mount.apply" => overlays::apply(session, params),
        "snapshot.create" => snapshots::create(session, params),
        "snapshot.restore" => snapshots::restore(session, params),
        "sandbox.fork" => sandboxes::fork(session, params),
        "sandbox.destroy" => sandboxes::destroy(session, params),
        "sandbox.create" => sandboxes::create(session, params),
        "sandbox.list" => sandboxes::list(session, params),
        "sandbox.remove" => sandboxes::remove(session, params),
        "sandbox.suspend" => suspend::suspend(session, params),
        "sandbox.resume" => suspend::resume(session, params),
        "persistence.export" => persistence::export(session, params),
        "persistence.import" => persistence::import(session, params),
        "persistence.list" => persistence::list(session, params),
        "persistence.remove" => persistence::remove(session, params),
        "sandbox.open" => named::open(session, params),
        "persistence.save" => named::save(session, params),
        "persistence.checkout" => named::checkout(session, params),
        "persistence.sandboxes" => named::sandboxes(session, params),
        "persistence.log" => named::log(session, params),
        "persistence.diff" => named::diff(session, params),
        "persistence.branch" => named::branch(session, params),
        "persistence.tag" => named::tag(session, params),
        "persistence.delete" => named::delete(session, params),
        "image.save" => images::save(session, params),
        "image.list" => images::list(session, params),
        "image.delete" => images::delete(session, params),
        "image.export" => images::export(session, params),
        "image.import" => images::import(session, params),
        "offload" => storage::offload(session, params),
        "rehydrate" => storage::rehydrate(session, params),
        "net.connect" => ports::connect(session, id, params),
        "net.write" => ports::write(session, params),
        "net.ack" => ports::ack(session, params),
        "net.closeWrite" => ports::close_write(session, params),
        "net.close" => ports::close(session, params),
        "net.url" => ports::url(session, params),
        "process.start" => process::start(session, id, params),
        "process.write" => process::write(session, params),
        "process.closeStdin" => process::close_stdin(session, params),
        "process.ack" => process::ack(session, params),
        "process.signal" => process::signal(session, params),
        "process.wait" => process::wait(session, params),
        "process.resize" => process::resize(session, params),
        "process.list" => process::list(session, params),
        "shell.history.list" => history::list(session, params),
        "shell.history.clear" => history::clear(session, params),
        _ => Err(RpcError::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))),
    }
}

/// Returns the sandbox that `sandboxId` names; the root if there is none.
fn entry(session: &Arc<Session>, params: &mut Params) -> Result<Arc<Entry>, RpcError> {
    let id = params.string("sandboxId")?;
    session.entry(id.as_deref())
}

/// Reads the params of a method, and returns them with the sandbox that they are about.
fn asked<T: About + DeserializeOwned>(
    session: &Arc<Session>,
    params: &mut Params,
) -> Result<(Arc<Entry>, T), RpcError> {
    let read: T = params.read()?;
    Ok((session.entry(read.sandbox_id())?, read))
}

/// Does the same for a method that takes nothing else.
fn alone(session: &Arc<Session>, params: &mut Params) -> Result<Arc<Entry>, RpcError> {
    asked::<Nothing>(session, params).map(|(entry, _)| entry)
}

fn ok() -> Outcome {
    Ok(json!({ "ok": true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `capabilities` tells is what there is: a method that is missing in the list is found by its name here.
    #[test]
    fn every_method_that_is_listed_exists_and_every_one_that_exists_is_listed() {
        let source = include_str!("mod.rs");
        let arms = source.lines().filter_map(|line| line.strip_prefix("        \"")?.split_once("\" =>"));
        let arms: Vec<&str> = arms.map(|(name, _)| name).collect();
        assert_eq!(arms, METHODS);
    }

    #[test]
    fn every_method_is_in_the_contract() {
        let mut contract: Vec<&str> =
            wardian_contract::methods::METHODS.iter().map(|method| method.name).collect();
        let mut methods = METHODS.to_vec();
        contract.sort_unstable();
        methods.sort_unstable();
        assert_eq!(contract, methods);
    }
}
