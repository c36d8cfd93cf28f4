//! The operands of `cp`, `mv` and `install`: files, and the place they go to.

use super::args::Tool;
use super::{complain, files, quote};
use wardian_abi as abi;
use wardian_abi::Dir;

/// Where operands go, as the options say.
#[derive(Default)]
pub struct Target {
    /// `-t DIRECTORY`.
    pub directory: Option<Vec<u8>>,
    /// `-T`: the last operand is the new name, not a directory to put it into.
    pub is_file: bool,
}

/// A file, and the path it goes to.
pub type Pair = (Vec<u8>, Vec<u8>);

impl Target {
    /// Pairs the operands with their targets, or complains.
    pub fn pairs(&self, mut operands: Vec<Vec<u8>>, tool: &Tool) -> Result<Vec<Pair>, i32> {
        if let Some(directory) = &self.directory {
            if operands.is_empty() {
                return Err(tool.wrong("missing file operand"));
            }
            return match abi::stat(Dir::CWD, directory, true) {
                Ok(stat) if stat.is_dir() => Ok(into(directory, operands)),
                Ok(_) => Err(refuse(tool, format!("target {}: Not a directory", quote::always(directory)))),
                Err(error) => {
                    Err(refuse(tool, format!("target directory {}: {error}", quote::always(directory))))
                }
            };
        }
        let Some(last) = operands.pop() else { return Err(tool.wrong("missing file operand")) };
        if operands.is_empty() {
            let message = format!("missing destination file operand after {}", quote::always(&last));
            return Err(tool.wrong(message));
        }
        if self.is_file {
            return match operands.get(1) {
                Some(_) => Err(tool.wrong(format_args!("extra operand {}", quote::always(&last)))),
                None => Ok(vec![(operands.remove(0), last)]),
            };
        }
        let is_directory = match abi::stat(Dir::CWD, &last, true) {
            Ok(stat) => stat.is_dir(),
            Err(error) if operands.len() > 1 => {
                return Err(refuse(tool, format!("target {}: {error}", quote::always(&last))));
            }
            Err(_) => false,
        };
        match (is_directory, operands.len()) {
            (true, _) => Ok(into(&last, operands)),
            (false, 1) => Ok(vec![(operands.remove(0), last)]),
            (false, _) => Err(refuse(tool, format!("target {}: Not a directory", quote::always(&last)))),
        }
    }
}

fn refuse(tool: &Tool, message: String) -> i32 {
    complain(tool.name, message);
    1
}

fn into(directory: &[u8], operands: Vec<Vec<u8>>) -> Vec<Pair> {
    let place = |file: Vec<u8>| {
        let name = files::base_name(&file);
        let target = if name == b".." { directory.to_vec() } else { files::join(directory, name) };
        (file, target)
    };
    operands.into_iter().map(place).collect()
}
