//! What secrets look like.
//!
//! Each is one line of text, so that a newline is the end of every one of them; blocks of private keys are in `keys.rs`.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexSet};

/// One kind of secret. Where there is a group, that is the secret, else all of it.
pub(super) struct Shape {
    pub(super) whole: Regex,
    /// The beginning of one that the end of the output has cut off.
    pub(super) cut: Option<Regex>,
}

/// Tokens that say what they are: how they begin, what they go on with, and how much of that at least.
const TOKENS: &[(&str, &str, usize)] = &[
    // Keys of model providers.
    ("sk-", r"[A-Za-z0-9_\-]", 20),
    ("xai-", "[A-Za-z0-9]", 20),
    ("gsk_", "[A-Za-z0-9]", 20),
    ("hf_", "[A-Za-z0-9]", 20),
    ("r8_", "[A-Za-z0-9]", 20),
    ("AIza", r"[A-Za-z0-9_\-]", 30),
    // Cloud keys.
    ("(?:AKIA|ASIA|ABIA|ACCA)", "[A-Z0-9]", 16),
    (r"ya29\.", r"[A-Za-z0-9_\-]", 20),
    ("dop_v1_", "[a-f0-9]", 32),
    ("AccountKey=", "[A-Za-z0-9+/=]", 20),
    // Tokens of code hosts and registries.
    ("gh[pousr]_", "[A-Za-z0-9]", 30),
    ("github_pat_", "[A-Za-z0-9_]", 20),
    ("gl(?:pat|dt|rt|ptt|ft|soat|cbt)-", r"[A-Za-z0-9_.\-]", 20),
    ("ATBB", "[A-Za-z0-9]", 24),
    ("npm_", "[A-Za-z0-9]", 30),
    ("pypi-", r"[A-Za-z0-9_\-]", 40),
    // Payments and chat.
    ("[sr]k_(?:live|test)_", "[A-Za-z0-9]", 16),
    (r"xox[abeoprs]-", r"[A-Za-z0-9\-]", 10),
    ("xapp-", r"[A-Za-z0-9\-]", 20),
];

/// What stands before a value that must not be seen.
const NAMES: &str = concat!(
    r"(?:password|passwd|passphrase|pwd|secret|token|credentials?",
    r"|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|account[_-]?key|encryption[_-]?key)"
);

/// All shapes, and one look that says which of them are there at all: mostly none.
pub(super) struct Shapes {
    all: Vec<Shape>,
    at_a_glance: RegexSet,
}

impl Shapes {
    /// Those that are somewhere in the text.
    pub(super) fn present_in<'a>(&'a self, text: &[u8]) -> impl Iterator<Item = &'a Shape> + use<'a> {
        self.at_a_glance.matches(text).into_iter().map(|number| &self.all[number])
    }

    /// Where one of them begins that the end of the text has cut off.
    pub(super) fn cut_at(&self, text: &[u8]) -> Option<usize> {
        let cuts = self.all.iter().filter_map(|shape| shape.cut.as_ref());
        cuts.filter_map(|cut| Some(cut.find(text)?.start())).min()
    }
}

/// All shapes.
pub(super) static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let tokens = TOKENS.iter().map(|(beginning, class, least)| {
        (format!(r"\b{beginning}{class}{{{least},}}"), Some(format!(r"\b{beginning}{class}*$")))
    });
    // JSON web tokens: two JSON objects and a signature.
    let web_token = (
        r"\beyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*".to_owned(),
        Some(r"\beyJ[A-Za-z0-9_\-]*(?:\.(?:e(?:y(?:J[A-Za-z0-9_\-]*)?)?)?)?$".to_owned()),
    );
    let named = [
        // scheme://user:PASSWORD@host
        r"(?i)\b[a-z][a-z0-9+.\-]*://[^\s/:@]*:([^\s/@]+)@".to_owned(),
        r"(?i)\b(?:bearer|basic)[ \t]+([a-z0-9._~+/=\-]{16,})".to_owned(),
        // password=VALUE, "password" = "VALUE"
        format!(r#"(?i){NAMES}["']?[ \t]*=[ \t]*(?:"([^"\r\n]+)|'([^'\r\n]+)|([^\s"'=,;&][^\s"',;&]*))"#),
        // "password": "VALUE", password: VALUE (a type or a word in a sentence is shorter)
        format!(r#"(?i){NAMES}["']?[ \t]*:[ \t]*(?:"([^"\r\n]+)|'([^'\r\n]+)|([^\s"',;&]{{8,}}))"#),
        // --password VALUE
        format!(r#"(?i)--?{NAMES}[ \t]+(?:"([^"\r\n]+)|'([^'\r\n]+)|([^\s"'\-][^\s"']*))"#),
    ];
    let texts: Vec<(String, Option<String>)> =
        tokens.chain([web_token]).chain(named.into_iter().map(|text| (text, None))).collect();
    let at_a_glance = RegexSet::new(texts.iter().map(|(whole, _)| bytewise(whole)));
    Shapes {
        all: texts
            .iter()
            .map(|(whole, cut)| Shape { whole: pattern(whole), cut: cut.as_deref().map(pattern) })
            .collect(),
        at_a_glance: at_a_glance.expect("every shape is tried by a test"),
    }
});

/// By bytes, not characters: output may be anything, and it is a lot faster.
fn bytewise(text: &str) -> String {
    format!("(?-u){text}")
}

fn pattern(text: &str) -> Regex {
    Regex::new(&bytewise(text)).expect("every shape is tried by a test")
}
