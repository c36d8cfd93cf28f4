//! `openssl`: digests, random bytes and base64. Keys, certificates, connections and ciphers are refused with a sentence.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use toolkit::args::bytes_of;
use toolkit::source::Source;
use toolkit::{Arguments, digits, files, input};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, open_flags};

const HELP: &str = "\
usage: openssl COMMAND [OPTION]... [FILE]...

  dgst [-md5|-sha1|-sha224|-sha256|-sha384|-sha512] [-hmac KEY] [-r|-c|-hex|-binary] [-out FILE] [FILE]...
  md5, sha1, sha224, sha256, sha384, sha512 [FILE]...   the same with this digest
  rand [-hex|-base64] [-out FILE] COUNT
  base64 [-d] [-A] [-in FILE] [-out FILE]; also enc -base64
  version
";

type Words = std::vec::IntoIter<Vec<u8>>;

pub fn main(arguments: Arguments) -> i32 {
    let mut words = bytes_of(arguments).into_iter();
    let command = words.next().map(|word| String::from_utf8_lossy(&word).into_owned());
    let done = match command.as_deref() {
        None | Some("help" | "-help" | "--help") => print(1, HELP.as_bytes()),
        Some("--version" | "version") => {
            print(1, format!("OpenSSL (Wardian) {}\n", env!("CARGO_PKG_VERSION")).as_bytes())
        }
        Some("dgst") => dgst(None, words),
        Some(name) if Kind::named(name).is_some() => dgst(Kind::named(name), words),
        Some("rand") => rand(words),
        Some("base64") => base64(words),
        Some("enc") => enc(words),
        Some(
            name @ ("req" | "x509" | "genrsa" | "rsa" | "genpkey" | "pkey" | "ec" | "ecparam" | "ca"
            | "verify" | "pkcs12" | "pkcs8" | "cms" | "smime" | "s_client" | "s_server" | "passwd"
            | "crl" | "ocsp" | "dhparam" | "pkeyutl" | "rsautl" | "speed" | "ciphers" | "asn1parse"
            | "list"),
        ) => fail(format_args!("openssl {name} is not available in this sandbox; see openssl help")),
        Some(name) => fail(format_args!("Invalid command '{name}'; type \"help\" for a list.")),
    };
    done.map_or_else(|code| code, |()| 0)
}

fn fail<T>(message: impl std::fmt::Display) -> Result<T, i32> {
    // There is nowhere left to say that this failed.
    let _ = abi::write_all(2, format!("{message}\n").as_bytes());
    Err(1)
}

fn print(fd: abi::Fd, text: &[u8]) -> Result<(), i32> {
    abi::write_all(fd, text).or_else(|error| fail(format_args!("openssl: write error: {error}")))
}

/// Standard output, or a file.
fn output(file: Option<Vec<u8>>) -> Result<abi::Fd, i32> {
    let Some(file) = file else { return Ok(1) };
    let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::TRUNC;
    abi::open(Dir::CWD, &file, flags, 0o666).or_else(|error| cannot_open(&file, error))
}

fn cannot_open<T>(file: &[u8], error: Errno) -> Result<T, i32> {
    fail(format_args!("{}: {error}", String::from_utf8_lossy(file)))
}

fn value(command: &str, option: &str, words: &mut Words) -> Result<Vec<u8>, i32> {
    match words.next() {
        Some(value) => Ok(value),
        None => {
            fail(format_args!("{command}: Option {option} needs a value\n{command}: Use -help for summary."))
        }
    }
}

/// A digest.
#[derive(Clone, Copy)]
enum Kind {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Kind {
    fn named(name: &str) -> Option<Kind> {
        Some(match name {
            "md5" => Kind::Md5,
            "sha1" => Kind::Sha1,
            "sha224" => Kind::Sha224,
            "sha256" => Kind::Sha256,
            "sha384" => Kind::Sha384,
            "sha512" => Kind::Sha512,
            _ => return None,
        })
    }

    fn title(self) -> &'static str {
        match self {
            Kind::Md5 => "MD5",
            Kind::Sha1 => "SHA1",
            Kind::Sha224 => "SHA2-224",
            Kind::Sha256 => "SHA2-256",
            Kind::Sha384 => "SHA2-384",
            Kind::Sha512 => "SHA2-512",
        }
    }

    /// How many bytes the digest takes at a time.
    fn block(self) -> usize {
        if matches!(self, Kind::Sha384 | Kind::Sha512) { 128 } else { 64 }
    }

    fn of(self, source: &Source, before: &[u8]) -> Result<Vec<u8>, Errno> {
        fn with<D: Digest>(source: &Source, before: &[u8]) -> Result<Vec<u8>, Errno> {
            let mut digest = D::new();
            digest.update(before);
            source.for_blocks(|block| digest.update(block))?;
            Ok(digest.finalize().to_vec())
        }
        match self {
            Kind::Md5 => with::<Md5>(source, before),
            Kind::Sha1 => with::<Sha1>(source, before),
            Kind::Sha224 => with::<Sha224>(source, before),
            Kind::Sha256 => with::<Sha256>(source, before),
            Kind::Sha384 => with::<Sha384>(source, before),
            Kind::Sha512 => with::<Sha512>(source, before),
        }
    }

    fn of_bytes(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Kind::Md5 => Md5::digest(bytes).to_vec(),
            Kind::Sha1 => Sha1::digest(bytes).to_vec(),
            Kind::Sha224 => Sha224::digest(bytes).to_vec(),
            Kind::Sha256 => Sha256::digest(bytes).to_vec(),
            Kind::Sha384 => Sha384::digest(bytes).to_vec(),
            Kind::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }

    /// With a key: RFC 2104.
    fn keyed(self, source: &Source, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut key = if key.len() > self.block() { self.of_bytes(key) } else { key.to_vec() };
        key.resize(self.block(), 0);
        let padded = |byte: u8| key.iter().map(|part| part ^ byte).collect::<Vec<u8>>();
        let inner = self.of(source, &padded(0x36))?;
        Ok(self.of_bytes(&[padded(0x5c), inner].concat()))
    }
}

/// How a digest is written.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Named,
    Coreutils,
    Colons,
    Binary,
}

fn dgst(mut kind: Option<Kind>, mut words: Words) -> Result<(), i32> {
    let (mut form, mut key, mut out, mut operands) = (Form::Named, None, None, Vec::new());
    while let Some(word) = words.next() {
        let text = String::from_utf8_lossy(&word).into_owned();
        match text.strip_prefix('-').map(|name| name.strip_prefix('-').unwrap_or(name)) {
            Some("r") => form = Form::Coreutils,
            Some("c") => form = Form::Colons,
            Some("hex") => form = Form::Named,
            Some("binary") => form = Form::Binary,
            Some("hmac") => key = Some(value("dgst", "-hmac", &mut words)?),
            Some("out") => out = Some(value("dgst", "-out", &mut words)?),
            Some("help") => return print(1, HELP.as_bytes()),
            Some("sign" | "verify" | "prverify" | "signature" | "mac" | "macopt") => {
                return fail(format_args!(
                    "dgst: {text} is not available in this sandbox: there are no keys"
                ));
            }
            Some(name) if !name.is_empty() => match Kind::named(name) {
                Some(named) => kind = Some(named),
                None => {
                    return fail(format_args!(
                        "dgst: Unknown option or message digest: {name}\ndgst: Use -help for summary."
                    ));
                }
            },
            _ => operands.push(word),
        }
    }
    let out = output(out)?;
    let title = match (kind, &key) {
        // The digest that nobody named goes by its old name.
        (None, None) => "SHA256".to_owned(),
        (kind, None) => kind.unwrap_or(Kind::Sha256).title().to_owned(),
        (kind, Some(_)) => format!("HMAC-{}", kind.unwrap_or(Kind::Sha256).title()),
    };
    let kind = kind.unwrap_or(Kind::Sha256);
    let mut failed = false;
    for operand in input::or_stdin(operands) {
        let digest = Source::open(&operand).and_then(|source| match &key {
            Some(key) => kind.keyed(&source, key),
            None => kind.of(&source, b""),
        });
        let digest = match digest {
            Ok(digest) => digest,
            Err(error) => {
                failed |= cannot_open::<()>(&operand, error).is_err();
                continue;
            }
        };
        let hex: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = if operand == b"-" { "stdin".into() } else { String::from_utf8_lossy(&operand) };
        let line = match form {
            Form::Binary => digest,
            Form::Coreutils => format!("{} *{name}\n", hex.concat()).into_bytes(),
            Form::Colons => format!("{title}({name})= {}\n", hex.join(":")).into_bytes(),
            Form::Named => format!("{title}({name})= {}\n", hex.concat()).into_bytes(),
        };
        print(out, &line)?;
    }
    if failed { Err(1) } else { Ok(()) }
}

/// The most random bytes at once.
const MOST: usize = 1 << 30;

fn rand(mut words: Words) -> Result<(), i32> {
    let (mut form, mut out, mut count) = ("", None, 0);
    while let Some(word) = words.next() {
        match word.as_slice() {
            b"-hex" => form = "hex",
            b"-base64" => form = "base64",
            b"-out" => out = Some(value("rand", "-out", &mut words)?),
            b"-help" => return print(1, HELP.as_bytes()),
            other => match input::number::<usize>(other).filter(|count| *count <= MOST) {
                Some(number) => count = number,
                None => {
                    let shown = String::from_utf8_lossy(other);
                    return fail(format_args!("rand: Unknown option: {shown}\nrand: Use -help for summary."));
                }
            },
        }
    }
    let out = output(out)?;
    let random = Source::open(b"/dev/urandom").or_else(|error| cannot_open(b"/dev/urandom", error))?;
    let mut left = count;
    let mut encoded = Vec::new();
    while left > 0 {
        // A multiple of what a line of base64 holds.
        let mut block = vec![0; left.min(48 << 10)];
        random.read_full(&mut block).or_else(|error| cannot_open(b"/dev/urandom", error))?;
        left -= block.len();
        match form {
            "" => print(out, &block)?,
            "hex" => {
                let hex: String = block.iter().map(|byte| format!("{byte:02x}")).collect();
                print(out, hex.as_bytes())?;
            }
            _ => {
                encode(&block, 64, &mut encoded);
                print(out, &std::mem::take(&mut encoded))?;
            }
        }
    }
    if form == "hex" { print(out, b"\n") } else { Ok(()) }
}

fn enc(words: Words) -> Result<(), i32> {
    let all: Vec<Vec<u8>> = words.collect();
    let is_base64 = |word: &Vec<u8>| matches!(word.as_slice(), b"-base64" | b"-a");
    let cipher = all.iter().find(|word| {
        word.starts_with(b"-aes")
            || word.starts_with(b"-des")
            || word.starts_with(b"-cha")
            || *word == b"-pbkdf2"
    });
    if cipher.is_some() || !all.iter().any(is_base64) {
        return fail("enc: ciphers are not available in this sandbox; -base64 is");
    }
    base64(all.into_iter().filter(|word| !is_base64(word)).collect::<Vec<_>>().into_iter())
}

fn base64(mut words: Words) -> Result<(), i32> {
    let (mut decodes, mut one_line, mut from, mut to) = (false, false, b"-".to_vec(), None);
    while let Some(word) = words.next() {
        match word.as_slice() {
            b"-d" => decodes = true,
            b"-e" => decodes = false,
            b"-A" => one_line = true,
            b"-in" => from = value("base64", "-in", &mut words)?,
            b"-out" => to = Some(value("base64", "-out", &mut words)?),
            b"-help" => return print(1, HELP.as_bytes()),
            other => {
                let shown = String::from_utf8_lossy(other).trim_start_matches('-').to_owned();
                return fail(format_args!("base64: Unknown option: {shown}\nbase64: Use -help for summary."));
            }
        }
    }
    let content = match from.as_slice() {
        b"-" => files::read_fd(0),
        path => std::fs::read(files::path(path)).map_err(Errno::from),
    };
    let content = content.or_else(|error| cannot_open(&from, error))?;
    let mut result = Vec::new();
    match decodes {
        true => decode(&content, one_line, &mut result),
        false => encode(&content, if one_line { 0 } else { 64 }, &mut result),
    }
    print(output(to)?, &result)
}

/// Lines of so many characters; with 0 one, without its end.
fn encode(bytes: &[u8], width: usize, out: &mut Vec<u8>) {
    let mut text = Vec::with_capacity(bytes.len() * 4 / 3 + 4);
    for group in bytes.chunks(3) {
        let value =
            group.iter().fold(0_u32, |value, byte| value << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for at in 0..4 {
            let digit = digits::BASE64[(value >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= group.len() { digit } else { b'=' });
        }
    }
    if width == 0 {
        out.extend_from_slice(&text);
        return;
    }
    for line in text.chunks(width) {
        out.extend_from_slice(line);
        out.push(b'\n');
    }
}

/// What lines of base64 stand for. As OpenSSL's, a last line without its end counts only with `-A`.
fn decode(text: &[u8], one_line: bool, out: &mut Vec<u8>) {
    let end = match one_line {
        true => text.len(),
        false => memchr::memrchr(b'\n', text).map_or(0, |at| at + 1),
    };
    let (mut value, mut bits) = (0_u32, 0);
    for byte in &text[..end] {
        if *byte == b'=' {
            break;
        }
        let Some(digit) = digits::BASE64.iter().position(|known| known == byte) else { continue };
        value = value << 6 | digit as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((value >> bits) as u8);
            value &= (1 << bits) - 1;
        }
    }
}
