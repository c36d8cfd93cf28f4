//! yq as an ordinary Linux program. There is no yq of mikefarah's in Debian to record from: what is expected here is
//! what its documentation says, and that a document comes back as it was.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

/// Runs yq on a text.
fn yq(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jq"));
    command.arg0("yq").args(arguments).env("TEXT", "a: b").env("NUMBER", "5");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    // It need not read what it is given.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).ok());
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("the writer ends");
    output
}

/// What yq prints, when all goes well.
fn printed(arguments: &[&str], input: &str) -> String {
    let output = yq(arguments, input);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

const CONFIG: &str = "\
# what this is
name: test # the name
version: \"1.0\"
list:
  - one
  # about two
  - two # second
  - {a: 1, b: [x, y]}
map: &anchor
  # inner
  k: v
  n: 010
other:
  <<: *anchor
  extra: true
alias: *anchor
empty:
text: |
  line one

  line two
folded: >-
  some text
single: 'it''s'
'odd key': ~
# the end
";

#[test]
fn a_document_comes_back_as_it_was() {
    assert_eq!(printed(&["."], CONFIG), CONFIG);
}

#[test]
fn what_is_not_changed_stays_as_it_was() {
    let changed = printed(&[".version = \"2.0\" | .map.k = \"w\" | .list[1] = 2 | .new = [true]"], CONFIG);
    let expected = CONFIG
        .replace("\"1.0\"", "\"2.0\"")
        .replace("k: v", "k: w")
        .replace("- two # second", "- 2 # second")
        .replace("# the end\n", "new:\n  - true\n# the end\n");
    // The merge and the alias said what the anchor said; now they differ from it, so they are written out.
    assert!(changed.starts_with(expected.split("other:").next().expect("a first part")), "{changed}");
    assert!(changed.ends_with("'odd key': ~\nnew:\n  - true\n# the end\n"), "{changed}");
}

#[test]
fn paths_and_scalars() {
    assert_eq!(printed(&[".name"], CONFIG), "test\n");
    assert_eq!(printed(&[".list[0], .list[2].b"], CONFIG), "one\n[x, y]\n");
    assert_eq!(printed(&[".other.k"], CONFIG), "v\n");
    assert_eq!(printed(&[".nothere"], CONFIG), "null\n");
    assert_eq!(printed(&["eval", ".list | length"], CONFIG), "3\n");
    assert_eq!(printed(&["-r=false", ".version"], CONFIG), "\"1.0\"\n");
    assert_eq!(
        printed(&[".list[] | select(. == \"t*\")"], CONFIG),
        "two # second\n".replace(" # second", "")
    );
    assert_eq!(printed(&[".map"], "map:\n  b: 1\n  a: 2\n"), "b: 1\na: 2\n");
}

#[test]
fn updates() {
    let pods = "pods:\n  - name: a\n    image: x:1\n  - name: b\n    image: y:1\n";
    let updated = printed(&["(.pods[] | select(.name == \"b\") | .image) = \"y:2\""], pods);
    assert_eq!(updated, pods.replace("y:1", "y:2"));
    assert_eq!(printed(&["del(.pods[0])"], pods), "pods:\n  - name: b\n    image: y:1\n");
    assert_eq!(
        printed(&[".a += [3] | .b.c |= . + 1"], "a: [1, 2]\nb:\n  c: 4\n"),
        "a: [1, 2, 3]\nb:\n  c: 5\n"
    );
    assert_eq!(printed(&["with(.a; .b = 2)"], "a:\n  b: 1\n"), "a:\n  b: 2\n");
    assert_eq!(printed(&["sort_keys(.)"], "b: 1\na: 2\n"), "a: 2\nb: 1\n");
    assert_eq!(printed(&["-n", ".a.b = strenv(TEXT) | .c = env(NUMBER)"], ""), "a:\n  b: 'a: b'\nc: 5\n");
    assert_eq!(printed(&[". * {\"a\": {\"c\": 2}}"], "a:\n  b: 1\n"), "a:\n  b: 1\n  c: 2\n");
    assert_eq!(printed(&[". *+ {\"a\": [2]}"], "a: [1]\n"), "a: [1, 2]\n");
}

#[test]
fn several_documents() {
    let two = "a: 1\n---\na: 2\n";
    assert_eq!(printed(&["."], two), two);
    assert_eq!(printed(&[".a"], two), "1\n---\n2\n");
    assert_eq!(printed(&["-N", ".a"], two), "1\n2\n");
    assert_eq!(printed(&["select(di == 1) | .a"], two), "2\n");
    assert_eq!(printed(&["ea", "[.[]]"], two), "- 1\n- 2\n");
    assert_eq!(printed(&["ea", ". as $item ireduce ({}; . * $item)"], "a: 1\n---\nb: 2\n"), "a: 1\nb: 2\n");
}

#[test]
fn formats() {
    let text = "a:\n  - 1\n  - b: x y\nc: \"5\"\n";
    assert_eq!(printed(&["-o", "json", "-I0"], text), "{\"a\":[1,{\"b\":\"x y\"}],\"c\":\"5\"}\n");
    assert_eq!(printed(&["-o=json", ".c"], text), "\"5\"\n");
    assert_eq!(printed(&["-o=json", "-r", ".c"], text), "5\n");
    assert_eq!(printed(&["-o", "props"], text), "a.0 = 1\na.1.b = x y\nc = 5\n");
    assert_eq!(printed(&["-p", "json", "-o", "yaml"], "{\"a\":[1,{\"b\":\"x y\"}],\"c\":\"5\"}"), text);
    assert_eq!(printed(&["-p=props"], "a.b = 1\na.c = x\n"), "a:\n  b: \"1\"\n  c: x\n");
    assert_eq!(printed(&["-p=csv"], "name,age\n\"b, o\",3\n"), "- name: b, o\n  age: 3\n");
    assert_eq!(printed(&["-o=csv"], "- {a: 1, b: 'x,y'}\n- {a: 2}\n"), "a,b\n1,\"x,y\"\n2,\n");
    assert_eq!(printed(&["-o=toml"], "a: 1\nt:\n  k: [x]\n"), "a = 1\n\n[t]\nk = [\"x\"]\n");
    assert_eq!(
        printed(&["-o=xml"], "r:\n  +@id: 1\n  x: [1, 2]\n"),
        "<r id=\"1\">\n  <x>1</x>\n  <x>2</x>\n</r>\n"
    );
    assert_eq!(printed(&["-P"], "{\"a\": [\"x\", {\"b\": null}]}"), "a:\n  - x\n  - b: null\n");
    assert_eq!(printed(&["explode(.)"], "a: &x {k: 1}\nb: *x\n"), "a: {k: 1}\nb:\n  k: 1\n");
}

#[test]
fn strings_keep_their_meaning() {
    let strings = [
        "yes",
        "null",
        "1",
        "0x1F",
        "1e3",
        "",
        " a",
        "a ",
        "a: b",
        "a #b",
        "- x",
        "#x",
        "*x",
        "&x",
        "!x",
        "@x",
        "it's",
        "\"q\"",
        "tab\there",
        "two\nlines",
        "two\nlines\n",
        "\n\nlead",
        " lead\n  more\n",
        "end\n\n",
        "\u{7}",
        "é😀",
        "a,b",
        "[x]",
        "{x}",
        "%x",
        "`x",
        "?",
        "? x",
        ":",
        "---",
        "...",
        "~",
        ".inf",
        "true",
        "<<",
        "=",
        "x:",
        "|",
        ">",
    ];
    for string in strings {
        let json = format!("{{\"k\":[{0:?},{{{0:?}:1}}]}}", string).replace("\\u{7}", "\\u0007");
        let there = printed(&["-p", "json", "-o", "yaml"], &json);
        let back = printed(&["-p", "yaml", "-o", "json", "-I0"], &there);
        let expected = printed(&["-p", "json", "-o", "json", "-I0"], &json);
        assert_eq!(back, expected, "by way of\n{there}");
    }
}

#[test]
fn in_place() {
    let file = std::env::temp_dir().join(format!("wardian-yq-{}.yml", std::process::id()));
    std::fs::write(&file, CONFIG).expect("a file");
    let name = file.to_str().expect("a name");
    assert_eq!(printed(&["-i", ".name = \"other\"", name], ""), "");
    let changed = std::fs::read_to_string(&file).expect("it is there");
    std::fs::remove_file(&file).expect("it goes");
    assert_eq!(changed, CONFIG.replace("name: test", "name: other"));
}

#[test]
fn what_is_wrong_is_said() {
    for (arguments, input, words) in [
        (&["."][..], "a: [1\n", "bad file '-'"),
        (&[".a["][..], "", "syntax error"),
        (&[".", "no such directory/file"][..], "", "no such file or directory"),
        (&["-e", ".b"][..], "a: 1\n", "no matches found"),
        (&["-o", "nosuch"][..], "", "unknown format"),
        (&["-p", "xml"][..], "<a/>", "not supported"),
        (&[".a.b"][..], "a: 1\n", "Cannot index number"),
    ] {
        let output = yq(arguments, input);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn hostile_documents_end_in_a_message() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb += &format!("a{level}: &a{level} [{items}]\n");
    }
    let deep = "[".repeat(100_000);
    let nested = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for (text, words) in [(&bomb, "excessive aliasing"), (&deep, ""), (&nested, "limit")] {
        let output = yq(&["-o", "json"], text);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("Error: ") && said.contains(words), "{said}");
    }
}
