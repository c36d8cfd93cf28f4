//! The formats of secrets that identify themselves.
//!
//! Each is on one line, so that a newline ends every one of them; blocks of private keys are in `keys.rs`, values with a
//! name in `named.rs`.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexSet};

use super::judge;

/// One kind of secret. If there is a group, that is the secret, else all of it.
pub(super) struct Shape {
    pub(super) whole: Regex,
    /// The beginning of one that the end of the output has cut off.
    pub(super) cut: Option<Regex>,
    looks: Looks,
}

/// Additional conditions for a secret.
#[derive(Clone, Copy)]
enum Looks {
    /// It is not all lower case, as hyphenated words are.
    NotWords,
    /// It is not a placeholder, and does not describe itself.
    NotAPlaceholder,
    /// It looks random.
    Random,
    /// It looks random, or like what people choose.
    Chosen,
    /// It stands where only credentials stand: no name, path or placeholder.
    Credential,
    /// It is a list of cookies, one of which looks random.
    Cookies,
    /// It contains the word PRIVATE, in any of its three base64 alignments.
    PrivateKey,
}

impl Shape {
    /// Returns whether what has this format is a secret.
    pub(super) fn accepts(&self, secret: &[u8]) -> bool {
        if let Looks::Cookies = self.looks {
            return secret.split(|byte| *byte == b';').any(is_session);
        }
        let secret = &secret[..secret.len().min(judge::LOOKED_AT)];
        match self.looks {
            Looks::NotWords => {
                secret.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
                    && !judge::placeholder(secret)
            }
            Looks::NotAPlaceholder => !judge::placeholder(secret) && !judge::stands_for_one(secret),
            Looks::PrivateKey => [&b"UFJJVkFUR"[..], b"BSSVZBVE", b"QUklWQVRF"]
                .iter()
                .any(|word| memchr::memmem::find(secret, word).is_some()),
            Looks::Chosen => judge::literal(judge::Kind::Password, secret),
            Looks::Random => !judge::placeholder(secret) && judge::random(secret, 12),
            Looks::Credential => judge::credential(secret),
            Looks::Cookies => false,
        }
    }
}

/// Returns whether a cookie's value looks like a session's.
fn is_session(cookie: &[u8]) -> bool {
    let value = cookie.iter().position(|byte| *byte == b'=').map_or(&[][..], |at| &cookie[at + 1..]);
    judge::bare(value.trim_ascii())
}

/// Tokens that identify themselves: their prefix, the characters that follow, and their minimum number.
const TOKENS: &[(&str, &str, usize)] = &[
    // Keys of model providers.
    ("sk-", r"[A-Za-z0-9_\-]", 20),
    ("xai-", "[A-Za-z0-9]", 40),
    ("gsk_", "[A-Za-z0-9]", 40),
    ("hf_", "[A-Za-z0-9]", 30),
    ("r8_", "[A-Za-z0-9]", 36),
    ("AIza", r"[A-Za-z0-9_\-]", 30),
    ("nvapi-", r"[A-Za-z0-9_\-]", 40),
    ("pplx-", "[A-Za-z0-9]", 40),
    // Cloud keys.
    ("(?:AKIA|ASIA|ABIA|ACCA)", "[A-Z0-9]", 16),
    (r"ya29\.", r"[A-Za-z0-9_\-]", 20),
    ("GOCSPX-", r"[A-Za-z0-9_\-]", 24),
    ("do[opr]_v1_", "[a-f0-9]", 32),
    (r"hv[sbr]\.", r"[A-Za-z0-9_\-]", 24),
    ("dapi", "[a-f0-9]", 32),
    ("sbp_", "[a-f0-9]", 32),
    (r"pscale_(?:tkn|pw|oauth)_", r"[A-Za-z0-9_.\-]", 32),
    ("NRAK-", "[A-Z0-9]", 27),
    ("glsa_", "[A-Za-z0-9_]", 32),
    ("sntry[su]_", "[A-Za-z0-9+/=_]", 40),
    ("AccountKey=", "[A-Za-z0-9+/=]", 20),
    // Tokens of code hosts and registries.
    ("gh[pousr]_", "[A-Za-z0-9]", 30),
    ("github_pat_", "[A-Za-z0-9_]", 20),
    ("gl(?:pat|dt|rt|ptt|ft|soat|cbt)-", r"[A-Za-z0-9_.\-]", 20),
    ("ATBB", "[A-Za-z0-9]", 24),
    ("AT[AC]TT3x", r"[A-Za-z0-9_=\-]", 60),
    ("npm_", "[A-Za-z0-9]", 30),
    ("rubygems_", "[a-f0-9]", 32),
    ("dckr_pat_", r"[A-Za-z0-9_\-]", 20),
    ("pypi-", r"[A-Za-z0-9_\-]", 40),
    // Payments and shops.
    ("[sr]k_(?:live|test)_", "[A-Za-z0-9]", 16),
    ("whsec_", "[A-Za-z0-9+/=]", 24),
    ("sq0(?:csp|atp)-", r"[A-Za-z0-9_\-]", 22),
    ("shp(?:at|ca|pa|ss)_", "[A-Fa-f0-9]", 32),
    // Mail, chat and documents. A webhook's address is all that is needed to write to it.
    (r"SG\.", r"[A-Za-z0-9_.\-]", 60),
    ("xkeysib-", r"[a-f0-9A-Za-z\-]", 60),
    (r"xox[abeoprs]-", r"[A-Za-z0-9\-]", 10),
    ("xapp-", r"[A-Za-z0-9\-]", 20),
    (r"hooks\.slack\.com/(?:services|workflows|triggers)/", "[A-Za-z0-9/]", 30),
    (r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]+/", r"[A-Za-z0-9_\-]", 40),
    ("(?:bot)?[0-9]{8,10}:AA", r"[A-Za-z0-9_\-]", 32),
    ("lin_(?:api|oauth)_", "[A-Za-z0-9]", 32),
    ("ntn_", "[A-Za-z0-9]", 40),
    ("fig[du]_", r"[A-Za-z0-9_\-]", 32),
    ("PMAK-", r"[a-f0-9\-]", 50),
    // A key of the encryption tool age.
    ("AGE-SECRET-KEY-1", "[A-Z0-9]", 50),
];

/// Secrets identified by their context; the group is the secret.
const SURROUNDED: &[(&str, Looks)] = &[
    // scheme://user:PASSWORD@host
    (
        r##"(?i)\b[a-z][a-z0-9+.\-]*://[^\s/:@"'`<>(){}\[\],;|\\]*:([^\s/@"'`<>()\[\],;|\\]+)@[a-z0-9\[{$%]"##,
        Looks::NotAPlaceholder,
    ),
    (
        r#"(?i)\bauthorization["']?[ \t]*[:=][ \t]*["']?(?:bearer|basic|token)[ \t]+([a-z0-9._~+/=\-]{16,})"#,
        Looks::Credential,
    ),
    (r"(?i)\b(?:bearer|basic)[ \t]+([a-z0-9._~+/=\-]{12,})", Looks::Random),
    // With any other scheme, or none: Authorization: token SECRET
    (
        r#"(?i)\bauthorization["']?[ \t]*[:=][ \t]*["']?(?:[a-z][a-z0-9_\-]{0,30}[ \t]+)?([a-z0-9._~+/=\-]{16,})"#,
        Looks::Random,
    ),
    (
        r#"(?i)\bcookie["']?(?:[ \t]*[:=]|[ \t])[ \t]*["']?([a-z0-9_.\-]{1,100}=[^\r\n"'`]{1,4096})"#,
        Looks::Cookies,
    ),
    // curl -u NAME:PASSWORD
    (r#"[ \t](?:-u|--user)[ =]["']?[A-Za-z0-9._@+\-]+:([^\s"'@:]+)"#, Looks::Chosen),
    // sshpass -p PASSWORD, mysql -pPASSWORD
    (r#"\bsshpass[ \t]+(?:-[a-zA-Z]+[ \t]+){0,4}?-p[ \t]*["']?([^\s"']{1,200})"#, Looks::NotAPlaceholder),
    (r#"\b(?:mysql|mariadb)[a-z_\-]*[ \t][^\r\n|;&]{0,200}?-p["']?([^\s"']{1,200})"#, Looks::Chosen),
    // .netrc, in one line and in several.
    (
        r#"(?m)(?:\bmachine[ \t]+[^\s]{1,200}|^[ \t]*default)[ \t]+login[ \t]+[^\s]{1,200}[ \t]+password[ \t]+["']?([^\s"']{1,200})"#,
        Looks::NotAPlaceholder,
    ),
    (r"(?i)\blogin[ \t]+[^\s]+[ \t]+password[ \t]+([^\s]+)", Looks::Chosen),
    (r"(?m)^[ \t]*password[ \t]+([^\s]{1,200})[ \t]*\r?$", Looks::Chosen),
];

/// All formats, and one search that tells which of them occur at all: usually none.
pub(super) struct Shapes {
    all: Vec<Shape>,
    at_a_glance: RegexSet,
}

impl Shapes {
    /// Returns those that occur in the text.
    pub(super) fn present_in<'a>(&'a self, text: &[u8]) -> impl Iterator<Item = &'a Shape> + use<'a> {
        self.at_a_glance.matches(text).into_iter().map(|number| &self.all[number])
    }

    /// Returns where one of them begins that the end of the text has cut off.
    pub(super) fn cut_at(&self, text: &[u8]) -> Option<usize> {
        let cuts = self.all.iter().filter_map(|shape| shape.cut.as_ref());
        cuts.filter_map(|cut| Some(cut.find(text)?.start())).min()
    }
}

/// All shapes.
pub(super) static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let tokens = TOKENS.iter().map(|(beginning, class, least)| {
        let whole = format!(r"\b{beginning}{class}{{{least},}}");
        (whole, Some(format!(r"\b{beginning}{class}*$")), Looks::NotWords)
    });
    // JSON web tokens: two JSON objects and a signature.
    let web_token = (
        r"\beyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*".to_owned(),
        Some(r"\beyJ[A-Za-z0-9_\-]*(?:\.(?:e(?:y(?:J[A-Za-z0-9_\-]*)?)?)?)?$".to_owned()),
        Looks::NotWords,
    );
    // A private key in base64, as Kubernetes has them: it begins with what "-----BEGI" becomes.
    let in_base64 = (
        r"\bLS0tLS1CRUdJ[A-Za-z0-9+/=]{40,}".to_owned(),
        Some(r"\bLS0tLS1CRUdJ[A-Za-z0-9+/=]*$".to_owned()),
        Looks::PrivateKey,
    );
    let surrounded = SURROUNDED.iter().map(|(whole, looks)| ((*whole).to_owned(), None, *looks));
    let texts: Vec<(String, Option<String>, Looks)> =
        tokens.chain([web_token, in_base64]).chain(surrounded).collect();
    let at_a_glance = RegexSet::new(texts.iter().map(|(whole, _, _)| bytewise(whole)));
    Shapes {
        all: texts
            .iter()
            .map(|(whole, cut, looks)| Shape {
                whole: pattern(whole),
                cut: cut.as_deref().map(pattern),
                looks: *looks,
            })
            .collect(),
        at_a_glance: at_a_glance.expect("every shape is tried by a test"),
    }
});

/// Matches bytes, not characters: output may be anything, and it is much faster.
fn bytewise(text: &str) -> String {
    format!("(?-u){text}")
}

fn pattern(text: &str) -> Regex {
    Regex::new(&bytewise(text)).expect("every shape is tried by a test")
}
