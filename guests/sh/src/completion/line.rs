//! Completion of a line that is being typed.

use super::*;

/// A word without its quotes.
pub fn unquoted(raw: &[u8]) -> Vec<u8> {
    pieces(raw).into_iter().flat_map(|(text, _)| text).collect()
}

// --- at the prompt ---

/// How the word at the cursor may go on.
#[derive(Default)]
pub struct Found {
    /// Where the word begins that is to be replaced.
    pub start: usize,
    /// What may stand there, and what to show for it.
    pub candidates: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The simple command the cursor is in.
struct Situation {
    /// Its words, the one at the cursor last, as they were typed.
    words: Vec<Vec<u8>>,
    /// Where the last word begins.
    start: usize,
    /// The quotation the cursor is in.
    quote: Option<u8>,
    /// The word follows a redirection.
    redirected: bool,
}

/// Finds the command and the word that the end of `line` is in.
fn situation(line: &[u8]) -> Situation {
    let mut here = Situation { words: Vec::new(), start: 0, quote: None, redirected: false };
    let (mut word, mut in_word, mut at) = (Vec::new(), false, 0);
    while at < line.len() {
        let byte = line[at];
        let special = here.quote.is_none() && (byte.is_ascii_whitespace() || b";&|()<>`".contains(&byte));
        if special {
            if in_word {
                here.words.push(std::mem::take(&mut word));
                here.redirected = false;
                in_word = false;
            }
            match byte {
                b'<' | b'>' => here.redirected = true,
                b' ' | b'\t' => {}
                _ => {
                    here.words.clear();
                    here.redirected = false;
                }
            }
            at += 1;
            continue;
        }
        if !in_word {
            (in_word, here.start) = (true, at);
        }
        match (here.quote, byte) {
            (None | Some(b'"'), b'\\') => {
                word.push(byte);
                at += 1;
                word.extend(line.get(at));
                at += 1;
                continue;
            }
            (None, open @ (b'\'' | b'"')) => here.quote = Some(open),
            (Some(open), byte) if open == byte => here.quote = None,
            _ => {}
        }
        word.push(byte);
        at += 1;
    }
    if !in_word {
        here.start = line.len();
    }
    here.words.push(word);
    // Words that a command may follow are not part of it.
    let opens = |word: &Vec<u8>| {
        let keywords: [&[u8]; 10] =
            [b"then", b"do", b"else", b"elif", b"if", b"while", b"until", b"{", b"!", b"time"];
        keywords.contains(&word.as_slice())
            || word
                .iter()
                .position(|&byte| byte == b'=')
                .is_some_and(|at| crate::parser::is_assignment_name(&word[..at]))
    };
    while here.words.len() > 1 && opens(&here.words[0]) {
        here.words.remove(0);
    }
    here
}

impl Shell {
    /// How the word at `cursor` may go on.
    pub fn complete_line(&mut self, line: &[u8], cursor: usize) -> Found {
        let line = &line[..cursor.min(line.len())];
        let here = situation(line);
        let raw = here.words.last().cloned().unwrap_or_default();
        if let Some(found) = self.complete_variable(&raw, here.start) {
            return found;
        }
        let typed = unquoted(&raw);
        let first = here.words.len() == 1 && !here.redirected;
        let mut words;
        let (mut spec_options, mut files) = (Vec::new(), true);
        if first && !typed.contains(&b'/') {
            words = self.of_action("command", &typed);
            files = false;
        } else if !here.redirected && !first {
            let name = unquoted(&here.words[0]);
            match self.programmed(&name, &typed, &here, line) {
                Some((found, options)) => {
                    files = options.contains(&"filenames");
                    if found.is_empty() && (options.contains(&"default") || options.contains(&"bashdefault"))
                    {
                        files = true;
                        words = self.of_action("file", &typed);
                    } else {
                        words = found;
                    }
                    spec_options = options;
                }
                None => {
                    let only = matches!(name.as_slice(), b"cd" | b"pushd" | b"rmdir");
                    words = self.of_action(if only { "directory" } else { "file" }, &typed);
                }
            }
        } else if first {
            let runs = |path: &Vec<u8>| {
                let path = self.real_path(path);
                abi::access(abi::Dir::CWD, &path, 1).is_ok()
            };
            words = self.of_action("file", &typed).into_iter().filter(runs).collect();
        } else {
            words = self.of_action("file", &typed);
        }
        if !spec_options.contains(&"nosort") {
            words.sort_unstable();
        }
        words.dedup();
        self.present(words, &here, files, &spec_options)
    }

    fn real_path(&self, path: &[u8]) -> Vec<u8> {
        match (path.strip_prefix(b"~/"), self.text(b"HOME")) {
            (Some(rest), Some(home)) => [&home, &b"/"[..], rest].concat(),
            _ => path.to_vec(),
        }
    }

    /// `$na`, `${na`
    fn complete_variable(&self, raw: &[u8], start: usize) -> Option<Found> {
        let dollar = raw.iter().rposition(|&byte| byte == b'$')?;
        let braced = raw.get(dollar + 1) == Some(&b'{');
        let name = &raw[dollar + 1 + usize::from(braced)..];
        if !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            return None;
        }
        let names = self.of_action("variable", name);
        let single = names.len() == 1;
        let (open, close): (&[u8], &[u8]) = if braced { (b"${", b"}") } else { (b"$", b"") };
        let candidates = names.into_iter().map(|name| {
            let after: &[u8] = if single && !braced && dollar == 0 { b" " } else { b"" };
            ([&raw[..dollar], open, &name, close, after].concat(), [b"$", name.as_slice()].concat())
        });
        Some(Found { start, candidates: candidates.collect() })
    }

    /// What `complete` was told of a command, carried out; with the options it ended up with.
    fn programmed(
        &mut self,
        name: &[u8],
        typed: &[u8],
        here: &Situation,
        line: &[u8],
    ) -> Option<(Vec<Vec<u8>>, Vec<&'static str>)> {
        if !self.shopt.get("progcomp") {
            return None;
        }
        let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let known = &self.completions.of;
        let spec = known.get(name).or_else(|| known.get(base)).or_else(|| known.get(DEFAULT)).cloned()?;
        let asked = Asked {
            line: line.to_vec(),
            cursor: line.len(),
            words: here.words.iter().map(|word| word.to_vec()).collect(),
            at: here.words.len() - 1,
        };
        self.completions.current = Some(spec.options.clone());
        let found = self.generate(&spec, name, typed, &asked);
        let options = self.completions.current.take().unwrap_or_default();
        Some((found, options))
    }

    /// Candidates as they are to be typed: quoted, directories with their slash, a blank after the only one.
    fn present(&self, words: Vec<Vec<u8>>, here: &Situation, files: bool, options: &[&str]) -> Found {
        let single = words.len() == 1;
        let candidates = words.into_iter().map(|word| {
            let directory = files
                && abi::stat(abi::Dir::CWD, &self.real_path(&word), true).is_ok_and(|stat| stat.is_dir());
            let base = word.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            let mut shown = if files { base.to_vec() } else { word.clone() };
            let mut text =
                if options.contains(&"noquote") { word.clone() } else { quoted(&word, here.quote) };
            if directory {
                text.push(b'/');
                shown.push(b'/');
            } else if single {
                text.extend(here.quote);
                if !options.contains(&"nospace") {
                    text.push(b' ');
                }
            }
            (text, shown)
        });
        Found { start: here.start, candidates: candidates.collect() }
    }
}

/// A word with what the shell would take for syntax made harmless, inside the quotation it stands in.
fn quoted(word: &[u8], quote: Option<u8>) -> Vec<u8> {
    let mut out: Vec<u8> = quote.into_iter().collect();
    for (at, &byte) in word.iter().enumerate() {
        let special = match quote {
            Some(b'\'') => false,
            Some(_) => b"\"$`\\!".contains(&byte),
            None => b" \t\n\"'\\$`&|;<>()*?[]{}!#".contains(&byte) || (byte == b'~' && at > 0),
        };
        if special {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}
