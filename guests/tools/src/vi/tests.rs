//! Keys on texts. What they make of them is what vim makes of them.

use super::*;

/// Keys of a test, and nobody to look at the screen.
struct Script(VecDeque<Key>);

impl Keys for Script {
    fn key(&mut self) -> Key {
        self.0.pop_front().unwrap_or(Key::Gone)
    }

    fn size(&self) -> (usize, usize) {
        (24, 80)
    }

    fn put(&mut self, _: &[u8]) {}
}

fn after(content: &str, keys: &str) -> (String, Place) {
    let key = |char: char| match char {
        '\u{1b}' => Key::Escape,
        '\n' => Key::Enter,
        '\t' => Key::Tab,
        '\u{8}' => Key::Backspace,
        char if char < ' ' => Key::Ctrl(char as u8 | 0x40),
        char => Key::Char(char),
    };
    let mut vi = Vi::new(Script(keys.chars().map(key).collect()), Vec::new(), content.as_bytes());
    vi.run();
    (String::from_utf8_lossy(&vi.text.content()).into_owned(), vi.text.cursor)
}

fn becomes(content: &str, keys: &str, expected: &str) {
    let (text, _) = after(content, keys);
    assert_eq!(text, expected, "{keys:?} on {content:?}");
}

#[test]
fn operators_take_motions_counts_and_things() {
    becomes("one two three\n", "dw", "two three\n");
    becomes("one two three\n", "2dw", "three\n");
    becomes("one two three\n", "wD", "one \n");
    becomes("one two three\n", "wcwx\u{1b}", "one x three\n");
    becomes("one two three\n", "wdiw", "one  three\n");
    becomes("one two three\n", "wdaw", "one three\n");
    becomes("f(a, b)\n", "f,di(", "f()\n");
    becomes("x \"y z\" w\n", "fyci\"q\u{1b}", "x \"q\" w\n");
    becomes("a\nb\nc\nd\n", "jdd", "a\nc\nd\n");
    becomes("a\nb\nc\nd\n", "2dd", "c\nd\n");
    becomes("a\nb\nc\nd\n", "dG", "");
    becomes("a\nb\nc\nd\n", "jdj", "a\nd\n");
    becomes("abc def\nx\n", "d$", "\nx\n");
    becomes("abc def\n", "$x", "abc de\n");
    becomes("abc def\n", "fcdT ", "abc def\n");
    becomes("abc,def\n", "dt,", ",def\n");
    becomes("a(b)c\n", "fbd%", "a)c\n");
    becomes("word\n", "gUiw", "WORD\n");
    becomes("last\nnext\n", "dw", "\nnext\n");
}

#[test]
fn what_is_taken_can_be_put() {
    becomes("a\nb\n", "ddp", "b\na\n");
    becomes("a\nb\n", "yyjp", "a\nb\na\n");
    becomes("abc\n", "xp", "bac\n");
    becomes("a\nb\n", "\"xyyj\"xP", "a\na\nb\n");
    becomes("one\n", "yw$3p", "oneoneoneone\n");
    becomes("a\nb\nc\n", "Vjyp", "a\na\nb\nb\nc\n");
    becomes("abcdef\n", "vlld", "def\n");
}

#[test]
fn typing_undoing_and_repeating() {
    becomes("one\n", "itwo \u{1b}", "two one\n");
    becomes("one\n", "A!\u{1b}", "one!\n");
    becomes("one\n", "onext\u{1b}", "one\nnext\n");
    becomes("one\n", "Obefore\u{1b}", "before\none\n");
    becomes("aaaa\n", "x..", "a\n");
    becomes("a b c\n", "cwX\u{1b}w.", "X X c\n");
    becomes("a\nb\n", "A;\u{1b}j.", "a;\nb;\n");
    becomes("abc\n", "xxu", "bc\n");
    becomes("abc\n", "xxuu", "abc\n");
    becomes("abc\n", "xxuu\u{12}", "bc\n");
    becomes("abc\n", "ofirst\nsecond\u{1b}u", "abc\n");
    becomes("abc\n", "rX", "Xbc\n");
    becomes("abc\n", "2rX", "XXc\n");
    becomes("abc\n", "Rxy\u{1b}", "xyc\n");
    becomes("a\nb\nc\n", "J", "a b\nc\n");
    becomes("abc\n", "~~", "ABc\n");
    becomes("a\n", ">>", "\ta\n");
}

#[test]
fn searching_and_commands_of_ex() {
    becomes("one\ntwo\nthree\n", "/th\nx", "one\ntwo\nhree\n");
    becomes("one\ntwo\none\n", "/one\nnx", "ne\ntwo\none\n");
    becomes("one\ntwo\none\n", "?one\nx", "one\ntwo\nne\n");
    becomes("foo bar foo\n", "wb*x", "foo bar oo\n");
    becomes("a\nb\na\n", ":%s/a/x/g\n", "x\nb\nx\n");
    becomes("a\nb\na\n", ":g/a/d\n", "b\n");
    becomes("a\nb\nc\n", ":2\ndd", "a\nc\n");
    becomes("a\nb\nc\n", "Vj:s/$/!/\n", "a!\nb!\nc\n");
    becomes("a\nb\n", "/b\n:s//c/\n", "a\nc\n");
    becomes("a\nb\na\n", ":%s/a/x/g\nu", "a\nb\na\n");
    becomes("a\nb\nc\n", "majjd'a", "");
}
