//! All methods: what each takes and answers, and how it is reached by HTTP.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{params as p, results as r};

/// How a method is reached by HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub verb: &'static str,
    /// The path, in which `{sandbox}` is the sandbox and any other name in braces is a param.
    pub path: &'static str,
    /// Whether it can answer with a stream of events.
    pub streams: bool,
}

/// One method of the protocol.
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// How it is reached by HTTP, if it is.
    pub route: Option<Route>,
    /// The schema of its params.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of its result.
    pub result: fn(&mut SchemaGenerator) -> Schema,
    /// Checks that something is a result of it.
    pub check: fn(Value) -> Result<(), String>,
}

impl std::fmt::Debug for Method {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Method").field("name", &self.name).finish_non_exhaustive()
    }
}

fn check<T: DeserializeOwned>(value: Value) -> Result<(), String> {
    serde_json::from_value::<T>(value).map(drop).map_err(|error| error.to_string())
}

const fn method<P: JsonSchema, R: JsonSchema + DeserializeOwned>(
    name: &'static str,
    about: &'static str,
    route: Option<Route>,
) -> Method {
    Method {
        name,
        about,
        route,
        params: SchemaGenerator::subschema_for::<P>,
        result: SchemaGenerator::subschema_for::<R>,
        check: check::<R>,
    }
}

const fn at(verb: &'static str, path: &'static str) -> Option<Route> {
    Some(Route { verb, path, streams: false })
}

const fn streaming(verb: &'static str, path: &'static str) -> Option<Route> {
    Some(Route { verb, path, streams: true })
}

/// Returns the method of a name.
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

impl Method {
    /// Returns the JSON type of each of its params that is a single value.
    pub fn scalars(&self) -> BTreeMap<String, String> {
        let mut generator = SchemaGenerator::default();
        let schema = (self.params)(&mut generator);
        let definitions = Value::Object(generator.take_definitions(true));
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
        let properties = definitions[name.unwrap_or_default()]["properties"].as_object().cloned();
        let scalar = |(name, schema): (String, Value)| {
            let kind = match &schema["type"] {
                Value::String(kind) => kind.clone(),
                Value::Array(kinds) => kinds.first()?.as_str()?.to_owned(),
                _ => return None,
            };
            Some((name, kind))
        };
        properties.into_iter().flatten().filter_map(scalar).collect()
    }
}

/// All of them, in the order of the documentation.
#[rustfmt::skip]
pub const METHODS: &[Method] = &[
    method::<p::Create, r::Done>("create", "Creates the first sandbox. The first call of a client", at("POST", "/v1/sandboxes")),
    method::<p::Nothing, r::Capabilities>("capabilities", "What the server can do; also before `create`", at("GET", "/v1/capabilities")),
    method::<p::Nothing, r::Usage>("usage", "What a sandbox uses now", at("GET", "/v1/sandboxes/{sandbox}/usage")),
    method::<p::Nothing, r::Running>("isRunning", "Whether a run is unfinished", at("GET", "/v1/sandboxes/{sandbox}/running")),
    method::<p::Nothing, r::Done>("kill", "Destroys every sandbox of the client; with `--stdio` the server ends", None),
    method::<p::Run, r::RunResult>("run", "Runs a script in the sandbox's shell, after all earlier ones", streaming("POST", "/v1/sandboxes/{sandbox}/run")),
    method::<p::RunPython, r::PythonResult>("python.run", "Runs code in an interpreter that stays", streaming("POST", "/v1/sandboxes/{sandbox}/python")),
    method::<p::Cancel, r::Cancelled>("cancel", "Cancels the run of a request, or the first that is unfinished", at("POST", "/v1/sandboxes/{sandbox}/cancel")),
    method::<p::ReadFile, r::FileData>("files.read", "Reads a file, or with `offset` or `length` a part of it", at("GET", "/v1/sandboxes/{sandbox}/files/content")),
    method::<p::WriteFile, r::Done>("files.write", "Writes a file, all of it or nothing. With `offset` everything from there on is replaced", at("PUT", "/v1/sandboxes/{sandbox}/files/content")),
    method::<p::ListFiles, r::Listing>("files.list", "Lists a directory, sorted", at("GET", "/v1/sandboxes/{sandbox}/files")),
    method::<p::Path, r::Done>("files.mkdir", "Creates a directory and its parents", at("POST", "/v1/sandboxes/{sandbox}/files/directories")),
    method::<p::Path, r::Done>("files.rm", "Removes a file, or a directory with everything in it", at("DELETE", "/v1/sandboxes/{sandbox}/files")),
    method::<p::Path, r::FileStat>("files.stat", "What is known of a file", at("GET", "/v1/sandboxes/{sandbox}/files/stat")),
    method::<p::FromTo, r::Done>("files.rename", "Renames a file or directory; replaces what is there", at("POST", "/v1/sandboxes/{sandbox}/files/rename")),
    method::<p::FromTo, r::Done>("files.copy", "Copies a file with its permissions; replaces what is there", at("POST", "/v1/sandboxes/{sandbox}/files/copy")),
    method::<p::Chmod, r::Done>("files.chmod", "Sets permissions", at("POST", "/v1/sandboxes/{sandbox}/files/chmod")),
    method::<p::Symlink, r::Done>("files.symlink", "Creates a symbolic link", at("POST", "/v1/sandboxes/{sandbox}/files/symlink")),
    method::<p::Watch, r::Watching>("files.watch", "Tells of changes in a directory from now on, [see below](#watching-directories)", None),
    method::<p::WatchId, r::Done>("files.unwatch", "Ends that", None),
    method::<p::VariableName, r::Variable>("env.get", "A variable of the shell; null if it is not set", at("GET", "/v1/sandboxes/{sandbox}/env/{name}")),
    method::<p::SetVariable, r::Done>("env.set", "Sets a variable of the shell", at("PUT", "/v1/sandboxes/{sandbox}/env/{name}")),
    method::<p::VariableName, r::Done>("env.unset", "Unsets a variable of the shell", at("DELETE", "/v1/sandboxes/{sandbox}/env/{name}")),
    method::<p::Nothing, r::Variables>("env.list", "The exported variables", at("GET", "/v1/sandboxes/{sandbox}/env")),
    method::<p::MountFiles, r::Done>("mount", "Mounts files; they count against `fsLimitBytes` and `fileCount`", at("POST", "/v1/sandboxes/{sandbox}/mounts")),
    method::<p::DiffOverlay, r::OverlayDiff>("mount.diff", "What was changed in an overlay. EFBIG if that is more than 100,000 changes or 8 MiB", at("GET", "/v1/sandboxes/{sandbox}/mounts/diff")),
    method::<p::ApplyOverlay, r::Applied>("mount.apply", "Applies an overlay's changes to its directory, all of them or none. EBUSY if that has changed", at("POST", "/v1/sandboxes/{sandbox}/mounts/apply")),
    method::<p::Nothing, r::SnapshotCreated>("snapshot.create", "Takes a snapshot. ENOSPC if those of a sandbox would keep more than `fsLimitBytes` + `memoryBytes`", at("POST", "/v1/sandboxes/{sandbox}/snapshots")),
    method::<p::SnapshotId, r::Done>("snapshot.restore", "Restores a snapshot, into any of the client's sandboxes", at("POST", "/v1/sandboxes/{sandbox}/snapshots/{id}/restore")),
    method::<p::Fork, r::Forked>("sandbox.fork", "Forks a sandbox", at("POST", "/v1/sandboxes/{sandbox}/forks")),
    method::<p::OtherSandbox, r::Done>("sandbox.destroy", "Destroys a fork", None),
    method::<p::CreateNamed, r::SandboxCreated>("sandbox.create", "Creates a sandbox with the options of `create`", None),
    method::<p::Nothing, r::Sandboxes>("sandbox.list", "Those that `sandbox.create` and `sandbox.open` created", None),
    method::<p::OtherSandbox, r::Done>("sandbox.remove", "Destroys any sandbox but the first", None),
    method::<p::Nothing, r::Done>("sandbox.suspend", "Pauses all processes of a sandbox", at("POST", "/v1/sandboxes/{sandbox}/suspend")),
    method::<p::Nothing, r::Done>("sandbox.resume", "Resumes them", at("POST", "/v1/sandboxes/{sandbox}/resume")),
    method::<p::ExportState, r::Exported>("persistence.export", "The state as bytes, or in a file in the state directory", at("POST", "/v1/sandboxes/{sandbox}/export")),
    method::<p::ImportState, r::Done>("persistence.import", "Takes over a state, from `data` or `file`", at("POST", "/v1/sandboxes/{sandbox}/import")),
    method::<p::Nothing, r::States>("persistence.list", "The client's files in the state directory", None),
    method::<p::StateName, r::Done>("persistence.remove", "Deletes one of them", None),
    method::<p::OpenStored, r::SandboxCreated>("sandbox.open", "Opens a sandbox in the server's store (`serve --store DIR`); EBUSY if it is open elsewhere", None),
    method::<p::Nothing, r::Committed>("persistence.save", "Makes a commit now", at("POST", "/v1/sandboxes/{sandbox}/commits")),
    method::<p::Checkout, r::Committed>("persistence.checkout", "Goes back to a commit; the log continues", at("POST", "/v1/sandboxes/{sandbox}/checkout")),
    method::<p::Nothing, r::Stored>("persistence.sandboxes", "The client's sandboxes in the store", None),
    method::<p::Log, r::Commits>("persistence.log", "What was done in a sandbox, newest first", None),
    method::<p::Diff, r::Changes>("persistence.diff", "Which files differ between two commits", None),
    method::<p::Branch, r::Committed>("persistence.branch", "Another sandbox, from a commit of one", None),
    method::<p::Tag, r::Done>("persistence.tag", "Tags a commit, which is then kept", None),
    method::<p::StoredName, r::Done>("persistence.delete", "Deletes a sandbox that is not open from the store", None),
    method::<p::SaveImage, r::Done>("image.save", "Saves the sandbox as it is as an image, to create others from", at("POST", "/v1/sandboxes/{sandbox}/images")),
    method::<p::Nothing, r::Images>("image.list", "The client's images in the store", None),
    method::<p::StoredName, r::Done>("image.delete", "Deletes an image. Sandboxes that were created from it stay", None),
    method::<p::ExportImage, r::Exported>("image.export", "An image as bytes, or in a file in the state directory, for another store", None),
    method::<p::ImportImage, r::Done>("image.import", "Makes an image of an exported one, within the limits of the client's sandboxes", None),
    method::<p::Nothing, r::Done>("offload", "Moves the state to the client's storage. Until `rehydrate`, other calls return EBUSY", None),
    method::<p::Nothing, r::Done>("rehydrate", "Moves the state back", None),
    method::<p::PortNumber, r::Connected>("net.connect", "Connects to a port that a program in the sandbox listens at, [see below](#connections-to-ports)", None),
    method::<p::WriteStream, r::Done>("net.write", "Writes, once the guest's socket has taken it", None),
    method::<p::AckStream, r::Done>("net.ack", "Says that so many bytes of `net.data` were taken, and as many more may come", None),
    method::<p::StreamId, r::Done>("net.closeWrite", "Lets the guest read the end after what was written before", None),
    method::<p::StreamId, r::Done>("net.close", "Closes a connection immediately", None),
    method::<p::PortNumber, r::PortUrl>("net.url", "Where `serve --http` serves a port ([deployment.md](deployment.md#ports-of-sandboxes)); ENOTSUP without it", at("GET", "/v1/sandboxes/{sandbox}/ports/{port}")),
    method::<p::StartProcess, r::Started>("process.start", "Starts a process beside the shell, [see below](#processes)", streaming("POST", "/v1/sandboxes/{sandbox}/processes")),
    method::<p::WriteProcess, r::Done>("process.write", "Writes, once the process can read it", at("POST", "/v1/sandboxes/{sandbox}/processes/{processId}/stdin")),
    method::<p::ProcessId, r::Done>("process.closeStdin", "Lets the process read the end after what was written before; at a terminal, Ctrl-D is typed", at("DELETE", "/v1/sandboxes/{sandbox}/processes/{processId}/stdin")),
    method::<p::AckProcess, r::Done>("process.ack", "Says that so many bytes of `process.output` were taken", None),
    method::<p::SignalProcess, r::Done>("process.signal", "Sends a signal to a process and to what it started in its group. \"KILL\" ends everything it started", at("POST", "/v1/sandboxes/{sandbox}/processes/{processId}/signal")),
    method::<p::ProcessId, r::Ended>("process.wait", "How a process ended, once all of its output was sent", at("GET", "/v1/sandboxes/{sandbox}/processes/{processId}/wait")),
    method::<p::ResizeProcess, r::Done>("process.resize", "Sets the size of a process' terminal", at("POST", "/v1/sandboxes/{sandbox}/processes/{processId}/resize")),
    method::<p::Nothing, r::ProcessList>("process.list", "The processes that run", at("GET", "/v1/sandboxes/{sandbox}/processes")),
    method::<p::Nothing, r::History>("shell.history.list", "The last 1,000 commands, up to 1 MiB", at("GET", "/v1/sandboxes/{sandbox}/history")),
    method::<p::Nothing, r::Done>("shell.history.clear", "Forgets them", at("DELETE", "/v1/sandboxes/{sandbox}/history")),
];
