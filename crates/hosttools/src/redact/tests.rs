//! What is taken out, whole and in pieces.

use proptest::prelude::*;

use super::{REDACTED, Redactor};

/// A made-up secret of every shape; none opens anything.
const SAMPLES: &[&str] = &[
    "sk-abcdefghijklmnopqrstuvwx",
    "sk-ant-api03-abcdefghijklmnopqrstuvwx_yz",
    "xai-abcdefghijklmnopqrstuvwx",
    "gsk_abcdefghijklmnopqrstuvwx",
    "hf_abcdefghijklmnopqrstuvwx",
    "r8_abcdefghijklmnopqrstuvwx",
    "AIzaabcdefghijklmnopqrstuvwxyz-_012345678",
    "AKIAABCDEFGHIJKLMNOP",
    "ASIAABCDEFGHIJKLMNOP",
    "ya29.abcdefghijklmnopqrstuvwx",
    "dop_v1_0123456789abcdef0123456789abcdef",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "gho_abcdefghijklmnopqrstuvwxyz0123456789",
    "ghs_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_abcdefghijklmnopqrst_0123456789",
    "glpat-abcdefghijklmnopqrst",
    "ATBBabcdefghijklmnopqrstuvwx",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "pypi-abcdefghijklmnopqrstuvwxyz0123456789abcdef",
    "sk_live_abcdefghijklmnop",
    "rk_test_abcdefghijklmnop",
    "xoxb-0123456789-abcdef",
    "xapp-0123456789-abcdefghijk",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
];

fn redactor() -> Redactor {
    Redactor::new(["correct horse", "horse battery", "line one\nline two", "aXaXa"]).unwrap()
}

fn key(lines: usize) -> String {
    let body = format!("{}\n", "MIIEabc+/".repeat(7)).repeat(lines);
    format!("-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----")
}

/// The text in pieces that end at these places.
fn streamed(text: &[u8], cuts: &[usize], was_cut: bool) -> Vec<u8> {
    let redactor = redactor();
    let mut stream = redactor.stream();
    let mut shown = Vec::new();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.sort_unstable();
    let mut from = 0;
    for cut in cuts {
        shown.extend(stream.push(&text[from..cut]));
        from = cut;
    }
    shown.extend(stream.push(&text[from..]));
    shown.extend(stream.finish(was_cut));
    shown
}

#[test]
fn every_shape_is_taken_out_and_what_is_around_it_stays() {
    for sample in SAMPLES {
        for (before, after) in [("", ""), ("a ", " b"), ("(", ")"), ("x=\"", "\"\n"), ("url/", "?q")] {
            let shown = redactor().text(&format!("{before}{sample}{after}"));
            assert_eq!(shown, format!("{before}{REDACTED}{after}"), "{sample}");
        }
    }
}

#[test]
fn values_are_taken_out_by_their_names() {
    for (text, shown) in [
        ("password=hunter2", "password=[REDACTED]"),
        ("PASSWORD = hunter2 # x", "PASSWORD = [REDACTED] # x"),
        ("db_password='two words' x", "db_password='[REDACTED]' x"),
        ("\"api_key\": \"abc\", \"x\": 1", "\"api_key\": \"[REDACTED]\", \"x\": 1"),
        ("aws_secret_access_key = wJalrXU/tn", "aws_secret_access_key = [REDACTED]"),
        ("secret: longer-than-eight", "secret: [REDACTED]"),
        ("--password hunter2 --user me", "--password [REDACTED] --user me"),
        ("https://me:hunter2@example.org/x", "https://me:[REDACTED]@example.org/x"),
        ("Authorization: Bearer abcdefghijklmnopq", "Authorization: Bearer [REDACTED]"),
        ("a?token=abc&b=c", "a?token=[REDACTED]&b=c"),
        ("AccountKey=abcdefghijklmnopqrstuv==;x", "[REDACTED];x"),
    ] {
        assert_eq!(redactor().text(text), shown);
    }
}

#[test]
fn what_is_no_secret_stays() {
    for text in [
        "",
        "the password is not here",
        "def check(password: str) -> bool:",
        "if password == other:",
        "sk-short",
        "task-force-of-many-long-words-in-a-row",
        "https://example.org:8080/path@x",
        "a token, a secret; passwords",
        "eyJhbGciOi is only half",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    ] {
        assert_eq!(redactor().text(text), text);
    }
}

#[test]
fn configured_values_are_taken_out_also_where_they_overlap() {
    for (text, shown) in [
        ("a correct horse b", "a [REDACTED] b"),
        ("a correct horse battery b", "a [REDACTED] b"),
        ("aXaXaXa!", "[REDACTED]!"),
        ("aXaXaaXaXa", "[REDACTED][REDACTED]"),
        ("line one\nline two\n", "[REDACTED]\n"),
        ("password=correct horse battery", "password=[REDACTED]"),
    ] {
        assert_eq!(redactor().text(text), shown);
    }
    assert!(Redactor::new(["abc"]).is_err());
}

#[test]
fn private_keys_are_taken_out_whole_or_begun() {
    let key = key(20);
    assert_eq!(redactor().text(&format!("a\n{key}\nb")), format!("a\n{REDACTED}\nb"));
    let begun: String = key.lines().take(4).map(|line| format!("{line}\n")).collect();
    assert_eq!(redactor().text(&format!("a\n{begun}b\n")), format!("a\n{REDACTED}b\n"));
    let on_one_line = key.replace('\n', "\\n");
    assert_eq!(redactor().text(&format!("k: \"{on_one_line}\"")), format!("k: \"{REDACTED}\""));
    assert_eq!(redactor().text("grep 'BEGIN PRIVATE KEY'\nnext"), "grep 'BEGIN PRIVATE KEY'\nnext");
    assert_eq!(
        redactor().text("-----BEGIN PRIVATE KEY-----\nis how it begins\n"),
        format!("{REDACTED}\nis how it begins\n")
    );
}

#[test]
fn half_a_secret_at_a_cut_end_goes_too() {
    for sample in SAMPLES.iter().chain(&["correct horse", "line one\nline two", "aXaXa"]) {
        for end in sample.len().min(12)..sample.len() {
            let Some(half) = sample.get(..end.max(4)) else { continue };
            let shown = streamed(format!("before {half}").as_bytes(), &[3, 9], true);
            assert_eq!(String::from_utf8_lossy(&shown), format!("before {REDACTED}"), "{half}");
        }
    }
    assert_eq!(streamed(b"before the end", &[4], true), b"before the end");
}

#[test]
fn lines_are_passed_on_as_they_come() {
    let mut stream = redactor().stream();
    assert_eq!(stream.push(b"one\ntw"), b"one\n");
    assert_eq!(stream.push(b"o\n"), b"two\n");
    assert_eq!(stream.push(b"line one\n"), b"");
    assert_eq!(stream.push(b"line three\n"), b"line one\nline three\n");
    assert_eq!(stream.push(b"-----BEGIN PRIVATE KEY-----\n"), b"");
    assert_eq!(stream.push(b"MII\n-----END PRIVATE KEY-----\nx\n"), format!("{REDACTED}\nx\n").as_bytes());
    let long = vec![b'x'; 100 << 10];
    let shown = stream.push(&long);
    assert!(!shown.is_empty() && shown.len() < long.len(), "{}", shown.len());
    assert_eq!(shown.len() + stream.finish(false).len(), long.len());
}

#[test]
fn arguments_named_by_the_word_before_are_taken_out() {
    let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
    let shown = redactor()
        .words(&words("x --token abc --user me password=y ghp_abcdefghijklmnopqrstuvwxyz0123456789"));
    assert_eq!(shown, words("x --token [REDACTED] --user me password=[REDACTED] [REDACTED]"));
}

/// Lines without an end that are secrets throughout, and keys that only begin, byte by byte: were all of it looked at for
/// each of them, this would not come to an end.
#[test]
fn small_pieces_of_something_long_are_not_looked_at_over_and_over() {
    for piece in
        ["password=", "-----BEGIN PRIVATE KEY-----\n", "MIIEabc+/MIIEabc+/MIIEabc+/MIIEabc+/MIIEabc+/\n"]
    {
        let text = format!("-----BEGIN PRIVATE KEY-----\n{}", piece.repeat((256 << 10) / piece.len()));
        let cuts: Vec<usize> = (0..text.len()).collect();
        let pieces = streamed(text.as_bytes(), &cuts, false);
        assert_eq!(String::from_utf8_lossy(&pieces), redactor().text(&text), "{piece}");
    }
}

fn text() -> impl Strategy<Value = String> {
    let mut pieces: Vec<String> = SAMPLES.iter().map(|sample| (*sample).to_owned()).collect();
    let more = [
        "correct horse",
        " battery",
        "horse",
        "line one\n",
        "line two",
        "aXaXa",
        "Xa",
        "password=",
        "token: ",
        "\n",
        "\n\n",
        " ",
        "\"",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "é",
        "word",
        "=",
        "\r\n",
        "://a:b@",
        "--secret ",
        "MIIEabc+/MIIEabc+/MIIEabc+/MIIEabc+/MIIEabc+/\n",
    ];
    pieces.extend(more.map(str::to_owned));
    pieces.push(key(3));
    prop::collection::vec(prop::sample::select(pieces), 0..14).prop_map(|pieces| pieces.concat())
}

/// Pieces of keys that are longer than any is held back for.
fn long_keys() -> impl Strategy<Value = String> {
    let body = format!("{}\n", "MIIEabc+/".repeat(7)).repeat(150);
    let pieces = [
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n".to_owned(),
        "-----END PGP PRIVATE KEY BLOCK-----\n".to_owned(),
        body.clone(),
        body.trim_end().to_owned(),
        "\n\n".to_owned(),
        "a word\n".to_owned(),
        "password=x ghp_abcdefghijklmnopqrstuvwxyz0123456789\n".to_owned(),
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 1..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn pieces_make_no_difference_to_long_keys(
        text in long_keys(),
        cuts in prop::collection::vec(any::<usize>(), 0..30),
    ) {
        let whole = redactor().bytes(text.as_bytes());
        let pieces = streamed(text.as_bytes(), &cuts, false);
        prop_assert_eq!(String::from_utf8_lossy(&pieces), String::from_utf8_lossy(&whole));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// However output is cut into pieces, the same is taken out of it.
    #[test]
    fn pieces_make_no_difference(text in text(), cuts in prop::collection::vec(any::<usize>(), 0..10)) {
        let whole = redactor().bytes(text.as_bytes());
        let pieces = streamed(text.as_bytes(), &cuts, false);
        prop_assert_eq!(String::from_utf8_lossy(&pieces), String::from_utf8_lossy(&whole));
    }

    #[test]
    fn nothing_configured_is_left(text in text()) {
        let shown = redactor().text(&text);
        for secret in ["correct horse", "horse battery", "line one\nline two", "aXaXa"] {
            prop_assert!(!shown.contains(secret), "{}", shown);
        }
    }
}
