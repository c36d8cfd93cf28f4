//! The command line of `wget`.

use std::time::Duration;
use toolkit::args::{Refusal, Tool};
use toolkit::options::Found;

/// Long options beyond the letters, each with a letter of its own.
const LONG: &[(&str, char)] = &[
    ("quiet", 'q'),
    ("verbose", 'v'),
    ("no-verbose", 'a'),
    ("output-document=", 'O'),
    ("directory-prefix=", 'P'),
    ("continue", 'c'),
    ("recursive", 'r'),
    ("level=", 'l'),
    ("no-parent", 'b'),
    ("header=", 'd'),
    ("post-data=", 'e'),
    ("post-file=", 'f'),
    ("method=", 'g'),
    ("body-data=", 'h'),
    ("body-file=", 'j'),
    ("server-response", 'S'),
    ("spider", 's'),
    ("input-file=", 'i'),
    ("tries=", 't'),
    ("timeout=", 'T'),
    ("connect-timeout=", 'k'),
    ("read-timeout=", 'm'),
    ("no-clobber", 'n'),
    ("no-directories", 'o'),
    ("force-directories", 'x'),
    ("no-host-directories", 'p'),
    ("cut-dirs=", 'u'),
    ("user-agent=", 'U'),
    ("referer=", 'w'),
    ("user=", 'y'),
    ("password=", 'z'),
    ("http-user=", 'y'),
    ("http-password=", 'z'),
    ("no-check-certificate", 'A'),
    ("max-redirect=", 'B'),
    ("content-disposition", 'C'),
    ("content-on-error", 'D'),
    ("load-cookies=", 'E'),
    ("save-cookies=", 'F'),
    ("keep-session-cookies", 'G'),
    ("no-cookies", 'H'),
    ("wait=", 'I'),
    ("waitretry=", 'J'),
    ("retry-connrefused", 'K'),
    ("retry-on-http-error=", 'L'),
    ("accept=", 'M'),
    ("reject=", 'N'),
    ("page-requisites", 'Q'),
    ("output-file=", 'R'),
    ("append-output=", 'V'),
    ("inet4-only", '4'),
    ("inet6-only", '6'),
    ("no-hsts", '0'),
    ("no-proxy", '0'),
    ("no-config", '0'),
    ("no-iri", '0'),
    ("no-cache", 'W'),
    ("show-progress", 'X'),
    ("progress=", 'Y'),
    ("no-show-progress", '0'),
    ("auth-no-challenge", 'Z'),
    ("limit-rate=", '1'),
    ("no-http-keep-alive", '2'),
    ("no-use-server-timestamps", '3'),
    ("relative", '5'),
    ("base=", '7'),
];

/// Options of wget that do not work here.
const REFUSED: &[&str] = &[
    "background",
    "execute",
    "debug",
    "force-html",
    "convert-links",
    "backup-converted",
    "backups",
    "mirror",
    "timestamping",
    "no-if-modified-since",
    "no-remove-listing",
    "no-glob",
    "no-passive-ftp",
    "ftp-user",
    "ftp-password",
    "quota",
    "bind-address",
    "restrict-file-names",
    "ignore-case",
    "prefer-family",
    "ask-password",
    "use-askpass",
    "adjust-extension",
    "html-extension",
    "default-page",
    "span-hosts",
    "domains",
    "exclude-domains",
    "follow-ftp",
    "follow-tags",
    "ignore-tags",
    "include-directories",
    "exclude-directories",
    "accept-regex",
    "reject-regex",
    "regex-type",
    "trust-server-names",
    "ca-certificate",
    "ca-directory",
    "certificate",
    "certificate-type",
    "private-key",
    "private-key-type",
    "crl-file",
    "pinnedpubkey",
    "random-file",
    "secure-protocol",
    "https-only",
    "ciphers",
    "warc-file",
    "save-headers",
    "ignore-length",
    "proxy-user",
    "proxy-password",
    "start-pos",
    "random-wait",
    "delete-after",
    "dns-timeout",
    "no-dns-cache",
    "local-encoding",
    "remote-encoding",
    "unlink",
    "compression",
    "report-speed",
    "rejected-log",
    "config",
    "hsts-file",
    "no-warc-compression",
    "strict-comments",
    "protocol-directories",
    "xattr",
    "retry-on-host-error",
    "input-metalink",
    "metalink-over-http",
    "preferred-location",
];

const HELP: &str = "Usage: wget [OPTION]... [URL]...
Download files over http and https.
  -q, --quiet                quiet (no output)
  -nv, --no-verbose          turn off verboseness, without being quiet
  -o, --output-file=FILE     log messages to FILE
  -a, --append-output=FILE   append messages to FILE
  -i, --input-file=FILE      download URLs found in local FILE
  -t, --tries=NUMBER         set number of retries to NUMBER (0 unlimits)
  -O, --output-document=FILE write documents to FILE
  -nc, --no-clobber          skip downloads that would overwrite files
  -c, --continue             resume getting a partially-downloaded file
  -S, --server-response      print server response
      --spider               don't download anything
  -T, --timeout=SECONDS      set all timeout values to SECONDS
  -P, --directory-prefix=PREFIX  save files to PREFIX/..
      --user=USER, --password=PASS
      --header=STRING        insert STRING among the headers
      --post-data=STRING, --post-file=FILE
      --no-check-certificate don't validate the server's certificate
  -r, --recursive            specify recursive download, of the same host
  -l, --level=NUMBER         maximum recursion depth (inf or 0 for infinite)
  -np, --no-parent           don't ascend to the parent directory
  -A, --accept=LIST, -R, --reject=LIST  extensions or patterns of names
An option of GNU wget that is not available says so.
";

/// How much is said.
#[derive(Clone, Copy, PartialEq, Default)]
pub enum Talk {
    Quiet,
    Little,
    #[default]
    Much,
}

#[derive(Clone, Default)]
pub struct Options {
    pub talk: Talk,
    pub urls: Vec<String>,
    pub inputs: Vec<Vec<u8>>,
    pub base: Option<String>,
    pub output: Option<Vec<u8>>,
    pub prefix: Vec<u8>,
    pub log: Option<(Vec<u8>, bool)>,
    pub resume: bool,
    pub recursive: bool,
    pub requisites: bool,
    pub level: usize,
    pub no_parent: bool,
    pub relative: bool,
    pub headers: Vec<Vec<u8>>,
    pub body: Option<Body>,
    pub method: Option<String>,
    pub server_response: bool,
    pub spider: bool,
    pub tries: u64,
    pub connect_timeout: Option<Duration>,
    pub read_timeout: Option<Duration>,
    pub no_clobber: bool,
    pub no_directories: bool,
    pub force_directories: bool,
    pub no_host_directories: bool,
    pub cut_dirs: usize,
    pub agent: Option<Vec<u8>>,
    pub referer: Option<Vec<u8>>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub auth_at_once: bool,
    pub insecure: bool,
    pub max_redirect: usize,
    pub content_disposition: bool,
    pub content_on_error: bool,
    pub load_cookies: Option<Vec<u8>>,
    pub save_cookies: Option<Vec<u8>>,
    pub keep_session: bool,
    pub no_cookies: bool,
    pub wait: f64,
    pub wait_retry: u64,
    pub retry_refused: bool,
    pub retry_statuses: Vec<u16>,
    pub accept: Vec<String>,
    pub reject: Vec<String>,
    pub ipv4: bool,
    pub ipv6: bool,
    pub no_cache: bool,
    pub show_progress: bool,
    pub limit_rate: Option<u64>,
    pub no_keep_alive: bool,
    pub no_timestamps: bool,
}

/// What is sent with a request.
#[derive(Clone)]
pub enum Body {
    Data(Vec<u8>),
    File(Vec<u8>),
}

const USAGE: &str = "Usage: wget [OPTION]... [URL]...\n\nTry `wget --help' for more options.";

/// Says what is wrong with the call.
pub fn usage(message: &str) {
    toolkit::complain("wget", format_args!("{message}\n{USAGE}"));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A letter of the command line as one of [`LONG`]'s, which are more than there are letters.
fn canonical(letter: char, argument: Option<Vec<u8>>) -> Option<(char, Option<Vec<u8>>)> {
    Some(match (letter, argument.as_deref()) {
        ('n', Some(b"v")) => ('a', None),
        ('n', Some(b"c")) => ('n', None),
        ('n', Some(b"p")) => ('b', None),
        ('n', Some(b"d")) => ('o', None),
        ('n', Some(b"H")) => ('p', None),
        ('n', _) => return None,
        ('o', _) => ('R', argument),
        ('a', _) => ('V', argument),
        ('x', _) => ('x', None),
        ('p', _) => ('Q', None),
        ('w', _) => ('I', argument),
        ('A', _) => ('M', argument),
        ('R', _) => ('N', argument),
        ('L', _) => ('5', None),
        ('B', _) => ('7', argument),
        _ => (letter, argument),
    })
}

/// Takes the command line apart; the error is an exit code.
pub fn parse(arguments: Vec<Vec<u8>>) -> Result<Options, i32> {
    let short = "qvO:P:cr::l:Si:t:T:n:o:a:xU:pw:A:R:46LB:bkmNKHEQ:D:e:F";
    let tool = Tool { name: "wget", short, long: LONG, help: HELP, misuse: 2 };
    let mut grammar = tool.grammar();
    let refused = refused_names();
    refused.iter().for_each(|name| grammar.name(&format!("{name}[="), REFUSAL));
    let refuse = |option: String| {
        toolkit::complain("wget", format_args!("option {option} is not available in this sandbox"));
        2
    };
    let mut given = Vec::new();
    let mut urls = Vec::new();
    for found in grammar.scan(arguments.into_iter()) {
        let found = found.map_err(|fault| {
            usage(&fault.to_string());
            2
        })?;
        match found {
            Found::Operand(url) => urls.push(url),
            Found::Letter(letter, _) if "bkmNKHEQDeF".contains(letter) => {
                return Err(refuse(format!("-{letter}")));
            }
            // The letters and the long names are two tables: a letter may mean one thing in one, another in the other.
            Found::Letter(letter, argument) => {
                let shown = argument.as_deref().map(text).unwrap_or_default();
                let Some(option) = canonical(letter, argument) else {
                    usage(&format!("invalid option -- 'n{shown}'"));
                    return Err(2);
                };
                given.push(option);
            }
            Found::Name(at, argument) if at < LONG.len() => given.push((LONG[at].1, argument)),
            Found::Name(at, _) if at == LONG.len() => return Err(tool.answer(Refusal::Help)),
            Found::Name(at, _) if at == LONG.len() + 1 => return Err(tool.answer(Refusal::Version)),
            Found::Name(at, _) => return Err(refuse(format!("--{}", refused[at - LONG.len() - 2]))),
        }
    }
    let mut options = Options {
        tries: 20,
        level: 5,
        max_redirect: 20,
        wait_retry: 10,
        read_timeout: Some(Duration::from_secs(900)),
        urls: urls.iter().map(|url| text(url)).collect(),
        ..Options::default()
    };
    for (letter, argument) in given {
        options.set(letter, argument.unwrap_or_default()).map_err(|message| {
            toolkit::complain("wget", message);
            2
        })?;
    }
    options.check()
}

/// What the names that are refused have for a meaning; none of [`LONG`]'s letters.
const REFUSAL: u32 = u32::MAX - 2;

/// The long names that are refused, with their negations, unless those are understood.
fn refused_names() -> Vec<String> {
    let negated = REFUSED.iter().map(|name| format!("no-{name}"));
    let names = REFUSED.iter().map(|name| (*name).to_owned()).chain(negated);
    names.filter(|name| !LONG.iter().any(|(known, _)| known.trim_end_matches(['[', '=']) == name)).collect()
}

fn seconds(value: &[u8]) -> Result<f64, String> {
    let shown = text(value);
    let number: Option<f64> = shown.parse().ok().filter(|number| (0.0..1e9).contains(number));
    number.ok_or(format!("invalid time ‘{shown}’"))
}

fn number(value: &[u8]) -> Result<u64, String> {
    match value {
        b"inf" => Ok(0),
        value => text(value).parse().map_err(|_| format!("invalid number ‘{}’", text(value))),
    }
}

fn list(value: &[u8]) -> Vec<String> {
    text(value).split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

impl Options {
    fn set(&mut self, letter: char, value: Vec<u8>) -> Result<(), String> {
        let time = |value: &[u8]| {
            let seconds = seconds(value)?;
            Ok::<_, String>((seconds > 0.0).then(|| Duration::from_secs_f64(seconds)))
        };
        match letter {
            'q' => self.talk = Talk::Quiet,
            'v' => self.talk = Talk::Much,
            'a' => self.talk = Talk::Little,
            'O' => self.output = Some(value),
            'P' => self.prefix = value,
            'R' => self.log = Some((value, false)),
            'V' => self.log = Some((value, true)),
            'c' => self.resume = true,
            'r' => self.recursive = true,
            'Q' => self.requisites = true,
            'l' => self.level = usize::try_from(number(&value)?).unwrap_or(0),
            'b' => self.no_parent = true,
            '5' => self.relative = true,
            'd' => self.headers.push(value),
            'e' | 'h' => self.body = Some(Body::Data(value)),
            'f' | 'j' => self.body = Some(Body::File(value)),
            'g' => self.method = Some(text(&value).to_ascii_uppercase()),
            'S' => self.server_response = true,
            's' => self.spider = true,
            'i' => self.inputs.push(value),
            '7' => self.base = Some(text(&value)),
            't' => self.tries = number(&value)?,
            'T' => (self.connect_timeout, self.read_timeout) = (time(&value)?, time(&value)?),
            'k' => self.connect_timeout = time(&value)?,
            'm' => self.read_timeout = time(&value)?,
            'n' => self.no_clobber = true,
            'o' => self.no_directories = true,
            'x' => self.force_directories = true,
            'p' => self.no_host_directories = true,
            'u' => self.cut_dirs = usize::try_from(number(&value)?).unwrap_or(0),
            'U' => self.agent = Some(value),
            'w' => self.referer = Some(value),
            'y' => self.user = Some(text(&value)),
            'z' => self.password = Some(text(&value)),
            'A' => self.insecure = true,
            'B' => self.max_redirect = usize::try_from(number(&value)?).unwrap_or(0),
            'C' => self.content_disposition = true,
            'D' => self.content_on_error = true,
            'E' => self.load_cookies = Some(value),
            'F' => self.save_cookies = Some(value),
            'G' => self.keep_session = true,
            'H' => self.no_cookies = true,
            'I' => self.wait = seconds(&value)?,
            'J' => self.wait_retry = number(&value)?,
            'K' => self.retry_refused = true,
            'L' => self.retry_statuses = list(&value).iter().filter_map(|code| code.parse().ok()).collect(),
            'M' => self.accept.extend(list(&value)),
            'N' => self.reject.extend(list(&value)),
            '4' => self.ipv4 = true,
            '6' => self.ipv6 = true,
            // As things are anyway.
            '0' => {}
            'W' => self.no_cache = true,
            'X' => self.show_progress = true,
            'Y' if value.starts_with(b"dot") || value.starts_with(b"bar") => {}
            'Y' => return Err(format!("--progress: Invalid progress type ‘{}’.", text(&value))),
            'Z' => self.auth_at_once = true,
            '1' => self.limit_rate = Some(rate(&value)?),
            '2' => self.no_keep_alive = true,
            '3' => self.no_timestamps = true,
            letter => return Err(format!("unknown option '{letter}'")),
        }
        Ok(())
    }

    fn check(self) -> Result<Options, i32> {
        if self.urls.is_empty() && self.inputs.is_empty() {
            usage("missing URL");
            return Err(1);
        }
        let both = |what: &str| {
            toolkit::complain("wget", what);
            2
        };
        if self.spider && self.recursive {
            return Err(both("--spider and --recursive together are not available in this sandbox"));
        }
        if self.output.is_some() && self.no_clobber && self.recursive {
            return Err(both("Cannot specify both -nc and -O in recursive mode."));
        }
        Ok(self)
    }
}

fn rate(value: &[u8]) -> Result<u64, String> {
    let shown = text(value);
    let (digits, unit) = match shown.to_ascii_lowercase().chars().last() {
        Some('k') => (&shown[..shown.len() - 1], 1024.0),
        Some('m') => (&shown[..shown.len() - 1], 1024.0 * 1024.0),
        _ => (shown.as_str(), 1.0),
    };
    let number: Option<f64> = digits.parse().ok().filter(|number| *number > 0.0);
    number.map(|number| ((number * unit) as u64).max(1)).ok_or(format!("invalid rate ‘{shown}’"))
}
