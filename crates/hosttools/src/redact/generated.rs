//! Secrets made at random, of every shape and as every kind of file has them: none comes through.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::RngSeed;

use super::{REDACTED, Redactor};

/// Characters of a set, so many of them.
fn of(set: &'static str, length: std::ops::RangeInclusive<usize>) -> BoxedStrategy<String> {
    let characters: Vec<char> = set.chars().collect();
    prop::collection::vec(prop::sample::select(characters), length)
        .prop_map(|characters| characters.into_iter().collect())
        .boxed()
}

const ALPHANUMERIC: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const HEX: &str = "0123456789abcdef";

/// Secrets that say themselves what they are, and are taken out wherever they stand.
fn known_by_itself() -> impl Strategy<Value = String> {
    let with = |prefix: &'static str, set: &'static str, length: usize| {
        of(set, length..=length).prop_map(move |rest| format!("{prefix}{rest}")).boxed()
    };
    let upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    prop::strategy::Union::new([
        with("AKIA", upper, 16),
        with("ASIA", upper, 16),
        with("ghp_", ALPHANUMERIC, 36),
        with("gho_", ALPHANUMERIC, 36),
        with("github_pat_", ALPHANUMERIC, 82),
        with("glpat-", ALPHANUMERIC, 20),
        with("xoxb-1234987654-", ALPHANUMERIC, 24),
        with("sk_live_", ALPHANUMERIC, 24),
        with("rk_test_", ALPHANUMERIC, 24),
        with("sk-", ALPHANUMERIC, 48),
        with("sk-proj-", ALPHANUMERIC, 64),
        with("sk-ant-api03-", ALPHANUMERIC, 93),
        with("npm_", ALPHANUMERIC, 36),
        with("pypi-AgEIcHlwaS5vcmc", ALPHANUMERIC, 100),
        with("AIza", ALPHANUMERIC, 35),
        with("hf_", ALPHANUMERIC, 34),
        with("dop_v1_", HEX, 64),
        with("nvapi-", BASE64_URL, 64),
        with("pplx-", ALPHANUMERIC, 48),
        with("GOCSPX-", BASE64_URL, 28),
        with("hvs.", BASE64_URL, 90),
        with("hvs.", ALPHANUMERIC, 24),
        with("dapi", HEX, 32),
        with("sbp_", HEX, 40),
        with("pscale_pw_", BASE64_URL, 43),
        with("NRAK-", upper, 27),
        with("glsa_", ALPHANUMERIC, 41),
        with("sntrys_", ALPHANUMERIC, 60),
        with("ATATT3xFfGF0", BASE64_URL, 180),
        with("rubygems_", HEX, 48),
        with("dckr_pat_", BASE64_URL, 27),
        with("whsec_", ALPHANUMERIC, 32),
        with("sq0csp-", BASE64_URL, 43),
        with("sq0atp-", BASE64_URL, 22),
        with("shpat_", HEX, 32),
        with("xkeysib-", HEX, 64),
        with("lin_api_", ALPHANUMERIC, 40),
        with("ntn_", ALPHANUMERIC, 46),
        with("figd_", BASE64_URL, 40),
        with("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
        with("discord.com/api/webhooks/196934502150605402/", BASE64_URL, 68),
        with("0514472049:AA", BASE64_URL, 33),
        with("bot0514472049:AA", BASE64_URL, 33),
        (of(HEX, 24..=24), of(HEX, 34..=34)).prop_map(|(id, key)| format!("PMAK-{id}-{key}")).boxed(),
        (of(BASE64_URL, 22..=22), of(BASE64_URL, 43..=43))
            .prop_map(|(id, key)| format!("SG.{id}.{key}"))
            .boxed(),
        (of(upper, 9..=9), of(upper, 11..=11), of(ALPHANUMERIC, 24..=24))
            .prop_map(|(team, hook, key)| format!("hooks.slack.com/services/T{team}/B{hook}/{key}"))
            .boxed(),
        with("ya29.", ALPHANUMERIC, 60),
        (of(BASE64_URL, 20..=60), of(BASE64_URL, 20..=120), of(ALPHANUMERIC, 43..=43))
            .prop_map(|(head, claims, sign)| format!("eyJ{head}.eyJ{claims}.{sign}"))
            .boxed(),
    ])
    // A value that ends in the words of a placeholder is not a secret.
    .prop_filter("by chance a placeholder", |secret| !super::judge::placeholder(secret.as_bytes()))
}

/// Secrets that only their name tells.
fn known_by_name() -> impl Strategy<Value = String> {
    let secrets = prop::strategy::Union::new([
        of(ALPHANUMERIC, 32..=64),
        of(BASE64, 40..=40),
        of(BASE64_URL, 43..=43),
        of(HEX, 32..=64),
        of("abcdefghijklmnopqrstuvwxyz0123456789", 32..=40),
        of(BASE64, 43..=43).prop_map(|secret| format!("{secret}=")).boxed(),
    ]);
    // One that begins like a path, an option or a variable is not told from it.
    secrets.prop_filter("looks like something else", |secret| {
        !super::judge::placeholder(secret.as_bytes()) && !secret.starts_with(['/', '-', '+', '='])
    })
}

/// What people choose: no word of a language, and not what says what it is.
fn password() -> impl Strategy<Value = String> {
    (of("bcdfghjklmnprstvz", 3..=5), of("0123456789", 1..=3), of("@!#", 0..=1), of("aeioubcdfgh", 2..=4))
        .prop_map(|(a, number, sign, b)| format!("{a}{number}{sign}{b}"))
        .prop_filter("looks like something else", |password| super::judge::chosen(password.as_bytes()))
}

/// Ways to write a value in quotes behind a name.
const QUOTED: &[&str] = &[
    "{name} = \"{value}\"",
    "{name}=\"{value}\"",
    "{name}='{value}'",
    "export {name}=\"{value}\"",
    "\"{name}\": \"{value}\",",
    "{\"{name}\":\"{value}\",\"x\":1}",
    "'{name}': '{value}'",
    "  {name}: \"{value}\"",
    "  {name}: '{value}'",
    "let {name} = \"{value}\";",
    "let {name}: &str = \"{value}\";",
    "const {name} = `{value}`;",
    "{name} := \"{value}\"",
    "{name}: str = '{value}'",
    "{name} = b'{value}'",
    "{name}: String::from(\"{value}\"),",
    "client(user, {name}=\"{value}\")",
    "env[\"{name}\"] = \"{value}\"",
    "['{name}' => '{value}']",
    "<add {name}=\"{value}\"/>",
    "+    {name} = \"{value}\"",
    "src/a.py:12:    {name} = \"{value}\"",
    "echo '{\\\"{name}\\\": \\\"{value}\\\"}'",
];

/// Ways to write one without.
const PLAIN: &[&str] = &[
    "{name}={value}",
    "export {name}={value}",
    "ENV {name}={value}",
    "      - {name}={value}",
    "      - \"{name}={value}\"",
    "{name}: {value}",
    "  {name}: {value}",
    "tool --{name} {value} --verbose",
    "tool --{name}={value} --verbose",
    "https://example.org/x?{name}={value}&y=1",
    "<{name}>{value}</{name}>",
    "config/.env:3:{name}={value}",
    "+{name}={value}",
];

/// What is written around credentials of machines, where no name tells.
const AROUND: &[&str] = &[
    "Authorization: token {value}",
    "curl -H 'Authorization: token {value}' https://example.org",
    "-H \"authorization: {value}\"",
    "Cookie: session={value}",
    "curl --cookie 'theme=dark; sid={value}' https://example.org",
    "Set-Cookie: id={value}; Path=/; HttpOnly",
];

/// What is written around passwords, where no name tells: nothing else would be there.
const CERTAIN: &[&str] =
    &["machine h login u password {value}", "sshpass -p {value} ssh h", "sshpass -e -p '{value}' ssh h"];

/// Lines of settings in which people's passwords stand.
const CHOSEN: &[&str] = &[
    "{name}={value}",
    "export {name}={value}",
    "  {name}: {value}",
    "tool --{name} {value} --verbose",
    "<{name}>{value}</{name}>",
    "postgres://me:{value}@db.internal/x",
    "Server=db;User Id=me;{name}={value};Timeout=3",
    "PGPASSWORD={value} psql -h db",
    "cd x; MYSQL_PWD={value} mysql",
    "mysql -u root -p{value} db",
    "mariadb-dump -h db -p{value}",
    "machine h\n  login u\n  password {value}",
];

fn written(pattern: &str, name: &str, value: &str) -> String {
    pattern.replace("{name}", name).replace("{value}", value)
}

fn names() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "API_KEY",
        "api_key",
        "apiKey",
        "GITHUB_TOKEN",
        "access_token",
        "authToken",
        "client_secret",
        "SECRET",
        "password",
        "DB_PASSWORD",
        "passwd",
        "private_key",
        "aws_secret_access_key",
        "SECRET_KEY_BASE",
        "encryption-key",
        "token",
    ])
}

fn redactor() -> Redactor {
    Redactor::new(Vec::<Vec<u8>>::new()).unwrap()
}

/// Whether nothing of a secret is left, whole and in pieces.
fn gone(text: &str, secret: &str, cuts: &[usize]) -> Result<(), TestCaseError> {
    let shown = redactor().text(text);
    prop_assert!(!shown.contains(secret) && shown.contains(REDACTED), "{} -> {}", text, shown);
    let mut stream = redactor().stream();
    let mut passed = Vec::new();
    let mut from = 0;
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.sort_unstable();
    for cut in cuts.into_iter().chain([text.len()]) {
        passed.extend(stream.push(&text.as_bytes()[from..cut]));
        from = cut;
    }
    passed.extend(stream.finish(false));
    prop_assert_eq!(String::from_utf8_lossy(&passed), shown);
    Ok(())
}

/// How many of a thousand values of so many characters come through where only their name tells: by chance some look like
/// words.
fn missed(set: &'static str, length: usize, shows: fn(&[u8]) -> bool) -> usize {
    let config = ProptestConfig {
        rng_seed: RngSeed::Fixed(11),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let values = of(set, length..=length);
    let mut secret = || values.new_tree(&mut runner).unwrap().current();
    (0..20_000).filter(|_| !shows(secret().as_bytes())).count() / 20
}

#[test]
fn few_random_values_look_like_words() {
    for (set, length, most) in [
        (ALPHANUMERIC, 20, 20),
        (ALPHANUMERIC, 32, 2),
        (ALPHANUMERIC, 64, 0),
        (BASE64, 40, 1),
        (HEX, 32, 0),
        (HEX, 64, 0),
    ] {
        let missed = missed(set, length, super::judge::bare);
        assert!(missed <= most, "{missed} of 1000 with {length} characters");
    }
    // In a header for credentials there is nothing else to be.
    let missed = missed(ALPHANUMERIC, 24, super::judge::credential);
    assert!(missed <= 1, "{missed} of 1000 as credentials");
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn what_says_itself_that_it_is_a_secret_goes_wherever_it_stands(
        secret in known_by_itself(),
        name in prop::sample::select(vec!["x", "anything", "TOKEN"]),
        pattern in prop::sample::select([QUOTED, PLAIN].concat()),
        cuts in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        gone(&written(pattern, name, &secret), &secret, &cuts)?;
        gone(&format!("line one\n{secret}\nline two\n"), &secret, &cuts)?;
        gone(&format!("curl -H 'Authorization: Bearer {secret}' https://example.org"), &secret, &cuts)?;
    }

    #[test]
    fn what_is_random_goes_where_its_name_tells(
        secret in known_by_name(),
        name in names(),
        pattern in prop::sample::select([QUOTED, PLAIN].concat()),
        cuts in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        gone(&format!("a\n{}\nb\n", written(pattern, name, &secret)), &secret, &cuts)?;
    }

    #[test]
    fn credentials_go_from_headers(
        secret in known_by_name(),
        pattern in prop::sample::select(AROUND),
        cuts in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        gone(&format!("a\n{}\nb\n", written(pattern, "", &secret)), &secret, &cuts)?;
    }

    #[test]
    fn passwords_go_where_nothing_else_can_be(
        secret in of(ALPHANUMERIC, 8..=20),
        pattern in prop::sample::select(CERTAIN),
        cuts in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        gone(&format!("a\n{}\nb\n", written(pattern, "", &secret)), &secret, &cuts)?;
    }

    #[test]
    fn passwords_people_choose_go_from_settings(
        secret in password(),
        name in prop::sample::select(vec!["password", "DB_PASSWORD", "passwd", "spring.datasource.password"]),
        pattern in prop::sample::select([QUOTED, CHOSEN].concat()),
        cuts in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        gone(&format!("a\n{}\nb\n", written(pattern, name, &secret)), &secret, &cuts)?;
    }

    #[test]
    fn keys_go_in_every_wrapping(
        body in prop::collection::vec(of(BASE64, 64..=64), 1..20),
        last in of(BASE64, 1..=63),
        kind in prop::sample::select(vec!["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "]),
        line in prop::sample::select(vec!["{}\n", "    {}\n", "+{}\n", "key.pem:7:{}\n", "\"{}\\n\"\n", "{}\\n"]),
        cuts in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        let lines = [&[format!("-----BEGIN {kind}PRIVATE KEY-----")][..], &body, &[last.clone(), format!("-----END {kind}PRIVATE KEY-----")]].concat();
        let text: String = lines.iter().map(|text| line.replace("{}", text)).collect();
        gone(&format!("before\n{text}\nafter\n"), &body[0], &cuts)?;
        if last.len() > 8 {
            gone(&format!("before\n{text}\nafter\n"), &last, &cuts)?;
        }
    }
}
