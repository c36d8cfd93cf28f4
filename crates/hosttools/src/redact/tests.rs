//! What is taken out, whole and in pieces.

use proptest::prelude::*;

use super::{REDACTED, Redactor};

/// A made-up secret of every shape; none opens anything.
const SAMPLES: &[&str] = &[
    "sk-abcdefGHIJKLmnopqrstuv9x",
    "sk-ant-api03-abcDEFGHIJklmnopqrstuvwx_yz",
    "xai-zyxwvutsrq1234567890klmnopqrst1234567890uv",
    "gsk_zyxwvutsrq1234567890klmnopqrst1234567890uv",
    "hf_abcDefghIjklMnopqRstuvwXyzabcdef",
    "r8_zyxWvutsRqponMlkjiHgfedcBazyxwvu123456",
    "AIzazyxwvutsrqponmlkjihgfedcba-_012345678",
    "AKIAQCDEFGHIJKLMNOPQ",
    "ASIAQCDEFGHIJKLMNOPQ",
    "ya29.a2bcdefghijklmnopqrstuvwx",
    "dop_v1_0123987654abcdef0123987654abcdef",
    "ghp_zyxwvutsrqponmlkjihgfedcba0129876543",
    "gho_zyxwvutsrqponmlkjihgfedcba0129876543",
    "ghs_zyxwvutsrqponmlkjihgfedcba0129876543",
    "github_pat_zyxwvutsrqponmlkjihg_0129876543",
    "glpat-zyxwvutsrqponmlkj1hg",
    "ATBBzyxwvutsrqponmlkjihgfed1",
    "npm_zyxwvutsrqponmlkjihgfedcba0129876543",
    "pypi-zyxwvutsrqponmlkjihgfedcba0129876543zyxwvu",
    "sk_live_zyxwvutsrqponml1",
    "rk_test_zyxwvutsrqponml1",
    "xoxb-0129876543-zyxwvu",
    "xapp-0129876543-zyxwvutsrqp",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "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",
    "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",
    "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",
    "doo_v1_7ebb8e3b91d26ab4a829a95249f512c17b8ed411fa644d35db41d94e5efaf89f",
    "hvs.z5jhy0I9lO7F3vlfFrGYJ3GxeYYXwSLQcWtxJTQr1FqXSTs98vPlL2aEJXquQrDs0GPRZwwrPwV81Aw71l33SCx9vH",
    "hvb.jHkm1x72EsSfUQUAkNX7LHQ7AtNJX3",
    "dapi8065e5751f75143a5f61debc267b0bc8",
    "sbp_d3b1939a9b4ddbe45cf642b0c3a4acdd7f9fcc58",
    "pscale_tkn_VtFqAbu8tF7sjEbhQN9CpscYi0zaEIJrp7EYcpFr",
    "NRAK-JSS547HBITS8VS7B3WXICAQ93G8",
    "glsa_maBXZBMKST9OPE261yEzR2Um5sD1Wet1_0d9f945f",
    "sntrys_SJ4FvIjBLIZdeUor0fYeQ8bvUBezSFdh1hoNP08hT5isT6CjlNlAZkeNncJg",
    "ATATT3xQyVerdKKhVz4NiaBfuRMFFw8Px6diSsjKORGs68JJNoqeJpq1WsHiZp3xDVyliTbPvfKQcf3hGMDpy4DE9ugYHbIUyd2j88BRYoVhf6QF0niSNyw1psv7NTwYyyiU1wPsZOB92xHcLKnVlzegcclmmcF47EQWwaBEt47N6BuDDgmjPkex3y3",
    "rubygems_f48385971f1bba10ef43a9e7516072cb95eb92e57561d80e",
    "dckr_pat_dCXRAkccJ11HKw8gTep5ZFf7EdR",
    "whsec_pPdFzYddq1ACtOd4c8mlSGOzmIof7uYg",
    "sq0csp-fI6kMe2UnNbCIwFBKXyHOiUa6WtSC50oJhitEfXXq0z",
    "sq0atp-uiiIfEpSfZB9KQprdFSpdT",
    "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",
    "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",
    "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",
    "lin_api_7ar7TpecWfQ99t5wSZ17VMNJnEHf5hpvYIBzaQyy",
    "ntn_lWPH5n6RNuyug1S4JSTxp4gnstZrZNe58keOAXloPeKKO1",
    "figd_O4IUAAoBEHM5ptArfM49vlAbjhsKJMKlBmuMgPYS",
    "PMAK-a21f42a6ec7f306532a4b3ea-53b3266ab5e27cec03b40fca2f903fb6ac",
    "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVB",
];

/// The same, of those that begin with much that is not secret.
const AFTER_MUCH: &[&str] = &[
    "hooks.slack.com/services/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",
    "discord.com/api/webhooks/004876810337078149/91REGbdkzXXGB3L85QPNOLcnbAXUAZ300B65ya0Wk5vjtXmB1exnzAmriExsaQOhXkWD",
    "discordapp.com/api/v10/webhooks/116062307597273159/balZBfriWPxvXnjsH55SJfshgPzxtx6EJLC93p9KiqbIaUyipEQTdaaXnAoGTNpYtdZG",
    "3065084771:AAPh75xKHrTL7M8yyt2kL7RePCdVnHNyg7G",
    "bot485627517:AAaKKnKDcdVfhv4jx9vq0rEYjVhqq1bOqyk",
    "AGE-SECRET-KEY-10SUTGRK8QAZLZP686UW8Y9ZYANY38ENSANNQ5LACFDS5DA9FK9MUETVGL2",
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
    for sample in SAMPLES.iter().chain(AFTER_MUCH) {
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
        ("export PASSWORD=hunter2 # x", "export PASSWORD=[REDACTED] # x"),
        ("+DB_PASSWORD=tr0ub4dor&3", "+DB_PASSWORD=[REDACTED]"),
        ("config/.env:3:API_KEY=q7w8e9r0", "config/.env:3:API_KEY=[REDACTED]"),
        ("db_password='tr0ub4dor' x", "db_password='[REDACTED]' x"),
        ("\"api_key\": \"a8f3Kq92LmZ1\", \"x\": 1", "\"api_key\": \"[REDACTED]\", \"x\": 1"),
        ("{\\\"api_key\\\": \\\"a8f3Kq92LmZ1\\\"}", "{\\\"api_key\\\": \\\"[REDACTED]\\\"}"),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzGQ7Kx",
            "aws_secret_access_key = [REDACTED]",
        ),
        ("password: hunter2", "password: [REDACTED]"),
        ("  password: \"hunter2\"", "  password: \"[REDACTED]\""),
        ("--password hunter2 --user me", "--password [REDACTED] --user me"),
        ("--token=a8f3Kq92 x", "--token=[REDACTED] x"),
        ("https://me:hunter2@example.org/x", "https://me:[REDACTED]@example.org/x"),
        ("postgres://me:opensesame@db/x", "postgres://me:[REDACTED]@db/x"),
        ("curl -u me:hunter2 https://x", "curl -u me:[REDACTED] https://x"),
        ("machine x login me password hunter2", "machine x login me password [REDACTED]"),
        ("machine x login me password opensesame", "machine x login me password [REDACTED]"),
        ("default login me password \"opensesame\"", "default login me password \"[REDACTED]\""),
        ("machine x\n\tlogin me\n\tpassword hunter2\n", "machine x\n\tlogin me\n\tpassword [REDACTED]\n"),
        ("PGPASSWORD=hunter2 psql -h db", "PGPASSWORD=[REDACTED] psql -h db"),
        ("x && PGPASSWORD=kQzLwPbTnR psql", "x && PGPASSWORD=[REDACTED] psql"),
        ("$ API_TOKEN=q7w8e9r0 ./deploy", "$ API_TOKEN=[REDACTED] ./deploy"),
        ("mysql -u root -phunter2 db", "mysql -u root -p[REDACTED] db"),
        ("mysqldump -p'hunter2' db", "mysqldump -p'[REDACTED]' db"),
        ("sshpass -p opensesame ssh h", "sshpass -p [REDACTED] ssh h"),
        ("sshpass -v -p 'opensesame' ssh h", "sshpass -v -p '[REDACTED]' ssh h"),
        ("Authorization: token 0129876543abcdef0129876543fedcba01298765", "Authorization: token [REDACTED]"),
        ("{\"Authorization\": \"a8f3Kq92LmZ1x7Rt\"}", "{\"Authorization\": \"[REDACTED]\"}"),
        ("Cookie: a=b; sid=a8f3Kq92LmZ1x7Rt; c=d", "Cookie: [REDACTED]"),
        ("Set-Cookie: sid=a8f3Kq92LmZ1x7Rt; Path=/", "Set-Cookie: [REDACTED]"),
        ("Authorization: Bearer a8f3Kq92LmZ1x", "Authorization: Bearer [REDACTED]"),
        ("a?token=a8f3Kq92&b=c", "a?token=[REDACTED]&b=c"),
        ("Server=x;Password=hunter2;Y=1", "Server=x;Password=[REDACTED];Y=1"),
        ("<password>hunter2</password>", "<password>[REDACTED]</password>"),
        ("let token = String::from(\"a8f3Kq92LmZ1\");", "let token = String::from(\"[REDACTED]\");"),
        ("password: str = 'tr0ub4dor'", "password: str = '[REDACTED]'"),
        ("os.environ[\"TOKEN\"] = \"a8f3Kq92LmZ1\"", "os.environ[\"TOKEN\"] = \"[REDACTED]\""),
        ("'secret' => 'a8f3Kq92LmZ1',", "'secret' => '[REDACTED]',"),
        ("password = secret = \"a8f3Kq92LmZ1\"", "password = secret = \"[REDACTED]\""),
        ("AccountKey=zbcdefghijklmnopqrstu1==;x", "[REDACTED];x"),
    ] {
        assert_eq!(redactor().text(text), shown);
    }
}

/// Code, types, paths, words, what is filled in later: an agent edits files by what it sees.
#[test]
fn text_that_is_not_secret_stays() {
    for text in [
        "",
        "the password is not here",
        "def check(password: str) -> bool:",
        "if password == other:",
        "password = get_password()",
        "token = next(tokens)",
        "secret: Option<String>,",
        "pwd = os.getcwd()",
        "PWD=/home/me/project2",
        "OLDPWD=/usr/lib/x86_64-linux-gnu",
        "let token = match token_file {",
        "password=self.password2,",
        "connect(user=user, password=password)",
        "token: Token2022,",
        "const secret = process.env.SECRET_2;",
        "api_key = config[\"api_key\"]",
        "API_KEY=${API_KEY}",
        "TOKEN=$TOKEN",
        "PASSWORD=$(cat /run/secrets/pw1)",
        "password: {{ .Values.password1 }}",
        "password: <your-password-1>",
        "TOKEN=xxxxxxxxxxxxxxxx",
        "PASSWORD=changeme1",
        "\"password\": \"********\"",
        "\"password\": \"Enter your password\"",
        "\"token\": \"access_token_v2_name\"",
        "access_token = token_response_v2_json",
        "password_hash = sha256",
        "secret = base64_url_decode_v2",
        "postgres://user:password@localhost/db",
        "https://{user}:{password}@host",
        "https://$USER:$PASS@host",
        "https://<user>:<password>@host",
        "Authorization: Bearer <token>",
        "Authorization: Bearer your-access-token-1",
        "Authorization: Bearer access_token_v2_name",
        "Authorization: Bearer header.payload.signature",
        "'Authorization': f'Bearer {token}'",
        "basic functionality/behaviour",
        "Authorization: token ${GITHUB_TOKEN}",
        "authorization: header.get_authorization_from_request2",
        "Cookie: theme=dark; session=<session>",
        "cookie = cookies.get_session_cookie_of_request",
        "PGPASSWORD=$PGPASSWORD psql",
        "PASSWORD=changeme1 ./run",
        "find /var/lib/mysql -print -path x1",
        "mysql -u root -p db",
        "sshpass -p \"$PASSWORD\" ssh h",
        "use a default login and password to avoid a prompt",
        "  password required",
        "hvs.get(key)",
        "dapi = 1",
        "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
        "password = password.encode(\"latin1\")",
        "(?P<access_key>\\w+)/\\d+/",
        "sk-short",
        "sk-folding-cube-loader-animation",
        "task-force-of-many-long-words-in-a-row",
        "AKIAIOSFODNN7EXAMPLE",
        "https://example.org:8080/path@x",
        "a token, a secret; passwords",
        "eyJhbGciOi is only half",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "if line == \"-----BEGIN RSA PRIVATE KEY-----\" {\n    read(\"-----END RSA PRIVATE KEY-----\");\n}\n",
        "\"-----BEGIN PRIVATE KEY-----\\n...\\n-----END PRIVATE KEY-----\"",
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
    let as_it_is = "-----BEGIN PRIVATE KEY-----\nis how it begins\n";
    assert_eq!(redactor().text(as_it_is), as_it_is);
    // As grep shows it, and as code has it.
    let numbered: String = key.lines().map(|line| format!("a/key.pem:7:{line}\n")).collect();
    assert_eq!(redactor().text(&numbered), format!("a/key.pem:7:{REDACTED}\n"));
    let in_code: String = key.lines().map(|line| format!("    \"{line}\\n\"\n")).collect();
    assert_eq!(redactor().text(&in_code), format!("    \"{REDACTED}\\n\"\n"));
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
        .words(&words("x --token abc --user me password=y ghp_zyxwvutsrqponmlkjihgfedcba0129876543"));
    assert_eq!(shown, words("x --token [REDACTED] --user me password=[REDACTED] [REDACTED]"));
    let shown = redactor().words(&words("sshpass -p opensesame mysql -pkQzLwPbTnR curl -u me:hunter2 x"));
    assert_eq!(shown, words("sshpass -p [REDACTED] mysql -p[REDACTED] curl -u me:[REDACTED] x"));
    assert_eq!(
        redactor().words(&words("--token --user me --token=abc")),
        words("--token --user me --token=[REDACTED]")
    );
}

/// Lines without an end that are secrets throughout, and keys that only begin, byte by byte: were all of it looked at for
/// each of them, this would not come to an end.
#[test]
fn small_pieces_of_something_long_are_not_looked_at_over_and_over() {
    for piece in [
        "password=",
        "password=a",
        "password='a8f3Kq92LmZ1",
        "-----BEGIN PRIVATE KEY-----",
        "a://b:c@",
        "-----BEGIN PRIVATE KEY-----\n",
        "MIIEabc+/MIIEabc+/MIIEabc+/MIIEabc+/MIIEabc+/\n",
    ] {
        let text = format!("-----BEGIN PRIVATE KEY-----\n{}", piece.repeat((256 << 10) / piece.len()));
        let cuts: Vec<usize> = (0..text.len()).step_by(if piece.len() < 20 { 7 } else { 1 }).collect();
        let pieces = streamed(text.as_bytes(), &cuts, false);
        assert!(pieces == redactor().bytes(text.as_bytes()), "{piece}");
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
        "hunter2",
        "'a8f3Kq92LmZ1'",
        "get_password()",
        "(",
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
        "password=x ghp_zyxwvutsrqponmlkjihgfedcba0129876543\n".to_owned(),
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

#[test]
fn two_keys_that_begin_on_one_line_are_two_in_pieces_as_well() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7".repeat(2);
    let begin = "-----BEGIN PRIVATE KEY-----";
    let text = format!("{begin}{body}{begin}{body}\nplain\n{body}\n");
    let whole = redactor().bytes(text.as_bytes());
    for cut in 0..text.len() {
        let pieces = streamed(text.as_bytes(), &[cut], false);
        assert_eq!(String::from_utf8_lossy(&pieces), String::from_utf8_lossy(&whole), "cut at {cut}");
    }
}

/// Lines longer than any is held back for, with secrets and what only looks like them.
fn long_lines() -> impl Strategy<Value = String> {
    let filler = "x ".repeat(10 << 10);
    let pieces = [
        filler.clone(),
        "y".repeat(17 << 10),
        "password='a8f3Kq92LmZ1' ".to_owned(),
        "DB_PASSWORD=hunter2".to_owned(),
        " --api-token q7w8e9r0 ".to_owned(),
        " ghp_zyxwvutsrqponmlkjihgfedcba0129876543 ".to_owned(),
        "password='".to_owned(),
        "\n".to_owned(),
        " postgres://me:opensesame@db ".to_owned(),
        "-----BEGIN PRIVATE KEY-----".to_owned(),
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 1..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn pieces_make_no_difference_to_long_lines(
        text in long_lines(),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let whole = redactor().bytes(text.as_bytes());
        let pieces = streamed(text.as_bytes(), &cuts, false);
        prop_assert!(pieces == whole, "{} {}", text.len(), cuts.len());
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
