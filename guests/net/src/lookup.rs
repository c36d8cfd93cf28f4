//! `host`, `dig` and `nslookup`: what the sandbox knows about a name. Addresses are the only records there are.

use crate::http::wire;
use std::net::IpAddr;
use toolkit::options::{Fault, Found, Grammar};
use wardian_abi as abi;

fn print(text: &str) -> i32 {
    match abi::write_all(1, text.as_bytes()) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

const ONLY: &str = "only A and AAAA records are available in this sandbox";

fn words(arguments: toolkit::Arguments) -> Vec<String> {
    let words = toolkit::args::bytes_of(arguments);
    words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Which addresses are asked for.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Both,
    A,
    Aaaa,
}

fn kind(word: &str) -> Option<Kind> {
    match word.to_ascii_uppercase().as_str() {
        "A" => Some(Kind::A),
        "AAAA" => Some(Kind::Aaaa),
        "ANY" => Some(Kind::Both),
        _ => None,
    }
}

fn find(name: &str, kind: Kind) -> (Vec<IpAddr>, bool) {
    let all = wire::addresses(name.trim_end_matches('.'));
    let exists = !all.is_empty();
    let fits = |address: &IpAddr| match kind {
        Kind::Both => true,
        Kind::A => address.is_ipv4(),
        Kind::Aaaa => address.is_ipv6(),
    };
    (all.into_iter().filter(fits).collect(), exists)
}

pub fn host(arguments: toolkit::Arguments) -> i32 {
    const HELP: &str = "Usage: host [-t TYPE] [-4] [-6] NAME\nPrint the addresses of a name.\n";
    let (mut names, mut wanted) = (Vec::new(), Kind::Both);
    let refuse = |what: &str| {
        toolkit::complain("host", what);
        1
    };
    let mut grammar = Grammar::new("46t:hV");
    grammar.name("help", 0);
    grammar.name("version", 1);
    for found in grammar.scan(toolkit::args::bytes_of(arguments).into_iter()) {
        match found {
            Ok(Found::Operand(name)) => names.push(String::from_utf8_lossy(&name).into_owned()),
            Ok(Found::Letter('h', _) | Found::Name(0, _)) => return print(HELP),
            Ok(Found::Letter('V', _) | Found::Name(..)) => return print("host (Wardian) 0.1.0\n"),
            Ok(Found::Letter('4', _)) => wanted = Kind::A,
            Ok(Found::Letter('6', _)) => wanted = Kind::Aaaa,
            Ok(Found::Letter(_, given)) => match kind(&String::from_utf8_lossy(&given.unwrap_or_default())) {
                Some(found) => wanted = found,
                None => return refuse(ONLY),
            },
            Err(Fault::UnknownLetter(letter)) => {
                return refuse(&format!("option -{letter} is not available in this sandbox"));
            }
            Err(Fault::UnknownName(name)) => {
                return refuse(&format!("option --{name} is not available in this sandbox"));
            }
            Err(fault) => return refuse(&fault.to_string()),
        }
    }
    let name = match &names[..] {
        [name] => name,
        [_, _, ..] => {
            toolkit::complain("host", "name servers cannot be chosen in this sandbox");
            return 1;
        }
        [] => {
            let _ = abi::write_all(2, HELP.as_bytes());
            return 1;
        }
    };
    if name.parse::<IpAddr>().is_ok() {
        toolkit::complain("host", "names of addresses cannot be looked up in this sandbox");
        return 1;
    }
    let (found, exists) = find(name, wanted);
    if !exists {
        print(&format!("Host {name} not found: 3(NXDOMAIN)\n"));
        return 1;
    }
    let mut text = String::new();
    for address in &found {
        let word = if address.is_ipv4() { "address" } else { "IPv6 address" };
        text += &format!("{name} has {word} {address}\n");
    }
    if found.is_empty() {
        let word = if wanted == Kind::A { "A" } else { "AAAA" };
        text = format!("{name} has no {word} record\n");
    }
    print(&text)
}

/// What `dig` shows.
struct Show {
    short: bool,
    all: bool,
    answer: bool,
}

pub fn dig(arguments: toolkit::Arguments) -> i32 {
    const HELP: &str =
        "Usage: dig [+short] [+noall +answer] [-t TYPE] NAME [TYPE]\nPrint the addresses of a name.\n";
    let mut show = Show { short: false, all: true, answer: true };
    let (mut names, mut wanted) = (Vec::new(), Kind::A);
    let refuse = |what: &str| {
        toolkit::complain("dig", what);
        1
    };
    let mut rest = words(arguments).into_iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--help" | "-h" => return print(HELP),
            "--version" | "-v" => return print("dig (Wardian) 0.1.0\n"),
            "+short" => show.short = true,
            "+noall" => (show.all, show.answer) = (false, false),
            "+answer" => show.answer = true,
            "+nocomments" | "+nocmd" | "+nostats" | "+noquestion" => show.all = false,
            "-t" => match rest.next().as_deref().and_then(kind) {
                Some(found) => wanted = found,
                None => return refuse(ONLY),
            },
            "A" | "a" | "AAAA" | "aaaa" | "ANY" | "any" => wanted = kind(&word).unwrap_or(Kind::A),
            "IN" | "in" => {}
            "MX" | "NS" | "TXT" | "SOA" | "CNAME" | "PTR" | "SRV" | "CAA" | "mx" | "ns" | "txt" | "soa"
            | "cname" | "ptr" | "srv" | "caa" => return refuse(ONLY),
            "-x" => return refuse("names of addresses cannot be looked up in this sandbox"),
            word if word.starts_with('@') => return refuse("name servers cannot be chosen in this sandbox"),
            word if word.starts_with(['+', '-']) => {
                return refuse(&format!("option {word} is not available in this sandbox"));
            }
            _ => names.push(word),
        }
    }
    if names.is_empty() {
        return refuse("a name is needed");
    }
    names.iter().map(|name| dig_one(name, wanted, &show)).max().unwrap_or(0)
}

fn dig_one(name: &str, wanted: Kind, show: &Show) -> i32 {
    let (found, exists) = find(name, wanted);
    let mut text = String::new();
    if show.short {
        found.iter().for_each(|address| text += &format!("{address}\n"));
        return print(&text);
    }
    let full = format!("{}.", name.trim_end_matches('.'));
    let word = if wanted == Kind::Aaaa { "AAAA" } else { "A" };
    if show.all {
        let status = if exists { "NOERROR" } else { "NXDOMAIN" };
        text += &format!(
            "\n; <<>> DiG (Wardian) <<>> {name}\n;; Got answer:\n;; ->>HEADER<<- opcode: QUERY, status: {status}, id: 0\n\
             ;; flags: qr rd ra; QUERY: 1, ANSWER: {}, AUTHORITY: 0, ADDITIONAL: 0\n\n;; QUESTION SECTION:\n;{full}\t\t\tIN\t{word}\n\n",
            found.len()
        );
        if !found.is_empty() {
            text += ";; ANSWER SECTION:\n";
        }
    }
    if show.answer {
        for address in &found {
            let word = if address.is_ipv4() { "A" } else { "AAAA" };
            text += &format!("{full}\t\t0\tIN\t{word}\t{address}\n");
        }
    }
    if show.all {
        text += "\n;; SERVER: the sandbox's gateway\n\n";
    }
    print(&text)
}

pub fn nslookup(arguments: toolkit::Arguments) -> i32 {
    const HELP: &str = "Usage: nslookup [-type=TYPE] NAME\nPrint the addresses of a name.\n";
    let (mut names, mut wanted) = (Vec::new(), Kind::Both);
    for word in words(arguments) {
        let kind_word =
            ["-type=", "-query=", "-q=", "-querytype="].iter().find_map(|prefix| word.strip_prefix(prefix));
        match (word.as_str(), kind_word) {
            ("--help" | "-h", _) => return print(HELP),
            ("--version" | "-version", _) => return print("nslookup (Wardian) 0.1.0\n"),
            (_, Some(text)) => match kind(text) {
                Some(found) => wanted = found,
                None => {
                    toolkit::complain("nslookup", ONLY);
                    return 1;
                }
            },
            (text, _) if text.starts_with('-') => {
                toolkit::complain("nslookup", format_args!("option {text} is not available in this sandbox"));
                return 1;
            }
            _ => names.push(word),
        }
    }
    let [name] = &names[..] else {
        let what = if names.is_empty() {
            "a name is needed"
        } else {
            "name servers cannot be chosen in this sandbox"
        };
        toolkit::complain("nslookup", what);
        return 1;
    };
    let (found, exists) = find(name, wanted);
    let mut text = "Server:\t\tthe sandbox's gateway\n\n".to_owned();
    if !exists {
        text += &format!("** server can't find {name}: NXDOMAIN\n\n");
        print(&text);
        return 1;
    }
    text += "Non-authoritative answer:\n";
    for address in &found {
        text += &format!("Name:\t{name}\nAddress: {address}\n");
    }
    if found.is_empty() {
        text += &format!("*** Can't find {name}: No answer\n");
    }
    print(&(text + "\n"))
}
