//! Native programs as commands in the sandbox, through the host-tool gateway (`wardian-hosttools`).
//!
//! ```text
//!  $ cd /src/lib; git log ../README        sandbox: /src is /home/me/project, mounted
//!      │  directory and paths below /src become the host's
//!      ▼
//!  ToolSandbox::run, nine stages           host: jail /home/me/project
//!      │  the jail's name becomes /src
//!      ▼
//!  standard output, standard error, exit code
//! ```
//!
//! With an overlay, the host's directory is a private copy of what the sandbox sees (`overlay_copy.rs`), and what the
//! program changes there is taken back.
//!
//! `git commit` without a message opens the sandbox's editor first (`git_editor.rs`).
//!
//! A path is mapped if it is a whole argument or follows a `=`; the gateway checks everything else. Standard input is
//! empty.

use tokio::sync::mpsc;
use wardian_hosttools::{Ended, Finished, Request, Stream, ToolError, ToolSandbox};

use crate::error::Error;
use crate::extension::{Extension, ExtensionCall, ExtensionSpec};
use crate::git_editor;
use crate::mounts::{HostMount, MountMode, NewMount};
use crate::overlay_copy::{OverlayCopy, Wanted};
use crate::sandbox::new_id;

/// The exit code when the gateway refuses a call: a shell's code for a file that may not be run.
const REFUSED: u8 = 126;
/// The exit code after a timeout.
const TIMED_OUT: u8 = 124;

/// A native program to expose as a command.
#[derive(Clone)]
pub(crate) struct HostTool {
    door: ToolSandbox,
    name: String,
    mount: String,
}

impl HostTool {
    pub(crate) fn new(door: &ToolSandbox, name: String, mount: String) -> HostTool {
        HostTool { door: door.clone(), name, mount }
    }

    /// Returns the command, if the sandbox and the program see the same files.
    pub(crate) fn into_extension(self, mounts: &[NewMount]) -> Result<Extension, Error> {
        let (about, overlay) =
            self.checked(mounts).map_err(|why| Error::Option(format!("host tool '{}': {why}", self.name)))?;
        let spec = ExtensionSpec {
            category: "host tool".to_owned(),
            ..ExtensionSpec::new(&self.name, format!("{about} (a native program; sees {} alone)", self.mount))
        };
        let session = new_id();
        let names = Names::new(&self)?;
        Ok(Extension::new(spec, move |mut call| {
            let tool = Tool { door: self.door.clone(), name: self.name.clone(), session: session.clone() };
            let names = names.clone();
            async move {
                if tool.name == "git" {
                    git_editor::change_directory(&mut call);
                    if let Some(code) = git_editor::edited(&mut call).await {
                        return code;
                    }
                }
                if overlay {
                    tool.run_on_copy(names, call).await
                } else {
                    tool.run(&names, call, &[]).await.0
                }
            }
        }))
    }

    /// Checks that the program can be a command here. Returns its one-line description, and whether it works on an
    /// overlay.
    fn checked(&self, mounts: &[NewMount]) -> Result<(String, bool), String> {
        let Some(policy) = self.door.policy().programs.get(&self.name) else {
            return Err("not listed in the policy".to_owned());
        };
        let jail = self.door.jail().ok_or("host tools are disabled")?;
        let Some(mount) = mounts.iter().find_map(|mount| self.host_mount(mount)) else {
            return Err(format!("no host directory is mounted at {}", self.mount));
        };
        if mount.host.canonicalize().ok().as_deref() != Some(jail) {
            return Err(format!("what is mounted at {} is not the gateway's jail", self.mount));
        }
        if mount.mode == MountMode::ReadOnly && policy.write {
            return Err("it may write, but its mount is read-only".to_owned());
        }
        let about = if policy.about.is_empty() { &self.name } else { &policy.about };
        Ok((about.clone(), mount.mode == MountMode::Overlay))
    }

    fn host_mount<'a>(&self, mount: &'a NewMount) -> Option<&'a HostMount> {
        match mount {
            NewMount::Host(mount) if mount.path.trim_end_matches('/') == self.mount.trim_end_matches('/') => {
                Some(mount)
            }
            _ => None,
        }
    }
}

/// The two paths of the directory.
#[derive(Clone)]
struct Names {
    jail: String,
    mount: String,
}

impl Names {
    fn new(tool: &HostTool) -> Result<Names, Error> {
        let jail = tool.door.jail().and_then(|jail| jail.to_str());
        let jail = jail.ok_or_else(|| Error::Option("the jail's name is not UTF-8".to_owned()))?.to_owned();
        Ok(Names { jail, mount: tool.mount.trim_end_matches('/').to_owned() })
    }

    /// Returns the host path for a path below the mount.
    fn on_host(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(&self.mount)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", self.jail))
    }

    fn argument(&self, word: String) -> String {
        if let Some(path) = self.on_host(&word) {
            return path;
        }
        let value = word.split_once('=').and_then(|(flag, value)| Some((flag, self.on_host(value)?)));
        match value {
            Some((flag, path)) => format!("{flag}={path}"),
            None => word,
        }
    }
}

/// What a sandbox's user may tell git about an author: text that names no file and no program.
const AUTHOR: [&str; 6] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
];

/// A program that is called.
struct Tool {
    door: ToolSandbox,
    name: String,
    session: String,
}

impl Tool {
    /// One call on a copy of an overlay, whose changes are taken back if the program ended by itself.
    async fn run_on_copy(self, names: Names, mut call: ExtensionCall) -> u8 {
        let Names { mount, .. } = names;
        let (machine, wanted) = (call.machine.clone(), Wanted::default());
        let _wanting = wanted.hold();
        let (door, at) = (self.door.clone(), mount.clone());
        let copying = machine.aside(move |tree| {
            let copy = OverlayCopy::of(tree, &at, &wanted);
            Ok(copy.and_then(|copy| {
                let door = door.within(&copy.path()).map_err(|error| error.to_string())?;
                Ok((copy, door))
            }))
        });
        let (copy, door) = match copying.await.map_err(|errno| errno.to_string()).and_then(|copied| copied) {
            Ok(copied) => copied,
            Err(why) => return self.fail(&mut call, &format!("cannot copy {mount}: {why}")).await,
        };
        let Some(jail) = door.jail().and_then(|jail| jail.to_str()).map(str::to_owned) else {
            return self.fail(&mut call, "the copy's name is not UTF-8").await;
        };
        let names = Names { jail, mount: mount.clone() };
        let env = author(&call, &copy);
        let tool = Tool { door, name: self.name.clone(), session: self.session.clone() };
        let mut stderr = call.stderr.another();
        let (code, ended) = tool.run(&names, call, &env).await;
        if !ended {
            return code;
        }
        let taking = machine.aside(move |tree| Ok(copy.take_back(tree, &mount)));
        match taking.await.map_err(|errno| errno.to_string()).and_then(|taken| taken) {
            Ok(()) => code,
            Err(why) => {
                let text = format!("{}: what it changed was dropped: {why}\n", self.name);
                let _ = stderr.write_all(text.as_bytes()).await;
                REFUSED
            }
        }
    }

    async fn fail(&self, call: &mut ExtensionCall, why: &str) -> u8 {
        let _ = call.stderr.write_all(format!("{}: {why}\n", self.name).as_bytes()).await;
        REFUSED
    }

    /// One call, from the sandbox to the host and back. Returns the exit code, and whether the program ended by itself.
    async fn run(&self, names: &Names, call: ExtensionCall, env: &[(String, String)]) -> (u8, bool) {
        let request = |words: Vec<String>, cwd: String| {
            let request = Request::words(words).cwd(cwd).session(&self.session);
            env.iter().fold(request, |request, (name, value)| request.env(name, value))
        };
        run(&self.door, &self.name, names, call, request).await
    }
}

/// Who git says has made a commit: whom the sandbox names, or somebody if neither it nor the repository does.
fn author(call: &ExtensionCall, copy: &OverlayCopy) -> Vec<(String, String)> {
    let named = AUTHOR.iter().filter_map(|name| Some(((*name).to_owned(), call.env.get(*name)?.clone())));
    let mut all: Vec<(String, String)> = named.collect();
    for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
        if !call.env.contains_key(name) && !copy.has(".git/config", "[user") {
            all.push((name.to_owned(), "user".to_owned()));
        }
    }
    all
}

async fn run(
    door: &ToolSandbox,
    name: &str,
    names: &Names,
    call: ExtensionCall,
    request: impl FnOnce(Vec<String>, String) -> Request,
) -> (u8, bool) {
    let ExtensionCall { args, cwd, mut stdout, mut stderr, .. } = call;
    let Some(cwd) = names.on_host(&cwd) else {
        let text = format!("{name}: works on the files in {} only, and {cwd} is elsewhere\n", names.mount);
        let _ = stderr.write_all(text.as_bytes()).await;
        return (REFUSED, false);
    };
    let words = std::iter::once(name.to_owned()).chain(args.into_iter().map(|word| names.argument(word)));
    let (sink, mut chunks) = mpsc::unbounded_channel();
    let running = door.run(request(words.collect(), cwd).output(sink));
    let passing_on = async {
        let mut renaming = [Renaming::new(names), Renaming::new(names)];
        while let Some(chunk) = chunks.recv().await {
            // Nobody reading it is the reader's business.
            let _ = match chunk.stream {
                Stream::Stdout => stdout.write_all(&renaming[0].push(&chunk.bytes)).await,
                Stream::Stderr => stderr.write_all(&renaming[1].push(&chunk.bytes)).await,
            };
        }
        let [out, err] = renaming.map(Renaming::finish);
        let _ = stdout.write_all(&out).await;
        let _ = stderr.write_all(&err).await;
    };
    let (ran, ()) = tokio::join!(running, passing_on);
    let exited = |finished: &Finished| !finished.timed_out && matches!(finished.status, Ended::Exit(_));
    let ended = ran.as_ref().is_ok_and(exited);
    let (code, word) = ending(name, names, ran);
    let _ = stderr.write_all(word.as_bytes()).await;
    (code, ended)
}

/// The exit code, and a message if there is one.
fn ending(name: &str, names: &Names, ran: Result<Finished, ToolError>) -> (u8, String) {
    match ran {
        Ok(finished) if finished.timed_out => (TIMED_OUT, format!("{name}: timed out\n")),
        Ok(finished) => (u8::try_from(finished.status.code()).unwrap_or(u8::MAX), String::new()),
        Err(error) => {
            let text = format!("{name}: {}: {error}\n", error.code());
            (REFUSED, text.replace(&names.jail, &names.mount))
        }
    }
}

/// Replaces the jail's path by the mount's in streamed output.
struct Renaming {
    names: Names,
    held: Vec<u8>,
}

impl Renaming {
    fn new(names: &Names) -> Renaming {
        Renaming { names: names.clone(), held: Vec::new() }
    }

    fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        let jail = self.names.jail.as_bytes();
        let mut renamed = Vec::new();
        while let Some(at) = self.held.windows(jail.len()).position(|window| window == jail) {
            renamed.extend_from_slice(&self.held[..at]);
            renamed.extend_from_slice(self.names.mount.as_bytes());
            self.held.drain(..at + jail.len());
        }
        // The end may be the beginning of the name.
        let kept = (0..jail.len()).rev().find(|length| self.held.ends_with(&jail[..*length])).unwrap_or(0);
        renamed.extend(self.held.drain(..self.held.len() - kept));
        renamed
    }

    fn finish(self) -> Vec<u8> {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names { jail: "/home/me/project".to_owned(), mount: "/src".to_owned() }
    }

    #[test]
    fn paths_below_the_mount_are_mapped_and_no_others() {
        for (word, mapped) in [
            ("/src", "/home/me/project"),
            ("/src/a b", "/home/me/project/a b"),
            ("--file=/src/x", "--file=/home/me/project/x"),
            ("/srcs/x", "/srcs/x"),
            ("src/x", "src/x"),
            ("/etc/passwd", "/etc/passwd"),
            ("-C/src", "-C/src"),
            ("a=b=/src", "a=b=/src"),
        ] {
            assert_eq!(names().argument(word.to_owned()), mapped);
        }
    }

    #[test]
    fn the_jails_name_is_the_mounts_wherever_output_is_cut() {
        let text = b"/home/me/project\n/home/me/home/me/project/x /home/me/proj";
        for at in 0..=text.len() {
            let mut renaming = Renaming::new(&names());
            let mut shown = renaming.push(&text[..at]);
            shown.extend(renaming.push(&text[at..]));
            shown.extend(renaming.finish());
            assert_eq!(String::from_utf8_lossy(&shown), "/src\n/home/me/src/x /home/me/proj", "cut at {at}");
        }
    }
}
