//! `cargo xtask npm`: the TypeScript package, and the program for this platform as a package of its own.
//!
//! `target/npm/wardian` is what is published as `wardian`; `target/npm/wardian-linux-x64` as `@wardian/linux-x64`, which
//! the first one names as an optional dependency, so that npm installs the one that fits the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// The packages' version: the workspace has one for all.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds the program and both packages, and says where they are.
pub fn main(arguments: &[String]) -> Result<()> {
    if let Some(extra) = arguments.first() {
        bail!("npm takes no arguments, got '{extra}'");
    }
    crate::wheel::build()?;
    install()?;
    for package in pack()? {
        println!("{}", package.display());
    }
    Ok(())
}

/// `cargo xtask node`: builds the program, and checks the package around it.
pub fn test(arguments: &[String]) -> Result<()> {
    if let Some(extra) = arguments.first() {
        bail!("node takes no arguments, got '{extra}'");
    }
    crate::wheel::build()?;
    check()
}

/// Checks types, tests and examples of the TypeScript package with the program that was built last.
pub fn check() -> Result<()> {
    install()?;
    // `npm test` compiles the package, its tests and its examples first, with all checks on.
    println!("==> npm test");
    crate::run(npm(&["test", "--silent"]).env("WARDIAN_BIN", crate::wheel::target().join("release/wardian")))
}

/// The compiler and what it needs, as `package-lock.json` has them.
fn install() -> Result<()> {
    println!("==> npm ci");
    crate::run(&mut npm(&["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]))
}

fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(sdk());
    command
}

fn sdk() -> PathBuf {
    crate::root().join("sdk/typescript")
}

/// Makes both package directories around the program that was built last, into `target/npm`.
fn pack() -> Result<[PathBuf; 2]> {
    crate::run(&mut npm(&["run", "build", "--silent"]))?;
    let output = crate::wheel::target().join("npm");
    let _ = fs::remove_dir_all(&output);
    let platform = platform();
    let main = output.join("wardian");
    let program = output.join(format!("wardian-{platform}"));
    fs::create_dir_all(main.join("dist"))?;
    fs::create_dir_all(program.join("bin"))?;
    for entry in fs::read_dir(sdk().join("dist"))? {
        let entry = entry?;
        fs::copy(entry.path(), main.join("dist").join(entry.file_name()))?;
    }
    fs::copy(sdk().join("README.md"), main.join("README.md"))?;
    let about = fs::read_to_string(sdk().join("package.json"))?;
    write_json(&main.join("package.json"), &published(&about, &platform)?)?;
    let bytes = crate::wheel::stripped(
        &crate::wheel::target().join("release/wardian"),
        &program.join("bin/wardian"),
    )?;
    let path = program.join("bin/wardian");
    fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    executable(&path)?;
    write_json(&program.join("package.json"), &of_program(&platform))?;
    for package in [&main, &program] {
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            fs::copy(crate::root().join(licence), package.join(licence))?;
        }
    }
    Ok([main, program])
}

/// The platform as Node names it: `process.platform` and `process.arch`.
fn platform() -> String {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}-{arch}", std::env::consts::OS)
}

/// `package.json` as it is published: without what only developing needs, and with the package of the program.
fn published(about: &str, platform: &str) -> Result<Value> {
    let mut about: Value = serde_json::from_str(about).context("sdk/typescript/package.json")?;
    if about["version"] != VERSION {
        bail!("sdk/typescript/package.json must have the workspace's version, {VERSION}");
    }
    let fields = about.as_object_mut().context("sdk/typescript/package.json is not an object")?;
    fields.remove("scripts");
    fields.remove("devDependencies");
    let name = format!("@wardian/{platform}");
    fields.insert("optionalDependencies".to_owned(), json!({ name: VERSION }));
    Ok(about)
}

fn of_program(platform: &str) -> Value {
    let (os, cpu) = platform.split_once('-').unwrap_or((platform, ""));
    json!({
        "name": format!("@wardian/{platform}"),
        "version": VERSION,
        "description": format!("The wardian program for {os} on {cpu}"),
        "license": "MIT OR Apache-2.0",
        "os": [os],
        "cpu": [cpu],
        "files": ["bin"],
        "preferUnplugged": true,
    })
}

fn write_json(path: &Path, value: &Value) -> Result<()> {
    fs::write(path, format!("{value:#}\n")).with_context(|| format!("cannot write {}", path.display()))
}

fn executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_depends_on_the_program_alone() {
        let about = fs::read_to_string(sdk().join("package.json")).expect("the package");
        let published = published(&about, "linux-x64").expect("the package's description");
        assert_eq!(published["optionalDependencies"], json!({ "@wardian/linux-x64": VERSION }));
        assert!(published.get("devDependencies").is_none() && published.get("dependencies").is_none());
        assert!(published.get("scripts").is_none(), "nothing runs where it is installed");
    }
}
