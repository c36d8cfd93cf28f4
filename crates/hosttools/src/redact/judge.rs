//! Decides whether a value after a name like `password` is a secret, or code, a placeholder, a path or a word.
//!
//! Agents edit files based on output: code that is changed in the output gets broken. So a value counts as a secret only
//! if it looks like one: random, or like a password chosen by a person.

/// The kind of name before a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `password` and the like: people choose those, so they are short.
    Password,
    /// Tokens and keys: machines generate those.
    Token,
}

/// The minimum number of characters that may look random.
pub(super) const SHORTEST_QUOTED: usize = 10;
pub(super) const SHORTEST_BARE: usize = 16;
/// Of a longer value only this much is examined.
pub(super) const LOOKED_AT: usize = 128;

/// Returns whether a literal in quotes is a secret.
pub(super) fn literal(kind: Kind, value: &[u8]) -> bool {
    let value = &value[..value.len().min(LOOKED_AT)];
    (random(value, SHORTEST_QUOTED) && !placeholder(value)) || (kind == Kind::Password && chosen(value))
}

/// Returns whether a value without quotes is one, which could just as well be code.
pub(super) fn bare(value: &[u8]) -> bool {
    let value = &value[..value.len().min(LOOKED_AT)];
    random(value, SHORTEST_BARE) && !placeholder(value)
}

/// Returns whether a value looks like one that people choose: not a word, path, name or number, but letters with digits
/// or symbols, or large and small letters in no order that words have.
pub(super) fn chosen(value: &[u8]) -> bool {
    (6..=128).contains(&value.len())
        && value.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'\\')
        && value.iter().any(u8::is_ascii_alphabetic)
        && (value.iter().any(|byte| byte.is_ascii_digit() || b"!@#$%^&*+~?".contains(byte)) || jumbled(value))
        && !placeholder(value)
        && !says_what_it_is(value)
        && !path(value)
        && !named_parts(value)
        && !algorithm(value)
}

/// Returns whether a value in the place of credentials is one, and not a name for what belongs there.
pub(super) fn credential(value: &[u8]) -> bool {
    let digits = value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    !placeholder(value)
        && (random(value, 12)
            || ((digits || jumbled(value)) && !says_what_it_is(value) && !path(value) && !named_parts(value)))
}

/// Placeholders, and whatever is filled in later.
pub(super) fn placeholder(value: &[u8]) -> bool {
    const TEMPLATES: [&[u8]; 12] =
        [b"${", b"$(", b"{{", b"}}", b"<%", b"%>", b"%(", b"%s", b"{}", b"%{", b"...", b"***"];
    const WORDS: [&[u8]; 12] = [
        b"example",
        b"placeholder",
        b"changeme",
        b"change-me",
        b"change_me",
        b"replace",
        b"your",
        b"xxxx",
        b"redacted",
        b"dummy",
        b"insert",
        b"todo",
    ];
    let Some((first, last)) = value.first().zip(value.last()) else { return true };
    let enclosed =
        [(b'<', b'>'), (b'{', b'}'), (b'[', b']'), (b'%', b'%'), (b'(', b')')].contains(&(*first, *last));
    let variable =
        *first == b'$' && value.get(1).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    let one_byte = value.iter().all(|byte| byte == first);
    enclosed
        || variable
        || one_byte
        || TEMPLATES.iter().any(|template| contains(value, template))
        || WORDS.iter().any(|word| contains_word(value, word))
        || (contains_word(value, b"abcdef") && contains(value, b"1234"))
}

/// A name for what belongs here, perhaps with a number: `password1`, `test-token`.
fn says_what_it_is(value: &[u8]) -> bool {
    const WORDS: [&[u8]; 20] = [
        b"pass",
        b"pwd",
        b"secret",
        b"token",
        b"key",
        b"user",
        b"name",
        b"test",
        b"demo",
        b"fake",
        b"sample",
        b"default",
        b"admin",
        b"foo",
        b"bar",
        b"phrase",
        b"credential",
        b"auth",
        b"value",
        b"string",
    ];
    WORDS.iter().any(|word| contains_word(value, word))
}

/// In a URL: `user:password@host`.
pub(super) fn stands_for_one(value: &[u8]) -> bool {
    const WORDS: [&[u8]; 8] = [b"p", b"pw", b"pass", b"passwd", b"password", b"pwd", b"secret", b"token"];
    let number = value.len() <= 5 && value.iter().all(u8::is_ascii_digit);
    number
        || value.starts_with(b"$")
        || value.starts_with(b"{")
        || WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}

fn path(value: &[u8]) -> bool {
    [&b"/"[..], b"./", b"../", b"~/", b"@/"].iter().any(|start| value.starts_with(start))
        || contains(value, b"://")
}

/// `a.b`, `a::b`, `some-words-1`, `some_words`: parts that are words.
fn named_parts(value: &[u8]) -> bool {
    let separator = |byte: &u8| b"._-:/".contains(byte);
    value.iter().any(separator)
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || separator(byte))
        && value.split(separator).all(|part| part.len() < 2 || !mostly_odd(part) || part.len() < 5)
}

/// `sha256`, `utf8`, `uint64`, `v1beta1`, `P521`: short, with numbers only at the end, as in names of types.
fn algorithm(value: &[u8]) -> bool {
    const KINDS: [&[u8]; 26] = [
        b"sha", b"md", b"utf", b"hs", b"rs", b"es", b"ps", b"ed", b"aes", b"base", b"oauth", b"int", b"uint",
        b"float", b"http", b"tls", b"ssl", b"ipv", b"bcrypt", b"argon", b"pbkdf", b"varchar", b"text",
        b"rsa", b"curve", b"blake",
    ];
    let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    KINDS.iter().any(|kind| value[..letters].eq_ignore_ascii_case(kind))
}

/// Returns whether characters follow each other randomly: letter pairs that do not occur in words, upper case, lower
/// case and digits mixed.
pub(super) fn random(value: &[u8], shortest: usize) -> bool {
    let end = value.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    let value = &value[..end];
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/_-.~=:@!#$%^&*?".contains(byte);
    if value.len() < shortest || !value.iter().all(allowed) {
        return false;
    }
    let Pairs { odd, counted, humps, turns } = Pairs::of(value);
    let (digit, lower, upper) = (
        value.iter().any(u8::is_ascii_digit),
        value.iter().any(u8::is_ascii_lowercase),
        value.iter().any(u8::is_ascii_uppercase),
    );
    let mixed = lower && upper;
    let enough = odd * 5 >= counted * 2 || turns >= 5 || (humps >= 4 && odd * 3 >= counted);
    let with_digits = digit && (mixed || turns >= 3) && counted >= 4 && enough;
    let without = mixed && humps >= 3 && value.len() >= 20 && odd * 5 >= counted * 2;
    with_digits || without
}

/// Returns whether letters of both cases follow each other as in no name: `kQzLwPbTnR`.
fn jumbled(value: &[u8]) -> bool {
    let Pairs { odd, counted, humps, .. } = Pairs::of(value);
    let enough = (humps >= 2 && odd * 3 >= counted) || (humps == 1 && odd * 2 >= counted);
    value.len() >= 8 && counted >= 4 && enough
}

fn mostly_odd(part: &[u8]) -> bool {
    let Pairs { odd, counted, .. } = Pairs::of(part);
    odd * 2 > counted
}

/// How two adjacent characters relate.
#[derive(Default)]
struct Pairs {
    /// Letter and digit, or letters that are adjacent in no word.
    odd: usize,
    /// All except two digits, symbols, and where a word begins inside a name (`aB`).
    counted: usize,
    /// Those where a word seems to begin.
    humps: usize,
    /// From letter to digit and back.
    turns: usize,
}

impl Pairs {
    fn of(value: &[u8]) -> Pairs {
        let mut pairs = Pairs::default();
        for pair in value.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            if a.is_ascii_lowercase() && b.is_ascii_uppercase() {
                pairs.humps += 1;
            } else if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() {
                pairs.counted += 1;
                pairs.odd += usize::from(!in_words(a, b));
            } else if a.is_ascii_alphanumeric()
                && b.is_ascii_alphanumeric()
                && a.is_ascii_digit() != b.is_ascii_digit()
            {
                pairs.counted += 1;
                pairs.odd += 1;
                pairs.turns += 1;
            }
        }
        pairs
    }
}

/// Which letters commonly follow each letter of the alphabet in English words and in code.
const FOLLOWERS: [&str; 26] = [
    "bcdefgiklmnprstuvwxy",
    "aeijloruys",
    "acehiklortuyp",
    "adegiolrsuvy",
    "abcdefgilmnopqrstuvwxy",
    "aefiloruts",
    "aeghilnorsu",
    "aeiortuyl",
    "abcdefgklmnoprstvxz",
    "aeosu",
    "aeilnosy",
    "abdefikloprstuvmy",
    "abeimopstuy",
    "acdefgijkmnostuvy",
    "abcdefgiklmnoprstuvwxy",
    "aehiloprstuy",
    "u",
    "abcdefgiklmnoprstuvy",
    "acehiklmnopqrstuwy",
    "acehilmorstuwypx",
    "abcdefgilmnprstx",
    "aeio",
    "aehiorns",
    "acehipty",
    "aceilmnoprstd",
    "aeioz",
];

/// The same as bits, one per letter that may follow: this is checked for every character of every value.
static FOLLOWS: [u32; 26] = {
    let mut all = [0; 26];
    let mut row = 0;
    while row < 26 {
        let letters = FOLLOWERS[row].as_bytes();
        let mut at = 0;
        while at < letters.len() {
            all[row] |= 1 << (letters[at] - b'a');
            at += 1;
        }
        row += 1;
    }
    all
};

/// Both are letters.
fn in_words(a: u8, b: u8) -> bool {
    let number = |letter: u8| letter.to_ascii_lowercase() - b'a';
    FOLLOWS[usize::from(number(a))] >> number(b) & 1 == 1
}

fn contains(value: &[u8], part: &[u8]) -> bool {
    value.windows(part.len()).any(|window| window == part)
}

/// Returns whether a value contains a word in lower case, in upper case or with a capital; any other mixture of the two is
/// chance.
fn contains_word(value: &[u8], word: &[u8]) -> bool {
    value.windows(word.len()).any(|window| {
        let shown = window.eq_ignore_ascii_case(word);
        shown
            && (!window[1..].iter().any(u8::is_ascii_uppercase) || !window.iter().any(u8::is_ascii_lowercase))
    })
}
