//! What requests are read into. An option that is absent has the default that its description names.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::kinds::{Base64, Count, Mode, MountFile, Nice, Object, Port, RequestId, Side, Timeout};

/// Params that can name a sandbox.
pub trait About {
    /// Returns the sandbox that they name.
    fn sandbox_id(&self) -> Option<&str>;
}

/// Declares params. All of them refuse what they do not know, and all can name a sandbox.
macro_rules! params {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            /// The sandbox that it is about; the first one of the client if there is none.
            pub sandbox_id: Option<String>,
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        impl About for $name {
            fn sandbox_id(&self) -> Option<&str> {
                self.sandbox_id.as_deref()
            }
        }
    )*};
}

/// Declares objects within params.
macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }
    )*};
}

/// What becomes of files when a command is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnKill {
    /// They stay as the command left them.
    Keep,
    /// They are as before the command.
    Rollback,
}

/// What can be changed of a directory of the server's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostMode {
    /// Nothing.
    Ro,
    /// Everything.
    Rw,
    /// What is changed stays in the sandbox until it is applied.
    Overlay,
}

/// How output travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Encoding {
    /// As text; bytes that are not UTF-8 become U+FFFD.
    #[default]
    #[serde(rename = "utf-8")]
    Text,
    /// As base64.
    #[serde(rename = "base64")]
    Base64,
}

params! {
    /// Nothing but a sandbox.
    Nothing {}

    /// The first sandbox of a client, and the options of all others.
    Create {
        /// How long a command may run; 0: no limit. 30000 by default.
        timeout_ms: Option<Timeout>,
        /// How long processes in the background may outlive their command; 0: as long as the sandbox lives. 600000 by default.
        background_timeout_ms: Option<Timeout>,
        /// How many bytes all files may have together. 268435456 by default.
        fs_limit_bytes: Option<u64>,
        /// The other limits.
        limits: Option<Limits>,
        /// Which programs may run, and limits.
        security: Option<Security>,
        /// Files given as bytes.
        mounts: Option<Vec<Mount>>,
        /// Directories of the server's machine below those that `serve --allow-mount` names, at most 16.
        host_mounts: Option<Vec<HostMount>>,
        /// The shell's variables.
        env: Option<BTreeMap<String, String>>,
        /// Functions of the client as commands.
        extensions: Option<Vec<Extension>>,
        /// How many shells the server keeps ready.
        pool: Option<Pool>,
        /// Whether the client stores states, for `offload`. False by default.
        storage: Option<bool>,
        /// From 0 to 19: a smaller share of the processor. 0 by default.
        nice: Option<Nice>,
        /// Where the shell starts. /home/user by default.
        cwd: Option<String>,
        /// Absolute paths outside of which everything is read-only.
        writable_paths: Option<Vec<String>>,
        /// Whether the files of a command that is killed are kept or restored. "keep" by default.
        on_kill: Option<OnKill>,
        /// Directories where Python looks first.
        python_path: Option<Vec<String>>,
        /// What may be reached outside (docs/network.md); nothing by default.
        network: Option<Object>,
        /// A secret of 16 to 256 bytes that makes state files and names this client's own.
        state_token: Option<String>,
        /// The name of an image to start from, in the server's store.
        image: Option<String>,
        /// Under which name it is saved in the server's store, and when: `name`, `mode`, `durability`, `autosaveMs`, `idleSeconds`.
        persistence: Option<Object>,
        /// Accepted and ignored: for servers that have to be told where their programs are.
        wasm_dir: Option<Value>,
        /// Accepted and ignored.
        shell_wasm_path: Option<Value>,
    }

    /// A command for the shell.
    Run {
        /// The script.
        command: String,
        /// Standard input.
        stdin: Option<Base64>,
        /// How long it may run; 0: no limit. As `create` said by default.
        timeout_ms: Option<Timeout>,
        /// Whether shell options and traps that it sets end with it. False by default.
        contained: Option<bool>,
        /// Variables for this command only.
        env: Option<BTreeMap<String, String>>,
        /// Where this command runs.
        cwd: Option<String>,
        /// What becomes of files when this command is killed. As `create` said by default.
        on_kill: Option<OnKill>,
        /// A file of the sandbox in which all of the output is kept, both streams in order, beyond all limits of the result.
        output_file: Option<String>,
        /// How output travels. "utf-8" by default.
        encoding: Option<Encoding>,
        /// Whether the result has both streams in one, in order. False by default.
        output: Option<bool>,
        /// Whether output is also sent as it is written. False by default.
        stream: Option<bool>,
    }

    /// Code for an interpreter that stays.
    RunPython {
        /// The code.
        code: String,
        /// Which interpreter. "main" by default.
        context: Option<String>,
        /// Standard input.
        stdin: Option<Base64>,
        /// How long it may run; 0: no limit. As `create` said by default.
        timeout_ms: Option<Timeout>,
        /// How output travels. "utf-8" by default.
        encoding: Option<Encoding>,
        /// Whether the result has both streams in one, in order. False by default.
        output: Option<bool>,
        /// Whether output is also sent as it is written. False by default.
        stream: Option<bool>,
    }

    /// Which run to cancel.
    Cancel {
        /// The id of its request; the first unfinished run by default.
        request_id: Option<RequestId>,
    }

    /// A path.
    Path {
        /// The path.
        path: String,
    }

    /// A directory to be told of.
    Watch {
        /// The path.
        path: String,
        /// Everything below it. False by default.
        recursive: Option<bool>,
    }

    /// A watcher.
    WatchId {
        /// Its id.
        watch_id: String,
    }

    /// An overlay.
    DiffOverlay {
        /// Where it is mounted.
        path: String,
        /// Whether the answer also has the changes as a patch for `git apply`. False by default.
        patch: Option<bool>,
    }

    /// An overlay.
    ApplyOverlay {
        /// Where it is mounted.
        path: String,
        /// Whether everything is only checked. False by default.
        dry_run: Option<bool>,
    }

    /// A file, or a part of it.
    ReadFile {
        /// The path.
        path: String,
        /// Where the part begins.
        offset: Option<u64>,
        /// How long the part is. 1048576 by default, if there is an offset.
        length: Option<u64>,
    }

    /// A file and its content.
    WriteFile {
        /// The path.
        path: String,
        /// The content.
        data: Base64,
        /// Whether missing directories are created. False by default.
        parents: Option<bool>,
        /// Permission bits.
        mode: Option<Mode>,
        /// Where the content begins, at most the file's size; everything from there on is replaced.
        offset: Option<u64>,
    }

    /// A directory.
    ListFiles {
        /// The path.
        path: String,
        /// Everything below it. False by default.
        recursive: Option<bool>,
    }

    /// A path and another.
    FromTo {
        /// The path.
        path: String,
        /// The other path.
        to: String,
    }

    /// A path and its permissions.
    Chmod {
        /// The path.
        path: String,
        /// Permission bits.
        mode: Mode,
    }

    /// A symbolic link.
    Symlink {
        /// The path of the link.
        path: String,
        /// What it leads to.
        target: String,
    }

    /// A variable.
    VariableName {
        /// Its name.
        name: String,
    }

    /// A variable and its value.
    SetVariable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    }

    /// Files to mount.
    MountFiles {
        /// Where.
        path: String,
        /// The files, by their paths below it.
        files: BTreeMap<String, MountFile>,
        /// Whether they can be written to. False by default.
        writable: Option<bool>,
    }

    /// A snapshot.
    SnapshotId {
        /// Its id.
        id: String,
    }

    /// How many forks.
    Fork {
        /// How many. 1 by default.
        count: Option<Count>,
    }

    /// A sandbox with the options of `create`.
    CreateNamed {
        /// What lists show of it, at most 256 bytes.
        label: Option<String>,
        /// The name of an image to start from.
        image: Option<String>,
        /// Under which name it is saved, and when.
        persistence: Option<Object>,
    }

    /// A state, as bytes or as a file in the state directory.
    ImportState {
        /// The state.
        data: Option<Base64>,
        /// The name of its file.
        file: Option<String>,
    }

    /// Where a state goes.
    ExportState {
        /// The name of a file in the state directory; without it the answer has the state.
        file: Option<String>,
    }

    /// A commit of an open sandbox.
    Checkout {
        /// Its number or tag.
        commit: String,
    }

    /// A port.
    PortNumber {
        /// From 1 to 65535.
        port: Port,
    }

    /// A connection.
    StreamId {
        /// Its id.
        stream_id: String,
    }

    /// Bytes for a connection.
    WriteStream {
        /// Its id.
        stream_id: String,
        /// At most 1 MiB.
        data: Base64,
    }

    /// Bytes that were taken from a connection.
    AckStream {
        /// Its id.
        stream_id: String,
        /// How many.
        bytes: u64,
    }

    /// A process beside the shell; either `command` or `argv`.
    StartProcess {
        /// A script for a fresh shell.
        command: Option<String>,
        /// A program and its arguments.
        argv: Option<Vec<String>>,
        /// Its variables.
        env: Option<BTreeMap<String, String>>,
        /// Where it starts.
        cwd: Option<String>,
        /// Whether it has a standard input. False by default.
        stdin: Option<bool>,
        /// A terminal for it.
        pty: Option<Screen>,
        /// How long it may run; without it, or with 0, as long as its sandbox lives.
        timeout_ms: Option<Timeout>,
    }

    /// A process.
    ProcessId {
        /// Its id.
        process_id: String,
    }

    /// Bytes for a process.
    WriteProcess {
        /// Its id.
        process_id: String,
        /// At most 1 MiB.
        data: Base64,
    }

    /// Bytes that were taken from a process.
    AckProcess {
        /// Its id.
        process_id: String,
        /// How many.
        bytes: u64,
    }

    /// A signal for a process.
    SignalProcess {
        /// Its id.
        process_id: String,
        /// The name of a signal, such as TERM.
        signal: String,
    }

    /// The size of a process' terminal.
    ResizeProcess {
        /// Its id.
        process_id: String,
        /// How many rows.
        rows: Side,
        /// How many columns.
        columns: Side,
    }

    /// A name in the server's store. Methods that take one are about what is stored, not about an open sandbox.
    StoredName {
        /// The name of a sandbox or an image.
        name: String,
    }

    /// A file in the state directory.
    StateName {
        /// Its name.
        file: String,
    }

    /// Which commits to list.
    Log {
        /// The name of a sandbox.
        name: String,
        /// Those before this one.
        before: Option<u64>,
        /// How many, at most 1000. 100 by default.
        limit: Option<u64>,
    }

    /// Two commits.
    Diff {
        /// The name of a sandbox.
        name: String,
        /// The number or tag of one.
        from: String,
        /// The number or tag of the other; the last by default.
        to: Option<String>,
    }

    /// A sandbox from a commit of another.
    Branch {
        /// The name of a sandbox.
        name: String,
        /// The name of the new one.
        new_name: String,
        /// The number or tag of the commit; the last by default.
        commit: Option<String>,
    }

    /// A tag for a commit.
    Tag {
        /// The name of a sandbox.
        name: String,
        /// The tag.
        tag: String,
        /// The number of the commit.
        commit: String,
    }

    /// A sandbox of the server's store.
    OpenStored {
        /// Its name.
        name: String,
        /// After how many seconds without a call it leaves memory, until the next one. As the server says by default.
        idle_seconds: Option<u64>,
    }

    /// Where an image goes.
    ExportImage {
        /// Its name.
        name: String,
        /// The name of a file in the state directory; without it the answer has the image.
        file: Option<String>,
    }

    /// An exported image, as bytes or as a file in the state directory.
    ImportImage {
        /// Its name, which must be new.
        name: String,
        /// The image.
        data: Option<Base64>,
        /// The name of its file.
        file: Option<String>,
    }

    /// An image of a sandbox as it is.
    SaveImage {
        /// Its name, which must be new.
        name: String,
        /// The script it was made with, for reference.
        script: Option<String>,
        /// The name of the image that it was made from.
        base: Option<String>,
    }
}

objects! {
    /// Limits of a sandbox.
    Limits {
        /// How much of standard output is kept. 1048576 by default.
        stdout_bytes: Option<u64>,
        /// How much of standard error is kept. 1048576 by default.
        stderr_bytes: Option<u64>,
        /// How long a command may be. 65536 by default.
        command_bytes: Option<u64>,
        /// How many processes there may be at once. 256 by default.
        processes: Option<u64>,
        /// How many files each process may have open. 256 by default.
        open_files: Option<u64>,
        /// How many files there may be. 1000000 by default.
        file_count: Option<u64>,
        /// Memory of all processes together. 1073741824 by default.
        memory_bytes: Option<u64>,
        /// The longest line that the server accepts. 8388608 by default.
        rpc_bytes: Option<u64>,
    }

    /// What may run.
    Security {
        /// The programs and builtins that may run; all by default.
        tool_allowlist: Option<Vec<String>>,
        /// Another place for `limits`.
        limits: Option<Limits>,
    }

    /// How many shells the server keeps ready.
    Pool {
        /// How many at least.
        min_size: Option<u64>,
        /// How many at most.
        max_size: Option<u64>,
    }

    /// Files of a new sandbox.
    Mount {
        /// Where.
        path: String,
        /// The files, by their paths below it.
        files: BTreeMap<String, MountFile>,
        /// Whether they can be written to. False by default.
        writable: Option<bool>,
    }

    /// A directory of the server's machine.
    HostMount {
        /// Its absolute path there.
        host: String,
        /// Where it is in the sandbox.
        path: String,
        /// What of it can be changed. "ro" by default.
        mode: Option<HostMode>,
    }

    /// A function of the client as a command.
    Extension {
        /// The command's name.
        name: String,
        /// What it does, for its help.
        description: Option<String>,
        /// How it is used.
        usage: Option<String>,
        /// Examples of its use.
        examples: Option<Vec<String>>,
        /// Under which heading it is listed.
        category: Option<String>,
        /// Whether there is a command; without it there is only a package. True by default.
        has_command: Option<bool>,
        /// A package for Python.
        python_package: Option<PythonPackage>,
    }

    /// A package for Python.
    PythonPackage {
        /// Its version.
        version: Option<String>,
        /// What it is.
        summary: Option<String>,
        /// Its files, as text, by their paths.
        files: Option<BTreeMap<String, String>>,
    }

    /// The size of a terminal.
    Screen {
        /// How many rows.
        rows: Side,
        /// How many columns.
        columns: Side,
    }

    /// A sandbox, which has to be named.
    OtherSandbox {
        /// Its id.
        sandbox_id: String,
    }
}
