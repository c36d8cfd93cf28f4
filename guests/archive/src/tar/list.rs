//! What tar shows of members.

use super::header::{Kind, Member};
use super::options::Options;
use std::cell::{Cell, RefCell};
use toolkit::clock::Clock;
use toolkit::mode::letters;
use wardian_abi as abi;

/// Prints names, to standard error when the archive itself goes to standard output.
pub struct Lister {
    clock: Clock,
    verbose: u32,
    numeric: bool,
    full_time: bool,
    /// The columns of owner, group and size together: they grow when they must.
    width: usize,
    /// The columns of the time, likewise.
    time_width: usize,
    to: abi::Fd,
    is_terminal: bool,
    buffer: Vec<u8>,
}

thread_local! {
    /// What is to be shown, and where. It is shared, for what is wrong is told after what was shown before.
    static SHOWN: RefCell<(abi::Fd, Vec<u8>)> = const { RefCell::new((1, Vec::new())) };
}

/// Writes out what there is to be shown.
pub fn flush() {
    let (to, buffer) = SHOWN.with(|shown| {
        let mut shown = shown.borrow_mut();
        (shown.0, std::mem::take(&mut shown.1))
    });
    if let Err(error) = abi::write_all(to, &buffer)
        && to == 1
    {
        toolkit::complain("tar", format_args!("write error: {error}"));
        abi::exit(2);
    }
}

/// Says what is wrong, after all that was to be shown before.
pub fn complain(message: impl std::fmt::Display) {
    flush();
    toolkit::complain("tar", message);
}

impl Lister {
    pub fn new(options: &Options, to: abi::Fd) -> Lister {
        Lister {
            clock: if options.utc { Clock::utc() } else { Clock::new() },
            verbose: options.verbose,
            numeric: options.numeric,
            full_time: options.full_time,
            width: 19,
            time_width: 16,
            to,
            is_terminal: abi::isatty(to),
            buffer: Vec::new(),
        }
    }

    /// Shows a member, at length if `long`.
    pub fn show(&mut self, member: &Member, name: &[u8], long: bool) {
        if long {
            let columns = self.columns(member);
            self.buffer.extend(columns.bytes());
        }
        self.buffer.extend(quoted(name).bytes());
        if long {
            let link = match member.kind {
                Kind::Symlink => format!(" -> {}", quoted(&member.link)),
                Kind::HardLink => format!(" link to {}", quoted(&member.link)),
                Kind::Unknown(letter) => format!(" unknown file type ‘{}’", quoted(&[letter])),
                Kind::VolumeLabel => "--Volume Header--".to_owned(),
                _ => String::new(),
            };
            self.buffer.extend(link.bytes());
        }
        self.line("");
    }

    /// Begins a line.
    pub fn put(&mut self, text: &str) {
        self.buffer.extend(text.bytes());
    }

    /// Writes a line of words.
    pub fn line(&mut self, text: &str) {
        self.buffer.extend(text.bytes());
        self.buffer.push(b'\n');
        let ready = SHOWN.with(|shown| {
            let mut shown = shown.borrow_mut();
            shown.0 = self.to;
            shown.1.append(&mut self.buffer);
            shown.1.len() > 32 * 1024
        });
        if ready || self.to == 2 || self.is_terminal {
            flush();
        }
    }

    /// How the action that this listing accompanies shows names: at all, and at length.
    pub fn level(&self) -> u32 {
        self.verbose
    }

    fn columns(&mut self, member: &Member) -> String {
        let kind = match member.kind {
            Kind::File | Kind::Sparse => '-',
            Kind::HardLink => 'h',
            Kind::Symlink => 'l',
            Kind::Character => 'c',
            Kind::BlockDevice => 'b',
            Kind::Directory => 'd',
            Kind::Fifo => 'p',
            Kind::VolumeLabel => 'V',
            Kind::Unknown(letter) => char::from(letter),
        };
        let size = match member.kind {
            Kind::Character | Kind::BlockDevice => format!("{},{}", member.device.0, member.device.1),
            _ => member.size.to_string(),
        };
        let owner = self.identity(&member.owner, member.uid);
        let group = self.identity(&member.group, member.gid);
        let used = owner.len() + 1 + group.len() + 1 + size.len();
        self.width = self.width.max(used);
        let fill = self.width - used + size.len();
        let time = if self.full_time {
            let whole = self.clock.format(member.mtime, "%Y-%m-%d %H:%M:%S.%N");
            whole.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            self.clock.format(member.mtime, "%Y-%m-%d %H:%M")
        };
        self.time_width = self.time_width.max(time.len());
        let time_width = self.time_width;
        format!("{kind}{} {owner}/{group} {size:>fill$} {time:<time_width$} ", &letters(member.mode)[1..])
    }

    fn identity(&self, name: &[u8], id: u64) -> String {
        if name.is_empty() || self.numeric {
            id.to_string()
        } else {
            String::from_utf8_lossy(name).into_owned()
        }
    }
}

/// How names are shown.
#[derive(Clone, Copy)]
pub enum Quoting {
    Literal,
    Escape,
    C,
    /// In quotes where a shell would need them, or always; what does not print as it is, or as escapes.
    Shell {
        always: bool,
        escapes: bool,
    },
}

thread_local! {
    static QUOTING: Cell<Quoting> = const { Cell::new(Quoting::Escape) };
}

/// Shows names in another way from now on.
pub fn set_quoting(style: Quoting) {
    QUOTING.with(|quoting| quoting.set(style));
}

impl Quoting {
    /// The style with this name.
    pub fn parse(name: &[u8]) -> Option<Quoting> {
        Some(match name {
            b"literal" => Quoting::Literal,
            b"escape" => Quoting::Escape,
            b"c" => Quoting::C,
            b"shell" => Quoting::Shell { always: false, escapes: false },
            b"shell-always" => Quoting::Shell { always: true, escapes: false },
            b"shell-escape" => Quoting::Shell { always: false, escapes: true },
            b"shell-escape-always" => Quoting::Shell { always: true, escapes: true },
            _ => return None,
        })
    }
}

/// A name as it is shown: with C's escapes for what does not print, unless told otherwise.
pub fn quoted(name: &[u8]) -> String {
    use toolkit::quote;
    match QUOTING.with(Cell::get) {
        Quoting::Literal => String::from_utf8_lossy(name).into_owned(),
        Quoting::C => quote::in_c(name, true),
        Quoting::Shell { always, escapes: false } if name.iter().any(u8::is_ascii_control) => {
            let text = String::from_utf8_lossy(name).replace('\'', "'\\''");
            let is_plain = !always && !name.iter().any(|byte| b" \t\n'\"$&()*;<=>[^`|?\\!".contains(byte));
            if is_plain { text } else { format!("'{text}'") }
        }
        Quoting::Shell { always: true, .. } => quote::always(name),
        Quoting::Shell { always: false, .. } => quote::if_needed(name),
        Quoting::Escape => {
            let text = quote::in_c(name, true);
            let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&text);
            inside.replace("\\\"", "\"")
        }
    }
}
