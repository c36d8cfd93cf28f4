//! The options that a store keeps with a sandbox.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Builder, Limits, OnKill};

impl Builder {
    /// Returns the options that a store keeps with a sandbox. Mounts are part of its files; what it may reach outside
    /// (network, secrets, extensions, native programs) must be granted again by the caller that opens it.
    pub(super) fn to_saved(&self) -> Value {
        let millis = |time: Option<Duration>| time.map(|time| time.as_millis() as u64);
        json!({
            "stdoutBytes": self.limits.stdout_bytes,
            "stderrBytes": self.limits.stderr_bytes,
            "commandBytes": self.limits.command_bytes,
            "fsBytes": self.limits.fs_bytes,
            "fileCount": self.limits.file_count,
            "memoryBytes": self.limits.memory_bytes,
            "processes": self.limits.processes,
            "openFiles": self.limits.open_files,
            "timeoutMs": millis(self.timeout),
            "backgroundTimeoutMs": millis(self.background_timeout),
            "rollback": self.on_kill == OnKill::Rollback,
            "env": self.env,
            "cwd": self.cwd,
            "writablePaths": self.writable_paths,
            "toolAllowlist": self.tool_list,
            "nice": self.nice,
            "pythonPath": self.python_path,
        })
    }

    /// Sets the options that a store has kept.
    pub(crate) fn with_saved(mut self, saved: &Value) -> Builder {
        let number = |name: &str| saved[name].as_u64();
        let size = |name: &str, default: usize| number(name).map_or(default, |value| value as usize);
        let strings = |name: &str| -> Option<Vec<String>> {
            Some(saved[name].as_array()?.iter().filter_map(|each| Some(each.as_str()?.to_owned())).collect())
        };
        let default = Limits::default();
        self.limits = Limits {
            stdout_bytes: size("stdoutBytes", default.stdout_bytes),
            stderr_bytes: size("stderrBytes", default.stderr_bytes),
            command_bytes: size("commandBytes", default.command_bytes),
            fs_bytes: number("fsBytes").unwrap_or(default.fs_bytes),
            file_count: number("fileCount").unwrap_or(default.file_count),
            memory_bytes: number("memoryBytes").unwrap_or(default.memory_bytes),
            processes: size("processes", default.processes).min(wardian_kernel::Limits::MOST_PROCESSES),
            open_files: size("openFiles", default.open_files).min(wardian_kernel::Limits::MOST_OPEN_FILES),
        };
        self.timeout = number("timeoutMs").map(Duration::from_millis);
        self.background_timeout = number("backgroundTimeoutMs").map(Duration::from_millis);
        self.on_kill = if saved["rollback"] == true { OnKill::Rollback } else { OnKill::Keep };
        let pairs = saved["env"].as_array().into_iter().flatten();
        let pair = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
        self.env = pairs.filter_map(pair).collect();
        self.cwd = saved["cwd"].as_str().unwrap_or("/home/user").to_owned();
        self.writable_paths = strings("writablePaths");
        self.nice = number("nice").unwrap_or(0).min(19) as u8;
        self.python_path = strings("pythonPath").unwrap_or_default();
        match strings("toolAllowlist") {
            Some(tools) => self.tool_allowlist(tools),
            None => self,
        }
    }
}
