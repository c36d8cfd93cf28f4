//! `uuidgen`: a number that nobody else has, or the one that belongs to a name.

use md5::{Digest, Md5};
use sha1::Sha1;
use std::io::Read;
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, clock, complain, quote};

const TOOL: Tool = Tool {
    name: "uuidgen",
    short: "rtn:N:msx",
    long: &[
        ("random", 'r'),
        ("time", 't'),
        ("namespace=", 'n'),
        ("name=", 'N'),
        ("md5", 'm'),
        ("sha1", 's'),
        ("hex", 'x'),
    ],
    help: "
Usage:
 uuidgen [options]

Create a new UUID value.

Options:
 -r, --random          generate random-based uuid
 -t, --time            generate time-based uuid
 -n, --namespace ns    generate hash-based uuid in this namespace
 -N, --name name       generate hash-based uuid from this name
 -m, --md5             generate md5 hash
 -s, --sha1            generate sha1 hash
 -x, --hex             interpret name as hex string
     --help            display this help and exit
     --version         display version and exit
",
    misuse: 1,
};

/// The namespaces that have names, each with its first four bytes; the rest is common to all.
const NAMESPACES: [(&[u8], [u8; 4]); 4] = [
    (b"@dns", [0x6b, 0xa7, 0xb8, 0x10]),
    (b"@url", [0x6b, 0xa7, 0xb8, 0x11]),
    (b"@oid", [0x6b, 0xa7, 0xb8, 0x12]),
    (b"@x500", [0x6b, 0xa7, 0xb8, 0x14]),
];
const COMMON: [u8; 12] = [0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8];

/// Hundreds of nanoseconds from the reform of the calendar to 1970.
const REFORM: u64 = 0x01b2_1dd2_1381_4000;

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let (mut way, mut namespace, mut name, mut is_hex) = ('r', None, None, false);
    for (letter, text) in parsed.options {
        match letter {
            'n' => namespace = text,
            'N' => name = text,
            'x' => is_hex = true,
            letter => way = letter,
        }
    }
    let hashes = matches!(way, 'm' | 's');
    let bytes = match (namespace, name) {
        (Some(_), None) => return Err(TOOL.wrong("--namespace requires --name argument")),
        (None, Some(_)) => return Err(TOOL.wrong("--name requires --namespace argument")),
        (None, None) if hashes => {
            return Err(TOOL.wrong("--md5 or --sha1 requires --namespace argument"));
        }
        (Some(_), Some(_)) if !hashes => return Err(TOOL.wrong("--namespace requires --md5 or --sha1")),
        (Some(namespace), Some(name)) => {
            let name = if is_hex { from_hex(&name)? } else { name };
            of_name(way, &namespace, &name)?
        }
        (None, None) if way == 't' => of_time()?,
        (None, None) => marked(random()?, 4),
    };
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Out::new("uuidgen").put(parts.join("-") + "\n");
    Ok(0)
}

/// With its version, and the variant that all have.
fn marked(mut bytes: [u8; 16], version: u8) -> [u8; 16] {
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

fn random() -> Result<[u8; 16], i32> {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| {
        complain("uuidgen", format_args!("/dev/urandom: {}", wardian_abi::Errno::from(error)));
        1
    })?;
    Ok(bytes)
}

/// The time, and a random number for the machine, marked as such.
fn of_time() -> Result<[u8; 16], i32> {
    let mut bytes = random()?;
    let time = REFORM.wrapping_add((clock::now() / 100) as u64);
    bytes[..4].copy_from_slice(&(time as u32).to_be_bytes());
    bytes[4..6].copy_from_slice(&((time >> 32) as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&((time >> 48) as u16).to_be_bytes());
    bytes[10] |= 1;
    Ok(marked(bytes, 1))
}

fn of_name(way: char, namespace: &[u8], name: &[u8]) -> Result<[u8; 16], i32> {
    let space = namespace_of(namespace).ok_or_else(|| {
        let what = if namespace.starts_with(b"@") {
            "unknown namespace alias"
        } else {
            "invalid uuid for namespace"
        };
        TOOL.wrong(format_args!("{what}: {}", quote::word(namespace)))
    })?;
    let mut bytes = [0; 16];
    if way == 'm' {
        bytes.copy_from_slice(&Md5::new().chain_update(space).chain_update(name).finalize());
        return Ok(marked(bytes, 3));
    }
    bytes.copy_from_slice(&Sha1::new().chain_update(space).chain_update(name).finalize()[..16]);
    Ok(marked(bytes, 5))
}

fn namespace_of(text: &[u8]) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    if let Some((_, first)) = NAMESPACES.iter().find(|(name, _)| *name == text) {
        bytes[..4].copy_from_slice(first);
        bytes[4..].copy_from_slice(&COMMON);
        return Some(bytes);
    }
    let has_dashes = text.len() == 36 && [8, 13, 18, 23].iter().all(|&at| text[at] == b'-');
    let digits: Vec<u8> = text.iter().copied().filter(|&byte| byte != b'-').collect();
    if !has_dashes || digits.len() != 32 {
        return None;
    }
    bytes.copy_from_slice(&hex_bytes(&digits)?);
    Some(bytes)
}

fn from_hex(text: &[u8]) -> Result<Vec<u8>, i32> {
    hex_bytes(text).ok_or_else(|| TOOL.wrong("not a valid hex string"))
}

fn hex_bytes(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    text.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}
