//! `rmdir`: removes empty directories.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const TOOL: Tool = Tool {
    name: "rmdir",
    short: "pv",
    long: &[("ignore-fail-on-non-empty", 'i'), ("parents", 'p'), ("verbose", 'v')],
    help: "\
Usage: rmdir [OPTION]... DIRECTORY...
Remove the DIRECTORY(ies), if they are empty.

      --ignore-fail-on-non-empty
                    ignore each failure that is solely because a directory
                      is non-empty
  -p, --parents     remove DIRECTORY and its ancestors; e.g., 'rmdir -p a/b' is
                      similar to 'rmdir a/b a'
  -v, --verbose     output a diagnostic for every directory processed
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

struct Remover {
    ignore_full: bool,
    verbose: bool,
    out: Out,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let has = |wanted| parsed.options.iter().any(|(letter, _)| *letter == wanted);
    let mut remover = Remover { ignore_full: has('i'), verbose: has('v'), out: Out::new("rmdir") };
    if parsed.operands.is_empty() {
        return Err(TOOL.wrong("missing operand"));
    }
    let mut all = true;
    for operand in &parsed.operands {
        let removed = remover.remove(operand, "failed to remove");
        all &= removed;
        if has('p') && removed {
            all &= remover.remove_parents(operand);
        }
    }
    Ok(i32::from(!all))
}

impl Remover {
    fn remove(&mut self, path: &[u8], refusal: &str) -> bool {
        if self.verbose {
            self.out.put(format!("rmdir: removing directory, {}\n", quote::always(path)));
        }
        let Err(error) = abi::rmdir(Dir::CWD, path) else { return true };
        if self.ignore_full && matches!(error, Errno::NOTEMPTY | Errno::EXIST) {
            return true;
        }
        self.out.flush();
        complain("rmdir", format_args!("{refusal} {}: {}", quote::always(path), reason(path, error)));
        false
    }

    /// Removes what is named before the last slash, and so on up to the first.
    fn remove_parents(&mut self, path: &[u8]) -> bool {
        let mut rest = without_slashes(path);
        while let Some(slash) = rest.iter().rposition(|&byte| byte == b'/') {
            rest = without_slashes(&rest[..slash]);
            if rest.is_empty() {
                break;
            }
            if !self.remove(rest, "failed to remove directory") {
                return false;
            }
        }
        true
    }
}

fn without_slashes(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
    &path[..end]
}

/// A link to a directory, with a slash after it, looks like a directory and yet is none.
fn reason(path: &[u8], error: Errno) -> &'static str {
    let link = without_slashes(path);
    let is_link = || abi::stat(Dir::CWD, link, false).is_ok_and(|stat| stat.is_symlink());
    let leads_to_one = || abi::stat(Dir::CWD, link, true).is_ok_and(|stat| stat.is_dir());
    if error == Errno::NOTDIR && path.ends_with(b"/") && is_link() && leads_to_one() {
        return "Symbolic link not followed";
    }
    error.message()
}
