//! `dos2unix` and `unix2dos`: lines that end as others end them.

use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, files};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const HELP: &str = "\
Usage: dos2unix [options] [file ...] [-n infile outfile ...]
       unix2dos [options] [file ...] [-n infile outfile ...]
 -k, --keepdate        keep output file date
 -n, --newfile         write to new file
 -o, --oldfile         write to old file (default)
 -q, --quiet           quiet mode, suppress all warnings
 -f, --force           force conversion of binary files
     --help            display this help text
     --version         display version number
";

const LONG: &[(&str, char)] =
    &[("keepdate", 'k'), ("newfile", 'n'), ("oldfile", 'o'), ("quiet", 'q'), ("force", 'f')];
const DOS2UNIX: Tool = Tool { name: "dos2unix", short: "knoqfsbl", long: LONG, help: HELP, misuse: 1 };
const UNIX2DOS: Tool = Tool { name: "unix2dos", short: "knoqfsbl", long: LONG, help: HELP, misuse: 1 };

pub fn main(arguments: Arguments) -> i32 {
    run(&DOS2UNIX, bytes_of(arguments), to_unix).unwrap_or_else(|code| code)
}

pub fn unix2dos(arguments: Arguments) -> i32 {
    run(&UNIX2DOS, bytes_of(arguments), to_dos).unwrap_or_else(|code| code)
}

type Convert = fn(&[u8]) -> Vec<u8>;

fn run(tool: &Tool, arguments: Vec<Vec<u8>>, convert: Convert) -> Result<i32, i32> {
    let parsed = tool.parse(arguments)?;
    let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
    if parsed.operands.is_empty() {
        let converted = files::read_fd(0).and_then(|content| abi::write_all(1, &convert(&content)));
        return converted.map(|()| 0).map_err(|error| {
            complain(tool.name, error);
            1
        });
    }
    let pairs: Vec<(&[u8], &[u8])> = match has('n') {
        true => parsed.operands.chunks_exact(2).map(|pair| (&pair[0][..], &pair[1][..])).collect(),
        false => parsed.operands.iter().map(|file| (&file[..], &file[..])).collect(),
    };
    let mut code = 0;
    for (from, to) in pairs {
        let say = |message: String| {
            if !has('q') {
                complain(tool.name, message);
            }
        };
        let name = String::from_utf8_lossy(from);
        let stat = abi::stat(Dir::CWD, from, true);
        match stat {
            Ok(stat) if !stat.is_file() => say(format!("Skipping {name}, not a regular file.")),
            Ok(stat) => match std::fs::read(files::path(from)) {
                Ok(content) if content.contains(&0) && !has('f') => {
                    say(format!("Binary symbol 0x00 found at line {}", line_of_nul(&content)));
                    say(format!("Skipping binary file {name}"));
                }
                Ok(content) => {
                    write(&content, to, convert).map_err(|error| {
                        complain(tool.name, format_args!("{}: {error}", String::from_utf8_lossy(to)));
                        1
                    })?;
                    if has('k') {
                        let _ = abi::set_times(Dir::CWD, to, true, Some(stat.atime), Some(stat.mtime));
                    }
                    let format = if tool.name == "dos2unix" { "Unix" } else { "DOS" };
                    match from == to {
                        true => say(format!("converting file {name} to {format} format...")),
                        false => say(format!(
                            "converting file {name} to file {} in {format} format...",
                            String::from_utf8_lossy(to)
                        )),
                    }
                }
                Err(error) => {
                    say(format!("{name}: {}", Errno::from(error)));
                    code = 1;
                }
            },
            Err(error) => {
                say(format!("{name}: {error}"));
                say(format!("Skipping {name}, not a regular file."));
                code = 2;
            }
        }
    }
    Ok(code)
}

fn write(content: &[u8], to: &[u8], convert: Convert) -> Result<(), Errno> {
    std::fs::write(files::path(to), convert(content)).map_err(Errno::from)
}

fn line_of_nul(content: &[u8]) -> usize {
    content.iter().take_while(|byte| **byte != 0).filter(|byte| **byte == b'\n').count() + 1
}

fn to_unix(content: &[u8]) -> Vec<u8> {
    let mut converted = Vec::with_capacity(content.len());
    for (at, &byte) in content.iter().enumerate() {
        if !(byte == b'\r' && content.get(at + 1) == Some(&b'\n')) {
            converted.push(byte);
        }
    }
    converted
}

fn to_dos(content: &[u8]) -> Vec<u8> {
    let mut converted = Vec::with_capacity(content.len() + content.len() / 16);
    let mut before = 0;
    for &byte in content {
        if byte == b'\n' && before != b'\r' {
            converted.push(b'\r');
        }
        converted.push(byte);
        before = byte;
    }
    converted
}
