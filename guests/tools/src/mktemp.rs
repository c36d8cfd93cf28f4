//! `mktemp`: makes a file or directory with a name nobody has.

use std::io::Read;
use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, open_flags};

const TOOL: Tool = Tool {
    name: "mktemp",
    short: "dqup:tV",
    long: &[("directory", 'd'), ("quiet", 'q'), ("dry-run", 'u'), ("suffix=", 's'), ("tmpdir[=", 'P')],
    help: "\
Usage: mktemp [OPTION]... [TEMPLATE]
Make a temporary file or directory and print its name.  TEMPLATE must have at
least 3 consecutive 'X's in its last component; it is tmp.XXXXXXXXXX in a
directory for temporary files if it is not given.

  -d, --directory     make a directory, not a file
  -u, --dry-run       make nothing, merely print a name (unsafe)
  -q, --quiet         say nothing if the file cannot be made
      --suffix=SUFF   append SUFF to TEMPLATE
  -p DIR, --tmpdir[=DIR]  take TEMPLATE relative to DIR, else to $TMPDIR,
                        else to /tmp
  -t                  take TEMPLATE as the name of a file in $TMPDIR, or the
                        DIR of -p, or /tmp
      --help          display this help and exit
      --version       output version information and exit
",
    misuse: 1,
};

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

#[derive(Default)]
struct Options {
    directory: bool,
    quiet: bool,
    dry_run: bool,
    suffix: Option<Vec<u8>>,
    /// The directory that was named, if one was.
    place: Option<Vec<u8>>,
    /// Whether the file goes into a directory for such files.
    in_place: bool,
    /// `-t`: the template is a mere name.
    mere_name: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    match run(bytes_of(arguments)) {
        Ok(path) => match abi::write_all(1, &[&path, b"\n".as_slice()].concat()) {
            Ok(()) => 0,
            Err(error) => {
                complain("mktemp", format_args!("write error: {error}"));
                1
            }
        },
        Err(code) => code,
    }
}

fn run(arguments: Vec<Vec<u8>>) -> Result<Vec<u8>, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut options = Options::default();
    for (letter, argument) in parsed.options {
        match letter {
            'd' => options.directory = true,
            'q' => options.quiet = true,
            'u' => options.dry_run = true,
            's' => options.suffix = argument,
            'p' | 'P' => {
                options.in_place = true;
                options.place = argument.filter(|text| !text.is_empty()).or(options.place);
            }
            't' => (options.in_place, options.mere_name) = (true, true),
            _ => {}
        }
    }
    let template = match parsed.operands.as_slice() {
        [] => {
            options.in_place = true;
            b"tmp.XXXXXXXXXX".to_vec()
        }
        [template] => template.clone(),
        _ => return Err(TOOL.wrong("too many templates")),
    };
    let template = Template::new(&template, &options).map_err(|message| {
        complain("mktemp", message);
        1
    })?;
    template.make(&options).map_err(|error| {
        if !options.quiet {
            let noun = if options.directory { "directory" } else { "file" };
            let shown = quote::word(&template.path);
            complain("mktemp", format_args!("failed to create {noun} via template {shown}: {error}"));
        }
        1
    })
}

/// A path, and where in it the letters are that are chosen.
struct Template {
    path: Vec<u8>,
    chosen: std::ops::Range<usize>,
}

impl Template {
    fn new(template: &[u8], options: &Options) -> Result<Template, String> {
        let shown = quote::word(template);
        let last = template.iter().rposition(|&byte| byte == b'X').map_or(0, |at| at + 1);
        let (head, suffix) = match &options.suffix {
            Some(_) if !template.ends_with(b"X") => {
                return Err(format!("with --suffix, template {shown} must end in X"));
            }
            Some(suffix) => (template, suffix.as_slice()),
            None => template.split_at(last),
        };
        if suffix.contains(&b'/') {
            return Err(format!("invalid suffix {}, contains directory separator", quote::word(suffix)));
        }
        let count = head.iter().rev().take_while(|&&byte| byte == b'X').count();
        if count < 3 {
            return Err(format!("too few X's in template {shown}"));
        }
        let mut path = head.to_vec();
        if options.in_place {
            if options.mere_name && head.contains(&b'/') {
                return Err(format!("invalid template, {shown}, contains directory separator"));
            }
            if head.starts_with(b"/") {
                return Err(format!("invalid template, {shown}; with --tmpdir, it may not be absolute"));
            }
            path = files::join(&place(options), head);
        }
        let chosen = path.len() - count..path.len();
        path.extend_from_slice(suffix);
        Ok(Template { path, chosen })
    }

    fn make(&self, options: &Options) -> Result<Vec<u8>, Errno> {
        let mut random = std::fs::File::open("/dev/urandom").map_err(Errno::from)?;
        let mut letters = vec![0; self.chosen.len()];
        for _ in 0..1000 {
            random.read_exact(&mut letters).map_err(Errno::from)?;
            let mut path = self.path.clone();
            for (place, byte) in path[self.chosen.clone()].iter_mut().zip(&letters) {
                *place = LETTERS[usize::from(*byte) % LETTERS.len()];
            }
            match create(&path, options) {
                Err(Errno::EXIST) => {}
                made => return made.map(|()| path),
            }
        }
        Err(Errno::EXIST)
    }
}

fn create(path: &[u8], options: &Options) -> Result<(), Errno> {
    if options.dry_run {
        return match abi::stat(Dir::CWD, path, false) {
            Ok(_) => Err(Errno::EXIST),
            Err(_) => Ok(()),
        };
    }
    if options.directory {
        return abi::mkdir(Dir::CWD, path, 0o700);
    }
    let flags = open_flags::RDWR | open_flags::CREAT | open_flags::EXCL;
    abi::close(abi::open(Dir::CWD, path, flags, 0o600)?)
}

/// `-t` prefers the variable, the others what they are given.
fn place(options: &Options) -> Vec<u8> {
    let variable =
        std::env::var_os("TMPDIR").map(|text| text.into_encoded_bytes()).filter(|text| !text.is_empty());
    let given = options.place.clone();
    let chosen = if options.mere_name { variable.or(given) } else { given.or(variable) };
    chosen.unwrap_or_else(|| b"/tmp".to_vec())
}
