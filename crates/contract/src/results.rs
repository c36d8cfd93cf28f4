//! What requests are answered with. What is optional is left out where it does not apply.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Declares results.
macro_rules! results {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }
    )*};
}

/// The sandboxes that `sandbox.create` created.
pub type Sandboxes = Vec<SandboxInfo>;

results! {
    /// It is done.
    Done {
        /// True.
        ok: bool,
    }

    /// How a run went.
    RunResult {
        /// The exit code.
        exit_code: i32,
        /// What was written to standard output.
        stdout: String,
        /// What was written to standard error.
        stderr: String,
        /// How long it took.
        execution_time_ms: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Both streams in order, if asked for.
        output: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Which streams were cut.
        truncated: Option<Truncated>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Why it was ended: TIMEOUT, CANCELLED, LIMIT_EXCEEDED or CAPABILITY_DENIED.
        error_class: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// The first limit that was hit.
        limit: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// How long it waited for programs to be compiled.
        waited_ms: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// What became of `outputFile`.
        output_file: Option<OutputFile>,
    }

    /// A file with the output of a run.
    OutputFile {
        /// Its absolute path.
        path: String,
        /// How many bytes of the output it has.
        bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Why the rest is not in it: an errno's name. ENOSPC: no room; ESTALE: something else has changed it.
        error: Option<String>,
    }

    /// Which streams were cut.
    Truncated {
        /// Standard output.
        stdout: bool,
        /// Standard error.
        stderr: bool,
    }

    /// How code went.
    PythonResult {
        /// The exit code.
        exit_code: i32,
        /// What was written to standard output.
        stdout: String,
        /// What was written to standard error.
        stderr: String,
        /// How long it took.
        execution_time_ms: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Both streams in order, if asked for.
        output: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Which streams were cut.
        truncated: Option<Truncated>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Why it was ended: TIMEOUT, CANCELLED, LIMIT_EXCEEDED or CAPABILITY_DENIED.
        error_class: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// The first limit that was hit.
        limit: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// How long it waited for programs to be compiled.
        waited_ms: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// The last expression's value, unless that is None.
        value: Option<Shown>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// What was displayed.
        displays: Option<Vec<Shown>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// The uncaught exception.
        error: Option<PythonError>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Whether something was too long to be shown whole.
        value_truncated: Option<bool>,
    }

    /// A value, in the forms that it has.
    Shown {
        /// As text.
        repr: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// As HTML.
        html: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// As an image, in base64.
        png: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// As JSON.
        json: Option<Value>,
    }

    /// An exception.
    PythonError {
        /// The name of its class.
        r#type: String,
        /// Its message.
        message: String,
        /// Its lines.
        traceback: Vec<String>,
    }

    /// Whether there was a run to cancel.
    Cancelled {
        /// True.
        ok: bool,
        /// Whether there was one.
        cancelled: bool,
    }

    /// Whether a run is unfinished.
    Running {
        /// Whether one is.
        running: bool,
    }

    /// What a sandbox uses now.
    Usage {
        /// How many processes.
        processes: u64,
        /// How much memory.
        memory_bytes: u64,
        /// How much its files have.
        fs_bytes: u64,
    }

    /// What the server can do.
    Capabilities {
        /// Its version.
        version: String,
        /// Its methods.
        methods: Vec<String>,
        /// Whether it serves HTTP.
        http: bool,
        /// Whether it has a directory for states.
        state_directory: bool,
        /// How many sandboxes all clients may have.
        max_sandboxes: u64,
        /// How many processes a client may have beside its shells.
        processes: u64,
        /// How many connections to ports a client may have.
        connections: u64,
        /// How long an answer may be.
        answer_bytes: u64,
        /// The limits of a sandbox that asks for no others.
        limits: BTreeMap<String, u64>,
    }

    /// A file's content, or a part of it.
    FileData {
        /// The content, in base64.
        data: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Of a part: the size of the whole file.
        size: Option<u64>,
    }

    /// A directory.
    Listing {
        /// What is in it, sorted by name.
        entries: Vec<FileEntry>,
    }

    /// A file in a directory.
    FileEntry {
        /// Its name; a path below the directory if that was listed with everything below it.
        name: String,
        /// `file`, `dir` or `symlink`.
        r#type: String,
        /// Its size in bytes.
        size: u64,
    }

    /// What is known of a file.
    FileStat {
        /// Its name.
        name: String,
        /// `file`, `dir` or `symlink`.
        r#type: String,
        /// Its size in bytes.
        size: u64,
        /// Its permission bits.
        mode: u32,
        /// When it was last written.
        mtime_ms: u64,
    }

    /// A new watcher.
    Watching {
        /// Its id.
        watch_id: String,
    }

    /// A variable's value.
    Variable {
        /// The value, if it is set.
        value: Option<String>,
    }

    /// The exported variables.
    Variables {
        /// By name.
        variables: BTreeMap<String, String>,
    }

    /// A new snapshot.
    SnapshotCreated {
        /// Its id.
        id: String,
    }

    /// New forks.
    Forked {
        /// The first.
        sandbox_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// All of them, if a number was asked for.
        sandbox_ids: Option<Vec<String>>,
    }

    /// A new sandbox.
    SandboxCreated {
        /// Its id.
        sandbox_id: String,
    }

    /// A sandbox.
    SandboxInfo {
        /// Its id.
        sandbox_id: String,
        /// What it was created with.
        label: Option<String>,
        /// When that was.
        created_at: String,
        /// Whether it is out of memory until its next call.
        asleep: bool,
    }

    /// A state, or that it is in its file.
    Exported {
        #[serde(skip_serializing_if = "Option::is_none")]
        /// The state, in base64.
        data: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// True, if it is in its file.
        ok: Option<bool>,
    }

    /// The client's states.
    States {
        /// By name.
        states: Vec<State>,
    }

    /// A state in the state directory.
    State {
        /// Its name.
        file: String,
        /// Its size.
        bytes: u64,
        /// When it was written.
        modified_ms: u64,
    }

    /// A commit.
    Committed {
        /// Its number.
        commit: i64,
    }

    /// What there is in the store.
    Stored {
        /// The client's sandboxes.
        sandboxes: Vec<StoredSandbox>,
    }

    /// A sandbox in the store.
    StoredSandbox {
        /// Its name.
        name: String,
        /// How many commits it has.
        commits: u64,
        /// When it was created.
        created_ms: u64,
        /// When it was last changed.
        changed_ms: u64,
        /// Who has it open.
        holder: Option<String>,
    }

    /// What was done in a sandbox.
    Commits {
        /// Newest first.
        commits: Vec<Commit>,
    }

    /// What is known of a commit.
    Commit {
        /// Its number.
        commit: i64,
        /// The number of the one before.
        parent: Option<i64>,
        /// When it was made.
        time_ms: u64,
        /// The command that it is the result of.
        command: String,
        /// That command's exit code.
        exit_code: Option<i32>,
        /// How much it added to the store.
        bytes: u64,
        /// Its tags.
        tags: Vec<String>,
    }

    /// What differs between two commits.
    Changes {
        /// The files.
        changes: Vec<Change>,
    }

    /// A file that differs.
    Change {
        /// Its path.
        path: String,
        /// `A`, `M` or `D`: added, modified or deleted.
        change: String,
    }

    /// What differs between an overlay and the directory below it.
    OverlayDiff {
        /// By path; a file with new content and new permissions is there twice.
        changes: Vec<OverlayChange>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// The same as a patch for `git apply`, if asked for. Files that are not text are only named.
        patch: Option<String>,
    }

    /// A difference.
    OverlayChange {
        /// The path below the mount.
        path: String,
        /// `A`, `M`, `D` or `P`: added, modified, deleted, or with other permissions.
        change: String,
        /// `file`, `dir` or `symlink`; of what is deleted, what it was.
        r#type: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Its permission bits, or those it had; of what is modified none.
        mode: Option<u32>,
    }

    /// What was applied.
    Applied {
        /// By path.
        changes: Vec<OverlayChange>,
    }

    /// Images in the store.
    Images {
        /// By their names.
        images: Vec<ImageInfo>,
    }

    /// An image.
    ImageInfo {
        /// Its name.
        name: String,
        /// When it was saved.
        created_ms: u64,
        /// What made it.
        script: String,
        /// The image that it was made from, if that is the client's.
        base: Option<String>,
        /// The version of Wardian that made it.
        version: String,
    }

    /// A connection.
    Connected {
        /// Its id.
        stream_id: String,
    }

    /// Where a port is served by HTTP.
    PortUrl {
        /// The address.
        url: String,
        /// Its path.
        path: String,
    }

    /// A new process.
    Started {
        /// Its id.
        process_id: String,
        /// Its number in the sandbox.
        pid: u32,
    }

    /// How a process ended.
    Ended {
        /// The exit code.
        exit_code: i32,
        /// How long it ran.
        execution_time_ms: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// The signal that ended it.
        signal: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Why it was ended.
        error_class: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// The limit that was hit.
        limit: Option<String>,
    }

    /// The processes that run.
    ProcessList {
        /// By their ids.
        processes: Vec<ProcessInfo>,
    }

    /// A process that runs.
    ProcessInfo {
        /// Its id.
        process_id: String,
        /// Its number in the sandbox.
        pid: u32,
        /// What it was started with.
        command: String,
        /// Whether it has a terminal.
        pty: bool,
    }

    /// The last commands.
    History {
        /// The oldest first.
        entries: Vec<HistoryEntry>,
    }

    /// A command that was run.
    HistoryEntry {
        /// Its number.
        index: u64,
        /// The command.
        command: String,
        /// When that was.
        timestamp: u64,
    }
}
