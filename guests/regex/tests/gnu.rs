//! Patterns of GNU's syntaxes, and what GNU grep 3.8 and sed 4.9 find with them.

use wardian_regex::{Fit, Options, Regex, Syntax};

fn found(syntax: Syntax, pattern: &str, text: &str) -> Option<String> {
    let regex = Regex::new(pattern.as_bytes(), &Options::new(syntax)).expect("it compiles");
    let (from, to) = regex.find_at(text.as_bytes(), 0)?;
    Some(text[from..to].to_owned())
}

/// As `grep -o` printed them.
#[test]
fn basic_patterns_find_what_greps_do() {
    for (pattern, text, wanted) in [
        (r"a\{2,3\}", "caaaat", Some("aaa")),
        (r"\(a\|ab\)\(c\|bcd\)", "abcd", Some("abcd")),
        (r"a\+b\?", "caab", Some("aab")),
        (r"*a", "x*a", Some("*a")),
        (r"\(*x\)", "*x", Some("*x")),
        (r"a^b$c", "a^b$c", Some("a^b$c")),
        (r"x\|^ab", "cab", None),
        (r"\(ab$\|c\)", "xab", Some("ab")),
        (r"a+b", "aab a+b", Some("a+b")),
        (r"\<is\>", "this is", Some("is")),
        (r"\bé", "aé é", Some("é")),
        (r"\w\W", "é-", Some("é-")),
        (r"\(.\)\1", "abccd", Some("cc")),
        (r"\(a*\)b\1", "aabaa", Some("aabaa")),
        (r"\(a*\)\+", "baa", Some("")),
        (r"[]a]*", "a]b", Some("a]")),
        (r"[a\]*b", r"a\b", Some(r"a\b")),
        (r"[[:digit:][:space:]-]*x", "a1 -x", Some("1 -x")),
    ] {
        assert_eq!(found(Syntax::Basic, pattern, text).as_deref(), wanted, "{pattern} in {text}");
    }
}

#[test]
fn extended_patterns_find_what_greps_do() {
    for (pattern, text, wanted) in [
        ("a|ab|abc", "xabcd", Some("abc")),
        ("*a", "*a", Some("a")),
        ("a)", "a)", Some("a)")),
        ("a{1", "a{1", Some("a{1")),
        ("a{,2}b", "aaab", Some("aab")),
        ("()", "x", Some("")),
        (r"(a|b)\1", "abb", Some("bb")),
        (r"^(.+)\1$", "abab", Some("abab")),
        (r"(^|x)a", "xa", Some("xa")),
        (r"(a|b)*c|(a|ab)*c", "abc", Some("abc")),
        (r"\ba\B", "a ab", Some("a")),
    ] {
        assert_eq!(found(Syntax::Extended, pattern, text).as_deref(), wanted, "{pattern} in {text}");
    }
}

/// As `sed -E 's/…/[\1][\2][\3]/'` printed them.
#[test]
fn groups_are_seds() {
    for (pattern, text, wanted) in [
        ("(a*)(b|abc)", "abc", ["", "abc", ""]),
        ("(.*)o(.*)", "foo boo", ["foo bo", "", ""]),
        ("([a-z]+) ([0-9]+)", "ab 12", ["ab", "12", ""]),
        ("(a)|(b)", "b", ["", "b", ""]),
        ("((a)|b)*", "ab", ["b", "a", ""]),
        ("(x)?(y)", "y", ["", "y", ""]),
        (r"(.)(.)\2\1", "xabba", ["a", "b", ""]),
        ("^(.*)/([^/]*)$", "/usr/bin/env", ["/usr/bin", "env", ""]),
    ] {
        let regex = Regex::new(pattern.as_bytes(), &Options::new(Syntax::Extended)).expect("it compiles");
        let mut groups = Vec::new();
        assert!(regex.captures_at(text.as_bytes(), 0, &mut groups));
        let group =
            |index: usize| groups.get(index).copied().flatten().map_or("", |(from, to)| &text[from..to]);
        assert_eq!([group(1), group(2), group(3)], wanted, "{pattern} in {text}");
    }
}

#[test]
fn errors_are_gnus() {
    for (syntax, strict, pattern, wanted) in [
        (Syntax::Basic, false, "[a", "Unmatched [, [^, [:, [., or [="),
        (Syntax::Basic, false, r"\(", r"Unmatched ( or \("),
        (Syntax::Basic, false, r"a\)", r"Unmatched ) or \)"),
        (Syntax::Basic, false, r"a\{1", r"Unmatched \{"),
        (Syntax::Basic, false, r"a\{1a\}", r"Invalid content of \{\}"),
        (Syntax::Basic, false, r"\(\1\)", "Invalid back reference"),
        (Syntax::Basic, false, "[b-a]", "Invalid range end"),
        (Syntax::Basic, false, "[[:foo:]]", "Invalid character class name"),
        (Syntax::Basic, false, "[[.ab.]]", "Invalid collation character"),
        (Syntax::Basic, false, "[:space:]", "character class syntax is [[:space:]], not [:space:]"),
        (Syntax::Basic, false, r"a\", "Trailing backslash"),
        (Syntax::Extended, false, "a{2,1}", r"Invalid content of \{\}"),
        (Syntax::Extended, false, "a{99999}", "Regular expression too big"),
        (Syntax::Extended, true, "a)", r"Unmatched ) or \)"),
        (Syntax::Extended, true, "*a", "Invalid preceding regular expression"),
        (Syntax::Basic, true, r"\{1\}", "Invalid preceding regular expression"),
    ] {
        let options = Options { strict, ..Options::new(syntax) };
        let error = Regex::new(pattern.as_bytes(), &options).expect_err("it is wrong");
        assert_eq!(error, wanted, "{pattern}");
    }
}

/// What `expr` said.
#[test]
fn loose_brackets_hold_what_the_c_library_takes() {
    for (pattern, text, wanted) in [
        ("[b-a]", "a", None),
        ("[xb-a]", "x", Some((0, 1))),
        ("[:a:]*", "a:b", Some((0, 2))),
        (r"\{1\}", "{1}", Some((0, 3))),
        (r"a\|ab", "abab", Some((0, 2))),
        ("b", "ab", None),
        ("", "ab", Some((0, 0))),
        (r"\(a\)b\1", "aba", Some((0, 3))),
    ] {
        let options = Options { loose_brackets: true, fit: Fit::Start, ..Options::new(Syntax::Basic) };
        let regex = Regex::new(pattern.as_bytes(), &options).expect("it compiles");
        assert_eq!(regex.find_at(text.as_bytes(), 0), wanted, "{pattern} in {text}");
    }
}

/// What `find` and `ptx` did.
#[test]
fn emacs_has_no_classes() {
    for (pattern, text, wanted) in [
        ("[[:digit:]]", "5", None),
        ("[[:digit:]]", "d]", Some((0, 2))),
        ("[b-a]", "a", None),
        ("a+b?", "xaab", Some((1, 4))),
        ("a.b", "a\nb", None),
        ("a[^x]b", "a\nb", Some((0, 3))),
        ("^b", "a\nb", Some((2, 3))),
    ] {
        let options = Options { multi_line: true, ..Options::new(Syntax::Emacs) };
        let regex = Regex::new(pattern.as_bytes(), &options).expect("it compiles");
        assert_eq!(regex.find_at(text.as_bytes(), 0), wanted, "{pattern} in {text}");
    }
}

/// The lines that `grep` printed, by searching them all at once.
#[test]
fn lines_are_found_in_a_text_of_many() {
    let text = "one two\nétwo\ntwo é\n\nthree\nétrois-two\n";
    for (pattern, fit, wanted) in [
        ("two", Fit::Anywhere, vec!["one two", "étwo", "two é", "étrois-two"]),
        ("two", Fit::Word, vec!["one two", "two é", "étrois-two"]),
        ("t.*e*", Fit::Line, vec!["two é", "three"]),
        ("^$", Fit::Anywhere, vec![""]),
        (r"\bé", Fit::Anywhere, vec!["étwo", "two é", "étrois-two"]),
        (r"\([a-z]\)\1", Fit::Anywhere, vec!["three"]),
        ("[^a-z]t", Fit::Anywhere, vec!["one two", "étwo", "étrois-two"]),
        ("e[^x]*t", Fit::Anywhere, vec!["one two"]),
    ] {
        let options = Options { lines: Some(b'\n'), fit, ..Options::new(Syntax::Basic) };
        let regex = Regex::new(pattern.as_bytes(), &options).expect("it compiles");
        let (mut lines, mut at) = (Vec::new(), 0);
        while at < text.len()
            && let Some(place) = regex.find_line(text.as_bytes(), at).filter(|place| *place < text.len())
        {
            let from = text[..place].rfind('\n').map_or(0, |before| before + 1);
            let to = place + text[place..].find('\n').expect("all lines end");
            lines.push(&text[from..to]);
            at = to + 1;
        }
        assert_eq!(lines, wanted, "{pattern}");
    }
}

#[test]
fn a_pattern_that_would_take_years_is_given_up() {
    let regex = Regex::new(br"(a*)*(a*)*(a*)*\1b", &Options::new(Syntax::Extended)).expect("it compiles");
    assert_eq!(regex.find_at(&[b"a".repeat(5000), b"c".to_vec(), b"b?".repeat(9)].concat(), 0), None);
    assert!(regex.gave_up());
}

#[test]
fn hostile_patterns_are_errors_or_fast() {
    let deep = "(".repeat(10_000);
    let stars = format!("a{}", "*".repeat(100_000));
    let bounds = format!("a{}", "{2}".repeat(10_000));
    for pattern in
        [deep.as_str(), &bounds, "((((a{999}){999}){999}){999})", "[", "\\", "(a{9}){9}{9}{9}{9}{9}{9}{9}"]
    {
        assert!(Regex::new(pattern.as_bytes(), &Options::new(Syntax::Extended)).is_err(), "{pattern:.20}");
    }
    assert!(Regex::new(stars.as_bytes(), &Options::new(Syntax::Extended)).is_ok());
}
