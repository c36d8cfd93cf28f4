//! The front desk of uutils' tools: refuses a command line in GNU's words before the tool sees it.
//!
//! Their own refusals come from another parser of options, and say other things.

use toolkit::args::{Parsed, Refusal, Tool};
use toolkit::{complain, count, quote};

/// What GNU's tool takes.
struct Desk {
    tool: Tool,
    /// How many operands there must be at least and may be at most.
    operands: (usize, usize),
    /// The words some options take, by letter: the option's name, and the words.
    choices: &'static [(char, &'static str, &'static [&'static str])],
    /// What else can be wrong.
    check: fn(&Parsed) -> Result<(), Wrong>,
}

/// What is wrong beyond options and the number of operands.
enum Wrong {
    /// Worth a look at `--help`.
    Usage(String),
    Plain(String),
}

const MANY: usize = usize::MAX;

/// Whether the tool may see this command line; else its exit code. Help and version are the tool's to answer.
pub fn admit(name: &str, arguments: &[Vec<u8>]) -> Result<(), i32> {
    let Some(desk) = desk_of(name) else { return Ok(()) };
    let tool = &desk.tool;
    let parsed = match tool.try_parse(arguments.to_vec()) {
        Ok(parsed) => parsed,
        Err(refusal @ Refusal::Wrong(_)) => return Err(tool.answer(refusal)),
        Err(_) => return Ok(()),
    };
    for (letter, option, words) in desk.choices {
        let given = parsed.options.iter().filter(|(other, _)| other == letter);
        for word in given.filter_map(|(_, argument)| argument.as_deref()) {
            check_choice(tool, option, word, words)?;
        }
    }
    (desk.check)(&parsed).map_err(|wrong| match wrong {
        Wrong::Usage(message) => tool.wrong(message),
        Wrong::Plain(message) => {
            complain(tool.name, message);
            tool.misuse
        }
    })?;
    check_count(tool, desk.operands, &parsed.operands)
}

fn check_choice(tool: &Tool, option: &str, given: &[u8], choices: &[&str]) -> Result<(), i32> {
    let numbered = choices.iter().enumerate();
    let words: Vec<(&str, usize)> =
        numbered.flat_map(|(number, choice)| choice.split(' ').map(move |word| (word, number))).collect();
    // An abbreviation will do, but for the name of a digest.
    if tool.name == "cksum" && !words.iter().any(|(word, _)| word.as_bytes() == given) {
        return Err(tool.wrong_choice(option, given, choices));
    }
    tool.choose(option, given, &words).map(drop)
}

fn check_count(tool: &Tool, (least, most): (usize, usize), operands: &[Vec<u8>]) -> Result<(), i32> {
    let noun = if tool.name == "truncate" { "file operand" } else { "operand" };
    if let Some(extra) = operands.get(most) {
        return Err(tool.wrong(format_args!("extra operand {}", quote::word(extra))));
    }
    match operands.last() {
        None if least > 0 => Err(tool.wrong(format_args!("missing {noun}"))),
        Some(last) if operands.len() < least => {
            Err(tool.wrong(format_args!("missing {noun} after {}", quote::word(last))))
        }
        _ => Ok(()),
    }
}

/// A desk without specialities.
const fn desk(
    name: &'static str,
    short: &'static str,
    long: &'static [(&'static str, char)],
    operands: (usize, usize),
) -> Desk {
    let misuse = match name.as_bytes() {
        b"sort" | b"printenv" | b"tty" => 2,
        _ => 1,
    };
    let tool = Tool { name, short, long, help: "", misuse };
    Desk { tool, operands, choices: &[], check: |_| Ok(()) }
}

const DIGEST: &[(&str, char)] = &[
    ("binary", 'b'),
    ("check", 'c'),
    ("ignore-missing", '1'),
    ("text", 't'),
    ("quiet", '2'),
    ("status", '3'),
    ("warn", 'w'),
    ("strict", '4'),
    ("tag", '5'),
    ("zero", 'z'),
];

fn desk_of(name: &str) -> Option<Desk> {
    Some(match name {
        "arch" => desk("arch", "", &[], (0, 0)),
        "b2sum" => {
            const LONG: &[(&str, char)] = &[
                ("length=", 'l'),
                ("binary", 'b'),
                ("check", 'c'),
                ("ignore-missing", '1'),
                ("text", 't'),
                ("quiet", '2'),
                ("status", '3'),
                ("warn", 'w'),
                ("strict", '4'),
                ("tag", '5'),
                ("zero", 'z'),
            ];
            desk("b2sum", "l:bctwz", LONG, (0, MANY))
        }
        "basename" => {
            desk("basename", "+as:z", &[("multiple", 'a'), ("suffix=", 's'), ("zero", 'z')], (1, MANY))
        }
        "cksum" => cksum(),
        "dirname" => desk("dirname", "+z", &[("zero", 'z')], (1, MANY)),
        "join" => {
            const LONG: &[(&str, char)] = &[
                ("ignore-case", 'i'),
                ("check-order", 'c'),
                ("nocheck-order", 'n'),
                ("zero-terminated", 'z'),
                ("header", 'h'),
            ];
            desk("join", "a:e:i1:2:j:o:t:v:z", LONG, (2, 2))
        }
        "link" => desk("link", "", &[], (2, 2)),
        "md5sum" => desk("md5sum", "bctwz", DIGEST, (0, MANY)),
        "sha1sum" => desk("sha1sum", "bctwz", DIGEST, (0, MANY)),
        "sha224sum" => desk("sha224sum", "bctwz", DIGEST, (0, MANY)),
        "sha256sum" => desk("sha256sum", "bctwz", DIGEST, (0, MANY)),
        "sha384sum" => desk("sha384sum", "bctwz", DIGEST, (0, MANY)),
        "sha512sum" => desk("sha512sum", "bctwz", DIGEST, (0, MANY)),
        "od" => od(),
        "nproc" => nproc(),
        "printenv" => desk("printenv", "+0", &[("null", '0')], (0, MANY)),
        "pwd" => desk("pwd", "LP", &[("logical", 'L'), ("physical", 'P')], (0, MANY)),
        "shuf" => shuf(),
        "sum" => desk("sum", "rs", &[("sysv", 's')], (0, MANY)),
        "tee" => {
            const LONG: &[(&str, char)] =
                &[("append", 'a'), ("ignore-interrupts", 'i'), ("output-error[=", 'e')];
            const WORDS: &[&str] = &["warn", "warn-nopipe", "exit", "exit-nopipe"];
            Desk { choices: &[('e', "--output-error", WORDS)], ..desk("tee", "aip", LONG, (0, MANY)) }
        }
        "truncate" => truncate(),
        "tsort" => desk("tsort", "", &[], (0, 1)),
        "tty" => desk("tty", "s", &[("silent", 's'), ("quiet", 's')], (0, 0)),
        "unlink" => desk("unlink", "", &[], (1, 1)),
        _ => return None,
    })
}

fn cksum() -> Desk {
    const LONG: &[(&str, char)] = &[
        ("algorithm=", 'a'),
        ("length=", 'l'),
        ("binary", 'b'),
        ("check", 'c'),
        ("ignore-missing", '1'),
        ("text", 't'),
        ("quiet", '2'),
        ("status", '3'),
        ("warn", 'w'),
        ("strict", '4'),
        ("tag", '5'),
        ("zero", 'z'),
        ("untagged", '6'),
        ("debug", '7'),
    ];
    const WORDS: &[&str] =
        &["bsd", "sysv", "crc", "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "sm3"];
    let check = |parsed: &Parsed| {
        let algorithm = arguments_of(parsed, 'a').last();
        let length = arguments_of(parsed, 'l').last();
        let is_plain = matches!(algorithm, Some(b"bsd" | b"sysv" | b"crc"));
        match length {
            Some(length) if count::parse(length, 0..=u64::MAX, "").is_ok_and(|length| length % 8 != 0) => {
                let shown = quote::word(length);
                let message = format!("invalid length: {shown}\ncksum: length is not a multiple of 8");
                Err(Wrong::Plain(message))
            }
            Some(_) if algorithm.is_some_and(|algorithm| algorithm != b"blake2b") => {
                Err(Wrong::Plain("--length is only supported with --algorithm=blake2b".into()))
            }
            _ if is_plain && parsed.options.iter().any(|(letter, _)| *letter == 'c') => {
                Err(Wrong::Plain("--check is not supported with --algorithm={bsd,sysv,crc}".into()))
            }
            _ => Ok(()),
        }
    };
    Desk { choices: &[('a', "--algorithm", WORDS)], check, ..desk("cksum", "a:l:bctwz", LONG, (0, MANY)) }
}

fn od() -> Desk {
    const LONG: &[(&str, char)] = &[
        ("skip-bytes=", 'j'),
        ("address-radix=", 'A'),
        ("read-bytes=", 'N'),
        ("format=", 't'),
        ("output-duplicates", 'v'),
        ("strings[=", 'S'),
        ("traditional", '1'),
        ("width[=", 'w'),
        ("endian=", 'E'),
    ];
    let check = |parsed: &Parsed| {
        for (letter, argument) in &parsed.options {
            let Some(text) = argument.as_deref() else { continue };
            let wrong = match letter {
                'A' => od_radix(text),
                't' => od_type(text),
                'j' | 'N' | 'S' | 'w' => od_count(*letter, text),
                _ => None,
            };
            if let Some(message) = wrong {
                return Err(Wrong::Plain(message));
            }
        }
        Ok(())
    };
    const ENDS: &[&str] = &["little", "big"];
    Desk {
        choices: &[('E', "--endian", ENDS)],
        check,
        ..desk("od", "A:aBbcDdeFfHhIij:LlN:OoS:st:vw::Xx", LONG, (0, MANY))
    }
}

fn od_radix(text: &[u8]) -> Option<String> {
    let first = text.first().copied().unwrap_or(0);
    let message = "it must be one character from [doxn]";
    (!b"doxn".contains(&first))
        .then(|| format!("invalid output address radix '{}'; {message}", char::from(first)))
}

/// What is wrong with the types of `-t`.
fn od_type(text: &[u8]) -> Option<String> {
    let shown = quote::word(text);
    let mut rest = text;
    while let [letter, after @ ..] = rest {
        let (sizes, letters, kind): (&[u64], &[u8], &str) = match letter {
            b'd' | b'o' | b'u' | b'x' => (&[1, 2, 4, 8], b"CSIL", "integral"),
            b'f' => (&[4, 8, 16], b"FDL", "floating point"),
            b'a' | b'c' => (&[], b"", ""),
            other => {
                return Some(format!("invalid character '{}' in type string {shown}", char::from(*other)));
            }
        };
        rest = after;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit() && !sizes.is_empty()).count();
        if digits > 0 {
            match count::parse(&rest[..digits], 0..=u64::MAX, "") {
                Ok(size) if sizes.contains(&size) => {}
                Ok(size) => {
                    let lack = format!("this system doesn't provide a {size}-byte {kind} type");
                    return Some(format!("invalid type string {shown};\n{lack}"));
                }
                Err(_) => return Some(format!("invalid type string {shown}")),
            }
            rest = &rest[digits..];
        } else if let [size, after @ ..] = rest
            && letters.contains(size)
        {
            rest = after;
        }
        rest = rest.strip_prefix(b"z").unwrap_or(rest);
    }
    None
}

/// What is wrong with a number of bytes, which may be octal or hexadecimal.
fn od_count(letter: char, text: &[u8]) -> Option<String> {
    let shown = String::from_utf8_lossy(text);
    let digits = match text {
        [b'0', b'x' | b'X', digits @ ..] => {
            digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count() + 2
        }
        digits => digits.iter().take_while(|byte| byte.is_ascii_digit()).count(),
    };
    if digits == 0 {
        return Some(format!("invalid -{letter} argument '{shown}'"));
    }
    let suffix = &text[digits..];
    let is_hex = text.starts_with(b"0x") || text.starts_with(b"0X");
    // Any number will do to see whether the suffix is one.
    match count::parse(&[b"1", suffix].concat(), 0..=u64::MAX, "bEGKkMmPTYZ0") {
        Err(count::Wrong::NoNumber) => Some(format!("invalid suffix in -{letter} argument '{shown}'")),
        Err(_) => Some(format!("-{letter} argument '{shown}' too large")),
        Ok(_) if is_hex => None,
        Ok(_) => match count::parse(text, 0..=u64::MAX, "bEGKkMmPTYZ0") {
            Err(count::Wrong::TooLarge) => Some(format!("-{letter} argument '{shown}' too large")),
            _ => None,
        },
    }
}

fn nproc() -> Desk {
    let check = |parsed: &Parsed| {
        for text in parsed.options.iter().filter_map(|(_, argument)| argument.as_deref()) {
            if !text.iter().all(u8::is_ascii_digit) || text.is_empty() {
                return Err(Wrong::Plain(format!("invalid number: {}", quote::word(text))));
            }
        }
        Ok(())
    };
    Desk { check, ..desk("nproc", "", &[("all", 'a'), ("ignore=", 'i')], (0, 0)) }
}

fn shuf() -> Desk {
    const LONG: &[(&str, char)] = &[
        ("echo", 'e'),
        ("input-range=", 'i'),
        ("head-count=", 'n'),
        ("output=", 'o'),
        ("random-source=", 'R'),
        ("repeat", 'r'),
        ("zero-terminated", 'z'),
    ];
    let check = |parsed: &Parsed| {
        let ranges: Vec<&[u8]> = arguments_of(parsed, 'i').collect();
        for (at, range) in ranges.iter().enumerate() {
            if at > 0 {
                return Err(Wrong::Plain("multiple -i options specified".into()));
            }
            check_range(range)?;
        }
        if !ranges.is_empty() && parsed.options.iter().any(|(letter, _)| *letter == 'e') {
            return Err(Wrong::Usage("cannot combine -e and -i options".into()));
        }
        let reads_file = ranges.is_empty() && !parsed.options.iter().any(|(letter, _)| *letter == 'e');
        let most = usize::from(reads_file);
        match parsed.operands.get(most) {
            Some(extra) if reads_file || !ranges.is_empty() => {
                Err(Wrong::Usage(format!("extra operand {}", quote::word(extra))))
            }
            _ => Ok(()),
        }
    };
    Desk { check, ..desk("shuf", "ei:n:o:rz", LONG, (0, MANY)) }
}

/// GNU names the part of the range that it could not read.
fn check_range(range: &[u8]) -> Result<(), Wrong> {
    let wrong = |part: &[u8]| Err(Wrong::Plain(format!("invalid input range: {}", quote::word(part))));
    let number = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
    let Some(dash) = range.iter().position(|&byte| byte == b'-') else { return wrong(range) };
    let (low, high) = (&range[..dash], &range[dash + 1..]);
    match (number(low), number(high)) {
        (None, _) => wrong(low),
        (_, None) => wrong(high),
        (Some(first), Some(last)) if first > last.saturating_add(1) => wrong(range),
        _ => Ok(()),
    }
}

fn truncate() -> Desk {
    const LONG: &[(&str, char)] =
        &[("no-create", 'c'), ("io-blocks", 'o'), ("reference=", 'r'), ("size=", 's')];
    let check = |parsed: &Parsed| {
        let (size, reference) = (arguments_of(parsed, 's').last(), arguments_of(parsed, 'r').last());
        match (size, reference) {
            (None, None) => Err(Wrong::Usage("you must specify either '--size' or '--reference'".into())),
            (Some([b'+' | b'-' | b'<' | b'>' | b'/' | b'%', ..]), _) | (_, None) | (None, _) => Ok(()),
            (Some(_), Some(_)) => {
                let message = "you must specify a relative '--size' with '--reference'";
                Err(Wrong::Usage(message.into()))
            }
        }
    };
    Desk { check, ..desk("truncate", "cor:s:", LONG, (1, MANY)) }
}

fn arguments_of(parsed: &Parsed, wanted: char) -> impl Iterator<Item = &[u8]> {
    parsed.options.iter().filter(move |(letter, _)| *letter == wanted).filter_map(|(_, text)| text.as_deref())
}
