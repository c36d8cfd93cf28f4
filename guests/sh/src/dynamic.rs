//! Variables whose value is made when it is asked for.

use crate::shell::Shell;
use crate::vars::{Attrs, Indexed, Value, Var};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};
use wardian_abi as abi;

/// Their names.
pub const DYNAMIC: &[&[u8]] = &[
    b"RANDOM",
    b"SRANDOM",
    b"SECONDS",
    b"EPOCHSECONDS",
    b"EPOCHREALTIME",
    b"LINENO",
    b"BASHPID",
    b"BASH_SUBSHELL",
    b"BASH_COMMAND",
    b"FUNCNAME",
    b"BASH_SOURCE",
    b"BASH_LINENO",
    b"PIPESTATUS",
    b"DIRSTACK",
    b"_",
    b"BASH_ALIASES",
    b"BASH_CMDS",
    b"BASHOPTS",
    b"SHELLOPTS",
    b"BASH_ARGV0",
    b"BASH_ARGC",
    b"BASH_ARGV",
    b"HISTCMD",
];

impl Shell {
    pub fn define_dynamic(&mut self) {
        for name in DYNAMIC {
            let mut attrs = Attrs::DYNAMIC;
            attrs.set(Attrs::READONLY, matches!(*name, b"SHELLOPTS" | b"BASHOPTS"));
            self.vars.insert(name, Var { value: Value::Unset, attrs });
        }
    }

    /// The value such a variable has now.
    pub fn dynamic(&self, name: &[u8]) -> Var {
        let number = |value: i64| Value::Scalar(value.to_string().into_bytes());
        let value = match name {
            b"RANDOM" => number(i64::from(self.next_random())),
            b"SRANDOM" => number(i64::from(self.next_random()) << 17 | i64::from(self.next_random()) << 2),
            b"SECONDS" => {
                number(self.seconds_base.get().wrapping_add(self.started.elapsed().as_secs() as i64))
            }
            b"EPOCHSECONDS" => number(since_epoch().as_secs() as i64),
            b"EPOCHREALTIME" => {
                let now = since_epoch();
                Value::Scalar(format!("{}.{:06}", now.as_secs(), now.subsec_micros()).into_bytes())
            }
            b"LINENO" => number(i64::from(self.line)),
            b"BASHPID" => number(i64::from(abi::getpid())),
            b"BASH_SUBSHELL" => number(i64::from(self.subshell_level)),
            b"BASH_COMMAND" => {
                Value::Scalar(self.command_text.as_ref().map(|text| text()).unwrap_or_default())
            }
            b"PIPESTATUS" => Value::Indexed(
                self.pipe_status.iter().map(|status| status.to_string().into_bytes()).collect(),
            ),
            b"DIRSTACK" => Value::Indexed(self.directories().into_iter().collect()),
            b"BASH_ALIASES" => assoc(64, self.aliases.iter()),
            b"BASH_CMDS" => assoc(256, self.hash.iter().map(|(name, (path, _))| (name, path))),
            b"BASHOPTS" => Value::Scalar(self.shopt.enabled()),
            b"SHELLOPTS" => Value::Scalar(self.options.enabled()),
            b"_" => Value::Scalar(self.last_arg.clone()),
            b"BASH_ARGV0" => Value::Scalar(self.name.clone()),
            b"HISTCMD" if !self.options.history => number(0),
            // The command being run has its number already.
            b"HISTCMD" => {
                number((self.history.number(self.history.len()) - usize::from(self.recorded)) as i64)
            }
            b"BASH_ARGC" => {
                let counts = self.call_arguments().map(|args| args.len().to_string().into_bytes());
                Value::Indexed(counts.collect())
            }
            b"BASH_ARGV" => {
                Value::Indexed(self.call_arguments().flat_map(|args| args.iter().rev().cloned()).collect())
            }
            b"FUNCNAME" => self.function_names(),
            b"BASH_SOURCE" => self.sources(),
            b"BASH_LINENO" => self.call_lines(),
            _ => Value::Unset,
        };
        let attrs =
            if matches!(name, b"BASHOPTS" | b"SHELLOPTS") { Attrs::READONLY } else { Attrs::default() };
        Var { value, attrs }
    }

    /// Such a variable in a list of all: bash works most of them out only when they are asked for by name.
    pub fn var_listed(&self, name: &[u8]) -> Option<std::borrow::Cow<'_, Var>> {
        let unknown = |attrs: Attrs| Some(std::borrow::Cow::Owned(Var { value: Value::Unset, attrs }));
        match name {
            b"RANDOM" | b"SRANDOM" | b"BASHPID" | b"HISTCMD" => unknown(Attrs::INTEGER),
            b"SECONDS" | b"EPOCHSECONDS" | b"EPOCHREALTIME" | b"LINENO" | b"BASH_SUBSHELL"
            | b"BASH_COMMAND" | b"BASH_ARGV0" => unknown(Attrs::default()),
            b"DIRSTACK" => Some(std::borrow::Cow::Owned(Var {
                value: Value::Indexed(Indexed::default()),
                attrs: Attrs::default(),
            })),
            b"FUNCNAME" if self.frames.is_empty() => Some(std::borrow::Cow::Owned(Var {
                value: Value::Indexed(Indexed::default()),
                attrs: Attrs::UNASSIGNED,
            })),
            _ => self.var(name),
        }
    }

    /// The arguments of the calls under way, the last call's first: of those made since functions are debugged.
    fn call_arguments(&self) -> impl Iterator<Item = &Vec<Vec<u8>>> {
        let calls = self.frames.iter().rev().filter_map(|frame| frame.args.as_ref());
        let outside = if self.frames.is_empty() { Some(&self.params) } else { None };
        calls.chain(self.debugged_params.as_ref().or(outside))
    }

    /// `FUNCNAME` is there only inside a function.
    fn function_names(&self) -> Value {
        if !self.frames.iter().any(|frame| frame.function.is_some()) {
            return Value::Unset;
        }
        let name = |function: &Option<std::rc::Rc<[u8]>>| function.as_deref().unwrap_or(b"source").to_vec();
        let mut names: Vec<Vec<u8>> = self.frames.iter().rev().map(|frame| name(&frame.function)).collect();
        if self.invocation == crate::shell::Invocation::File {
            names.push(b"main".to_vec());
        }
        Value::Indexed(names.into_iter().collect())
    }

    fn call_lines(&self) -> Value {
        let lines = self.frames.iter().rev().map(|frame| frame.call_line.to_string().into_bytes());
        let mut lines: Indexed = lines.collect();
        if self.invocation == crate::shell::Invocation::File {
            lines.insert(lines.end(), b"0".to_vec());
        }
        Value::Indexed(lines)
    }

    fn sources(&self) -> Value {
        let mut sources: Indexed = self.frames.iter().rev().map(|frame| frame.source.to_vec()).collect();
        if self.invocation == crate::shell::Invocation::File {
            sources.insert(sources.end(), self.name.clone());
        }
        Value::Indexed(sources)
    }

    /// What an assignment to such a variable does. Says whether it was one.
    pub fn assign_dynamic(&mut self, name: &[u8], text: &[u8]) -> bool {
        let number =
            std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(0);
        match name {
            b"RANDOM" => self.random.set(number as u32),
            b"SECONDS" => self.seconds_base.set(number.wrapping_sub(self.started.elapsed().as_secs() as i64)),
            b"LINENO" => {}
            b"_" => self.last_arg = text.to_vec(),
            b"BASH_ARGV0" => self.name = text.to_vec(),
            _ => {}
        }
        true
    }

    /// Assigns to an element of `BASH_ALIASES` or `BASH_CMDS`, which are the aliases and the remembered programs.
    /// Says whether it was one of those.
    pub fn assign_dynamic_key(&mut self, name: &[u8], key: &[u8], text: &[u8]) -> bool {
        match name {
            b"BASH_ALIASES" => drop(Rc::make_mut(&mut self.aliases).insert(key.to_vec(), text.to_vec())),
            // Only what the path finds anyway.
            b"BASH_CMDS" if self.restricted => {
                let path = self.vars.text(b"PATH").cloned().unwrap_or_default();
                if text.contains(&b'/') {
                    self.refuses(b"", text);
                } else if crate::exec::lookup(&path, text).is_err() {
                    self.complain_parts(&[text, b": not found"]);
                }
            }
            b"BASH_CMDS" => {
                self.hash_version = self.vars.path_version;
                self.hash.insert(key.to_vec(), (text.to_vec(), 0));
            }
            _ => return false,
        }
        true
    }

    /// Park and Miller's generator with bash's way of folding it to 15 bits.
    fn next_random(&self) -> u32 {
        let mut seed = self.random.get();
        if seed == 0 {
            seed = 123_459_876;
        }
        let (high, low) = (i64::from(seed / 127_773), i64::from(seed % 127_773));
        let mut next = 16_807 * low - 2_836 * high;
        if next < 0 {
            next += 0x7fff_ffff;
        }
        self.random.set(next as u32);
        let next = next as u32;
        ((next >> 16) ^ (next & 0xffff)) & 0x7fff
    }
}

fn assoc<'a>(buckets: u32, pairs: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>) -> Value {
    let mut array = crate::vars::Assoc::with_buckets(buckets);
    pairs.for_each(|(key, text)| array.insert(key.clone(), text.clone()));
    Value::Assoc(array)
}

pub fn since_epoch() -> std::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
