//! Writes values as JSON, in jq's layouts and colours.

use crate::number;
use crate::object::Object;
use crate::value::Value;

use super::DEEPEST;

/// How a text is broken into lines.
#[derive(Clone, Copy, PartialEq)]
pub enum Layout {
    Compact,
    Spaces(usize),
    Tabs,
}

/// How values are written.
pub struct Style {
    pub layout: Layout,
    pub sorted: bool,
    pub ascii: bool,
    pub colors: Option<Colors>,
}

impl Style {
    pub const PLAIN: Style = Style { layout: Layout::Compact, sorted: false, ascii: false, colors: None };
}

/// The escape sequences for each kind of value.
pub struct Colors {
    null: String,
    no: String,
    yes: String,
    number: String,
    string: String,
    array: String,
    object: String,
    key: String,
}

const RESET: &str = "\x1b[0m";

impl Colors {
    /// jq's own colours, with those that `JQ_COLORS` names in their place. The answer says whether that was well formed.
    pub fn new(chosen: Option<&str>) -> (Colors, bool) {
        let mut codes = ["0;90", "0;39", "0;39", "0;39", "0;32", "1;39", "1;39", "1;34"].map(str::to_owned);
        let given: Vec<&str> = chosen.map(|text| text.split(':').collect()).unwrap_or_default();
        let valid = given
            .iter()
            .take(codes.len())
            .all(|code| code.len() < 12 && code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'));
        if valid {
            for (code, given) in codes.iter_mut().zip(given) {
                given.clone_into(code);
            }
        }
        let [null, no, yes, number, string, array, object, key] = codes.map(|code| format!("\x1b[{code}m"));
        (Colors { null, no, yes, number, string, array, object, key }, valid)
    }

    fn of(&self, value: &Value) -> &str {
        match value {
            Value::Null => &self.null,
            Value::Bool(false) => &self.no,
            Value::Bool(true) => &self.yes,
            Value::Number(_) | Value::Literal(_) => &self.number,
            Value::String(_) => &self.string,
            Value::Array(_) => &self.array,
            Value::Object(_) => &self.object,
        }
    }
}

/// The compact text of a value.
pub fn to_text(value: &Value) -> String {
    let mut text = String::new();
    write(value, &Style::PLAIN, &mut text);
    text
}

/// Writes a value.
pub fn write(value: &Value, style: &Style, text: &mut String) {
    Writer { style, text }.value(value, 0);
}

struct Writer<'a> {
    style: &'a Style,
    text: &'a mut String,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) {
        if depth > DEEPEST {
            self.text.push_str("<skipped: too deep>");
            return;
        }
        let color = self.style.colors.as_ref().map(|colors| colors.of(value));
        match value {
            Value::Array(items) if !items.is_empty() => self.items(items, depth, color.unwrap_or("")),
            Value::Object(object) if !object.is_empty() => self.entries(object, depth, color.unwrap_or("")),
            _ => {
                self.text.push_str(color.unwrap_or(""));
                self.leaf(value);
                self.reset(color.is_some());
            }
        }
    }

    fn leaf(&mut self, value: &Value) {
        match value {
            Value::Null => self.text.push_str("null"),
            Value::Bool(truth) => self.text.push_str(if *truth { "true" } else { "false" }),
            Value::Number(number) => number::write(*number, self.text),
            Value::Literal(literal) => self.text.push_str(&literal.text()),
            Value::String(text) => quote(text, self.style.ascii, self.text),
            Value::Array(_) => self.text.push_str("[]"),
            Value::Object(_) => self.text.push_str("{}"),
        }
    }

    fn items(&mut self, items: &[Value], depth: usize, color: &str) {
        self.text.push_str(color);
        self.text.push('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.text.push_str(color);
                self.text.push(',');
            }
            self.new_line(depth + 1);
            self.value(item, depth + 1);
        }
        self.close(']', depth, color);
    }

    fn entries(&mut self, object: &Object, depth: usize, color: &str) {
        self.text.push_str(color);
        self.text.push('{');
        if self.style.sorted {
            for (index, key) in object.sorted_keys().into_iter().enumerate() {
                let value = object.get(key).unwrap_or(&Value::Null);
                self.entry(index == 0, key, value, depth, color);
            }
        } else {
            for (index, (key, value)) in object.iter().enumerate() {
                self.entry(index == 0, key, value, depth, color);
            }
        }
        self.close('}', depth, color);
    }

    fn entry(&mut self, first: bool, key: &str, value: &Value, depth: usize, color: &str) {
        let colored = self.style.colors.is_some();
        if !first {
            self.text.push_str(color);
            self.text.push(',');
        }
        self.new_line(depth + 1);
        self.reset(colored);
        if let Some(colors) = &self.style.colors {
            self.text.push_str(&colors.key);
        }
        quote(key, self.style.ascii, self.text);
        self.reset(colored);
        self.text.push_str(color);
        self.text.push(':');
        if self.style.layout != Layout::Compact {
            self.text.push(' ');
        }
        self.reset(colored);
        self.value(value, depth + 1);
    }

    fn close(&mut self, bracket: char, depth: usize, color: &str) {
        self.text.push_str(color);
        self.new_line(depth);
        self.text.push_str(color);
        self.text.push(bracket);
        self.reset(!color.is_empty());
    }

    fn reset(&mut self, colored: bool) {
        if colored {
            self.text.push_str(RESET);
        }
    }

    fn new_line(&mut self, depth: usize) {
        let (unit, count) = match self.style.layout {
            Layout::Compact => return,
            Layout::Spaces(count) => (' ', count),
            Layout::Tabs => ('\t', 1),
        };
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(unit, depth * count));
    }
}

/// Writes a string between quotes.
fn quote(string: &str, ascii: bool, text: &mut String) {
    text.push('"');
    let mut rest = string;
    while let Some(at) = rest
        .bytes()
        .position(|byte| byte < 0x20 || matches!(byte, b'"' | b'\\' | 0x7f) || ascii && byte >= 0x80)
    {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(letter) = rest.chars().next() else { break };
        escape(letter, text);
        rest = &rest[letter.len_utf8()..];
    }
    text.push_str(rest);
    text.push('"');
}

fn escape(letter: char, text: &mut String) {
    use std::fmt::Write as _;
    match letter {
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        '\u{8}' => text.push_str("\\b"),
        '\u{c}' => text.push_str("\\f"),
        _ => {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
}
