//! Host functions as commands in the sandbox.
//!
//! An extension is an executable in the tree (`/usr/bin/NAME`), so `type`, `which`, `xargs` and pipes all see it. It
//! runs under the command's timeout and is cancelled with it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), wardian::Error> {
//! use wardian::{ExtensionAnswer, Extension, ExtensionSpec, Sandbox};
//!
//! let spec = ExtensionSpec::new("shout", "Prints its input in capitals");
//! let shout = Extension::function(spec, |invocation| async move {
//!     ExtensionAnswer::stdout(String::from_utf8_lossy(&invocation.stdin).to_uppercase())
//! });
//! let sandbox = Sandbox::builder().extension(shout).build().await?;
//! assert_eq!(sandbox.run("echo hello | shout | rev").await?.stdout, b"OLLEH\n");
//! # Ok(()) }
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde_json::{Value, json};
use wardian_kernel::{HostCall, HostInput, HostOutput, HostProcess, HostProgram, HostPrograms, HostRun};
use wardian_vfs::{Caller, Content, Tree};

use crate::checks::check_length;
use crate::error::Error;
use crate::mounts::is_plain;
use crate::system::System;

/// Where Python looks for system packages.
pub const PYTHON_PACKAGES: &str = "/usr/lib/python3/site-packages";
/// The name of the command that lists extensions.
const LISTING: &str = "extensions";

/// Programs of Wardian's that an extension of the same name replaces, such as the native one: `type NAME` then names the
/// file in `/usr/bin`.
const YIELDING: [&str; 1] = ["git"];
/// The most that the descriptions of all extensions take, and what each takes at least.
const SPECS: usize = 1 << 20;
const FLAT: usize = 1 << 10;
/// The maximum standard input passed to a function that takes all of it at once.
const STDIN_MAX: usize = 64 << 20;

/// The name and description of an extension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionSpec {
    /// The name of the command.
    pub name: String,
    /// A one-line description.
    pub description: String,
    /// How to call it; its name by default.
    pub usage: String,
    /// Examples for its help.
    pub examples: Vec<String>,
    /// Its category, for `extensions list --category`.
    pub category: String,
    /// A Python package that it includes.
    pub python_package: Option<PythonPackage>,
}

/// Modules installed where Python finds them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PythonPackage {
    /// Its version.
    pub version: String,
    /// A one-line summary.
    pub summary: String,
    /// Its files, by their paths below the package directory.
    pub files: BTreeMap<String, String>,
}

impl ExtensionSpec {
    /// Describes a command with this name.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> ExtensionSpec {
        ExtensionSpec { name: name.into(), description: description.into(), ..ExtensionSpec::default() }
    }

    /// Returns the memory it takes, without the files of its package, which are charged as files.
    fn bytes(&self) -> usize {
        let texts = [&self.name, &self.description, &self.usage, &self.category];
        let package =
            self.python_package.as_ref().map_or(0, |package| package.version.len() + package.summary.len());
        let examples: usize = self.examples.iter().map(|text| text.len() + size_of::<String>()).sum();
        texts.map(|text| text.len()).iter().sum::<usize>() + examples + package + FLAT
    }

    fn usage(&self) -> &str {
        if self.usage.is_empty() { &self.name } else { &self.usage }
    }

    /// Returns the text that `NAME --help` and `extensions info NAME` print.
    fn help(&self) -> String {
        let mut text = format!("{} - {}\n\nUsage: {}\n", self.name, self.description, self.usage());
        if !self.category.is_empty() {
            text += &format!("Category: {}\n", self.category);
        }
        if !self.examples.is_empty() {
            text += "\nExamples:\n";
            self.examples.iter().for_each(|example| text += &format!("  {example}\n"));
        }
        text
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "usage": self.usage(),
            "examples": self.examples,
            "category": self.category,
        })
    }
}

/// A call of an extension, with its streams.
#[non_exhaustive]
pub struct ExtensionCall {
    /// Its arguments, without its name.
    pub args: Vec<String>,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// The directory it was called in.
    pub cwd: String,
    /// The machine it runs in.
    pub(crate) machine: Arc<wardian_kernel::Machine>,
    /// Its process there.
    pub(crate) process: HostProcess,
    /// Standard input, read as it arrives.
    pub stdin: HostInput,
    /// Standard output, passed on as it is written.
    pub stdout: HostOutput,
    /// Standard error.
    pub stderr: HostOutput,
}

impl fmt::Debug for ExtensionCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionCall")
            .field("args", &self.args)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// A call of an extension that takes all of its input at once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invocation {
    /// Its arguments, without its name.
    pub args: Vec<String>,
    /// All of its standard input.
    pub stdin: Vec<u8>,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// The directory it was called in.
    pub cwd: String,
}

/// The result of such a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionAnswer {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// The exit code.
    pub exit_code: u8,
}

impl ExtensionAnswer {
    /// Returns success, with this text on standard output.
    pub fn stdout(text: impl Into<Vec<u8>>) -> ExtensionAnswer {
        ExtensionAnswer { stdout: text.into(), ..ExtensionAnswer::default() }
    }

    /// Returns a failure, with this text on standard error.
    pub fn failure(exit_code: u8, text: impl Into<Vec<u8>>) -> ExtensionAnswer {
        ExtensionAnswer { stderr: text.into(), exit_code, ..ExtensionAnswer::default() }
    }
}

type Handler = Arc<dyn Fn(ExtensionCall) -> HostRun + Send + Sync>;

/// A host function as a command.
#[derive(Clone)]
pub struct Extension {
    spec: Arc<ExtensionSpec>,
    /// None if it is only a Python package.
    handler: Option<Handler>,
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extension").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Extension {
    /// Creates an extension that reads and writes its streams itself and returns its exit code. It runs on threads
    /// shared by all guests: use `spawn_blocking` for anything that blocks.
    pub fn new<F, R>(spec: ExtensionSpec, run: F) -> Extension
    where
        F: Fn(ExtensionCall) -> R + Send + Sync + 'static,
        R: Future<Output = u8> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |call| Box::pin(run(call)));
        Extension { spec: Arc::new(spec), handler: Some(handler) }
    }

    /// Creates an extension that takes all of its input at once and returns all of its output. Both count as the sandbox's
    /// memory while they wait to be used: an answer for which there is none left is dropped, and the command fails.
    pub fn function<F, R>(spec: ExtensionSpec, run: F) -> Extension
    where
        F: Fn(Invocation) -> R + Send + Sync + 'static,
        R: Future<Output = ExtensionAnswer> + Send + 'static,
    {
        let (run, name) = (Arc::new(run), spec.name.clone());
        Extension::new(spec, move |mut call| {
            let (run, name) = (run.clone(), name.clone());
            async move {
                let answer = match call.stdin.read_to_end(STDIN_MAX).await {
                    Ok(stdin) => {
                        run(Invocation { args: call.args, stdin, env: call.env, cwd: call.cwd }).await
                    }
                    Err(errno) => ExtensionAnswer::failure(1, format!("{name}: standard input: {errno}\n")),
                };
                // What it was given is gone.
                drop(call.stdin);
                let held = answer.stdout.capacity() + answer.stderr.capacity();
                if call.stdout.hold(held).is_err() {
                    drop(answer);
                    let why = format!(
                        "{name}: an answer of {held} bytes is more than the sandbox's memory holds\n"
                    );
                    let _ = call.stderr.write_all(why.as_bytes()).await;
                    return 1;
                }
                // Nobody reading it is the reader's business.
                let _ = call.stdout.write_all(&answer.stdout).await;
                let _ = call.stderr.write_all(&answer.stderr).await;
                answer.exit_code
            }
        })
    }

    /// Creates an extension that is a Python package without a command.
    pub fn package(spec: ExtensionSpec) -> Extension {
        Extension { spec: Arc::new(spec), handler: None }
    }
}

impl HostProgram for Extension {
    fn run(&self, mut call: HostCall) -> HostRun {
        let (spec, handler) = (self.spec.clone(), self.handler.clone());
        let args = texts(call.argv.get(1..).unwrap_or_default());
        if args == ["--help"] {
            return Box::pin(async move { print(&mut call.stdout, &spec.help()).await });
        }
        let Some(handler) = handler else { return Box::pin(async { 127 }) };
        let env = texts(&call.env).into_iter().filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        handler(ExtensionCall {
            args,
            env: env.collect(),
            cwd: String::from_utf8_lossy(&call.cwd).into_owned(),
            machine: call.machine,
            process: call.process,
            stdin: call.stdin,
            stdout: call.stdout,
            stderr: call.stderr,
        })
    }
}

fn texts(bytes: &[Vec<u8>]) -> Vec<String> {
    bytes.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

async fn print(output: &mut HostOutput, text: &str) -> u8 {
    u8::from(output.hold(text.len()).is_err() || output.write_all(text.as_bytes()).await.is_err())
}

/// The command `extensions`.
pub(crate) struct Listing(Vec<Arc<ExtensionSpec>>);

const LISTING_USAGE: &str = "usage: extensions list [--json] [--category CATEGORY] | extensions info NAME\n";

impl HostProgram for Listing {
    fn run(&self, mut call: HostCall) -> HostRun {
        let args = texts(call.argv.get(1..).unwrap_or_default());
        let answer = self.answer(&args.iter().map(String::as_str).collect::<Vec<_>>());
        Box::pin(async move {
            match answer {
                Ok(text) => print(&mut call.stdout, &text).await,
                Err((code, text)) => {
                    print(&mut call.stderr, &text).await;
                    code
                }
            }
        })
    }
}

impl Listing {
    fn answer(&self, args: &[&str]) -> Result<String, (u8, String)> {
        match args {
            ["--help"] => Ok(LISTING_USAGE.to_owned()),
            [] => Ok(self.list(false, None)),
            ["list", options @ ..] => {
                let (mut json, mut category) = (false, None);
                let mut rest = options.iter();
                while let Some(option) = rest.next() {
                    match *option {
                        "--json" => json = true,
                        "--category" => {
                            category = Some(*rest.next().ok_or((2, LISTING_USAGE.to_owned()))?);
                        }
                        _ => return Err((2, LISTING_USAGE.to_owned())),
                    }
                }
                Ok(self.list(json, category))
            }
            ["info", name] => match self.0.iter().find(|spec| spec.name == *name) {
                Some(spec) => Ok(spec.help()),
                None => Err((1, format!("extensions: no extension is called '{name}'\n"))),
            },
            _ => Err((2, LISTING_USAGE.to_owned())),
        }
    }

    fn list(&self, json: bool, category: Option<&str>) -> String {
        let listed = self.0.iter().filter(|spec| category.is_none_or(|wanted| spec.category == wanted));
        if json {
            return format!("{}\n", Value::Array(listed.map(|spec| spec.json()).collect()));
        }
        let width = self.0.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
        listed.map(|spec| format!("{:width$}  {}\n", spec.name, spec.description)).collect()
    }
}

/// What every sandbox without extensions has: the command that lists them.
pub(crate) fn install_listing(tree: &mut Tree) -> Result<HostPrograms, Error> {
    let mut programs = HostPrograms::new();
    put_command(tree, LISTING, Arc::new(Listing(Vec::new())), &mut programs)?;
    Ok(programs)
}

/// Installs extensions in a tree.
pub(crate) fn install(
    tree: &mut Tree,
    system: &System,
    extensions: &[Extension],
) -> Result<Arc<HostPrograms>, Error> {
    if extensions.is_empty() {
        return Ok(system.host_programs.clone());
    }
    check_length("extensions", extensions.iter().map(|extension| extension.spec.bytes()).sum(), SPECS)?;
    let mut programs = HostPrograms::new();
    let specs = extensions.iter().map(|extension| extension.spec.clone()).collect();
    put_command(tree, LISTING, Arc::new(Listing(specs)), &mut programs)?;
    let mut names = BTreeSet::new();
    for extension in extensions {
        let name = &extension.spec.name;
        if YIELDING.contains(&name.as_str()) {
            let own = format!("/bin/{name}");
            tree.uninstall(own.as_bytes()).map_err(|errno| Error::refused(errno, own.as_bytes()))?;
        }
        check_name(tree, name)?;
        if !names.insert(name) {
            return Err(Error::Option(format!("two extensions are called '{name}'")));
        }
        if extension.handler.is_some() {
            put_command(tree, name, Arc::new(extension.clone()), &mut programs)?;
        }
        if let Some(package) = &extension.spec.python_package {
            put_package(tree, name, package)?;
        }
    }
    Ok(Arc::new(programs))
}

fn check_name(tree: &Tree, name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(plain) {
        return Err(Error::Option(format!("not a name for an extension: {name:?}")));
    }
    let tool = format!("/bin/{name}");
    if tree.stat(&Caller::ROOT, &tree.root(), tool.as_bytes(), true).is_ok() {
        return Err(Error::Option(format!(
            "an extension cannot be called '{name}': {tool} would be found first"
        )));
    }
    Ok(())
}

/// Builds the file that stands for the function. Its text is for people; running a copy of it points to the original.
fn put_command(
    tree: &mut Tree,
    name: &str,
    program: Arc<dyn HostProgram>,
    programs: &mut HostPrograms,
) -> Result<(), Error> {
    let path = format!("/usr/bin/{name}");
    let text = format!("#!/bin/env {name}\n");
    let version = put(tree, &path, 0o755, &text)?;
    programs.insert(version, program);
    Ok(())
}

fn put_package(tree: &mut Tree, name: &str, package: &PythonPackage) -> Result<(), Error> {
    for (path, text) in &package.files {
        let parts = path.bytes().filter(|&byte| byte == b'/').count() as u64;
        let charged = tree.charge_given((path.len() + text.len()) as u64, parts);
        charged.map_err(|errno| Error::refused(errno, path.as_bytes()))?;
        if !is_plain(path.as_bytes()) {
            return Err(Error::Option(format!("the Python package of '{name}' has a file at '{path}'")));
        }
        put(tree, &format!("{PYTHON_PACKAGES}/{path}"), 0o644, text)?;
    }
    let one_line = |text: &str| text.replace(['\n', '\r'], " ");
    let version = if package.version.is_empty() { "0" } else { &package.version };
    if !is_plain(version.as_bytes()) || version.contains('/') {
        return Err(Error::Option(format!("the Python package of '{name}' has the version '{version}'")));
    }
    let info = format!("{PYTHON_PACKAGES}/{}-{version}.dist-info/METADATA", name.replace('-', "_"));
    let summary = one_line(&package.summary);
    put(
        tree,
        &info,
        0o644,
        &format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\n"),
    )
    .map(drop)
}

fn put(tree: &mut Tree, path: &str, mode: u32, text: &str) -> Result<u64, Error> {
    let content = Content::Bytes(Arc::from(text.as_bytes()));
    tree.install(path.as_bytes(), mode, content).map_err(|errno| Error::refused(errno, path.as_bytes()))
}
