//! Programs typed at: a real terminal (tmux's), real keys, and what a person would see.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A tmux server of its own with one window, in which a program runs.
pub(super) struct Tmux {
    socket: PathBuf,
    /// Where its history is; a later shell can use it too.
    state: Option<tempfile::TempDir>,
}

/// Long enough for any machine; nothing is asserted about how long it takes.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

impl Tmux {
    /// Starts `wardian shell` in a window of 80 by 24. Its history is in `state`.
    pub(super) fn start(state: tempfile::TempDir, flags: &str) -> Tmux {
        Tmux::start_with(state, "", flags)
    }

    /// Does the same, with more variables: `NAME=VALUE …`.
    pub(super) fn start_with(state: tempfile::TempDir, variables: &str, flags: &str) -> Tmux {
        let home = state.path().display().to_string();
        let wardian = env!("CARGO_BIN_EXE_wardian");
        let shell = format!(
            "XDG_STATE_HOME={home} {variables} {wardian} shell {flags}; echo left with $?; sleep 1000"
        );
        let tmux = Tmux::start_program(state, &shell);
        tmux.wait_for("user@wardian:~$");
        tmux
    }

    /// Starts a command of this machine in such a window.
    pub(super) fn start_program(state: tempfile::TempDir, command: &str) -> Tmux {
        let tmux = Tmux { socket: unique_socket(&state), state: Some(state) };
        tmux.command(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", command]);
        tmux
    }

    pub(super) fn command(&self, words: &[&str]) -> String {
        let output = Command::new("tmux").arg("-S").arg(&self.socket).args(words).output();
        let output = output.expect("these tests need tmux: apt-get install tmux");
        assert!(output.status.success(), "tmux {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// What the window shows, without the blank lines below.
    pub(super) fn screen(&self) -> String {
        self.command(&["capture-pane", "-p", "-S", "-200"]).trim_end().to_owned()
    }

    pub(super) fn wait_until(&self, what: &str, seen: impl Fn(&str) -> bool) {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if seen(&screen) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{what} did not come; the screen:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a line of the screen is exactly this.
    pub(super) fn wait_for(&self, line: &str) {
        self.wait_until(line, |screen| screen.lines().any(|shown| shown.trim_end() == line));
    }

    /// Waits until the last line is this.
    pub(super) fn wait_for_last(&self, line: &str) {
        self.wait_until(line, |screen| screen.lines().last().is_some_and(|last| last.trim_end() == line));
    }

    pub(super) fn keys(&self, keys: &[&str]) {
        self.command(&[&["send-keys"], keys].concat());
    }

    /// Types a line, and waits until the editor shows it before Enter is pressed.
    pub(super) fn line(&self, text: &str) {
        self.command(&["send-keys", "-l", text]);
        self.wait_until(text, |screen| {
            screen.lines().last().is_some_and(|last| last.trim_end().ends_with(text.trim_end()))
        });
        self.keys(&["Enter"]);
    }

    /// Ends the shell with Ctrl-D; answers what it left behind.
    pub(super) fn leave(mut self) -> tempfile::TempDir {
        self.wait_for_last("user@wardian:~$");
        self.keys(&["C-d"]);
        self.wait_until("the end", |screen| screen.contains("left with"));
        self.state.take().expect("nobody has taken it")
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// A socket that no earlier server of the same test has.
fn unique_socket(state: &tempfile::TempDir) -> PathBuf {
    let taken = std::fs::read_dir(state.path()).map_or(0, Iterator::count);
    state.path().join(format!("tmux-{taken}"))
}

pub(super) fn state() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}
