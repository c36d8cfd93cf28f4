//! From values to text: as they were written, where it is known how.

use crate::json;
use crate::number;
use crate::object::Object;
use crate::value::Value;

use super::read::is_merge;
use super::{Dress, Form, Quotes, scalar};

/// How to write.
pub struct Options {
    /// Blanks per level.
    pub indent: usize,
    /// In one way, whatever it was before: nothing in quotes or brackets that need not be.
    pub pretty: bool,
    /// A lone string without quotes.
    pub unwrap: bool,
    /// Aliases as what they stand for.
    pub explode: bool,
}

/// How deep values are written into each other.
const DEEPEST: usize = 1000;

/// Writes a value, dressed as it was if that is known.
pub fn write(value: &Value, dress: Option<&Dress>, options: &Options) -> String {
    let mut writer = Writer { text: String::new(), options, brackets: 0 };
    match (value, dress) {
        (Value::String(text), _) if options.unwrap => {
            writer.text.push_str(text);
            writer.text.push('\n');
        }
        _ => {
            let head = dress.map(|dress| dress.head.as_slice()).unwrap_or_default();
            writer.comments(head, 0);
            match writer.block_of(value, dress) {
                true => writer.block(value, dress, 0, false),
                false => {
                    writer.inline(value, dress, 0);
                    writer.end_line(dress);
                }
            }
        }
    }
    writer.text
}

struct Writer<'a> {
    text: String,
    options: &'a Options,
    /// Brackets that are open.
    brackets: usize,
}

impl Writer<'_> {
    /// Whether a value takes lines of its own.
    fn block_of(&self, value: &Value, dress: Option<&Dress>) -> bool {
        let (flow, alias) = match dress.map(|dress| &dress.form) {
            Some(Form::Sequence(_, flow) | Form::Mapping(_, flow)) => (*flow && !self.options.pretty, false),
            Some(Form::Alias(_)) => (false, self.is_alias(value, dress)),
            _ => (false, false),
        };
        let full = match value {
            Value::Array(items) => !items.is_empty(),
            Value::Object(object) => !object.is_empty(),
            _ => false,
        };
        full && !flow && !alias
    }

    /// Whether a value still is what an alias stands for.
    fn is_alias(&self, value: &Value, dress: Option<&Dress>) -> bool {
        let same = |dress: &Dress| matches!(dress.form, Form::Alias(_)) && dress.value == *value;
        !self.options.explode && dress.is_some_and(same)
    }

    fn blanks(&mut self, count: usize) {
        self.text.extend(std::iter::repeat_n(' ', count));
    }

    fn comments(&mut self, comments: &[String], indent: usize) {
        for comment in comments {
            self.blanks(indent);
            self.text.push_str(comment);
            self.text.push('\n');
        }
    }

    /// The end of a line, with the comment that was there.
    fn end_line(&mut self, dress: Option<&Dress>) {
        if let Some(comment) = dress.and_then(|dress| dress.line.as_ref()) {
            // A block of text has ended its line already, and has none.
            if !self.text.ends_with('\n') {
                self.text.push(' ');
                self.text.push_str(comment);
            }
        }
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// An anchor and a tag before a value.
    fn properties(&mut self, dress: Option<&Dress>) -> bool {
        let Some(dress) = dress else { return false };
        let start = self.text.len();
        if let Some(anchor) = dress.anchor.as_ref().filter(|_| !self.options.explode) {
            self.text.push('&');
            self.text.push_str(anchor);
        }
        if let Some(tag) = &dress.tag {
            if self.text.len() > start {
                self.text.push(' ');
            }
            self.text.push_str(tag);
        }
        self.text.len() > start
    }

    /// The lines of a container. The first may go on where a dash has begun it.
    fn block(&mut self, value: &Value, dress: Option<&Dress>, indent: usize, begun: bool) {
        if indent > DEEPEST * self.options.indent {
            self.text.push_str("<too deep>\n");
            return;
        }
        let mut begun = begun;
        if dress.is_some_and(|dress| dress.anchor.is_some() || dress.tag.is_some())
            && indent == 0
            && !begun
            && self.properties(dress)
        {
            self.text.push('\n');
        }
        match value {
            Value::Array(items) => {
                let dresses = match dress.map(|dress| &dress.form) {
                    Some(Form::Sequence(dresses, _)) => dresses.as_slice(),
                    _ => &[],
                };
                for (index, item) in items.iter().enumerate() {
                    self.item(item, dresses.get(index), indent, std::mem::take(&mut begun));
                }
            }
            Value::Object(object) => self.mapping(object, dress, indent, begun),
            _ => {}
        }
    }

    fn item(&mut self, value: &Value, dress: Option<&Dress>, indent: usize, begun: bool) {
        if !begun {
            let head = dress.map(|dress| dress.head.as_slice()).unwrap_or_default();
            self.comments(head, indent);
            self.blanks(indent);
        }
        self.text.push('-');
        self.blanks(self.options.indent.max(2) - 1);
        if !self.block_of(value, dress) {
            self.inline(value, dress, indent + self.options.indent);
            self.end_line(dress);
            return;
        }
        let inner = indent + self.options.indent.max(2);
        if self.properties(dress) {
            self.text.push('\n');
            self.block(value, dress, inner, false);
        } else {
            self.block(value, dress, inner, true);
        }
    }

    fn mapping(&mut self, object: &Object, dress: Option<&Dress>, indent: usize, begun: bool) {
        let mut begun = begun;
        let merges: &[(Dress, Dress)] = match dress.map(|dress| &dress.form) {
            Some(Form::Mapping(entries, _)) if !self.options.explode => entries,
            _ => &[],
        };
        for (key, value) in merges.iter().filter(|(key, _)| is_merge(key)) {
            self.entry("<<", Some((key, value)), &value.value, indent, std::mem::take(&mut begun));
        }
        for (key, value) in object.iter() {
            let own = dress.and_then(|dress| dress.entry(key));
            if own.is_none() && is_merged(merges, key, value) {
                continue;
            }
            self.entry(key, own, value, indent, std::mem::take(&mut begun));
        }
    }

    fn entry(
        &mut self,
        key: &str,
        dress: Option<(&Dress, &Dress)>,
        value: &Value,
        indent: usize,
        begun: bool,
    ) {
        if !begun {
            let head = dress.map(|(_, value)| value.head.as_slice()).unwrap_or_default();
            self.comments(head, indent);
            self.blanks(indent);
        }
        match dress {
            Some((key, _))
                if !matches!(key.form, Form::None | Form::Scalar(_, Quotes::Literal | Quotes::Folded)) =>
            {
                self.inline(&key.value, Some(key), indent);
            }
            // A key is one line.
            _ if key.contains('\n') => self.text.push_str(&json::to_text(&Value::string(key))),
            _ => self.string(key, None, indent),
        }
        self.text.push(':');
        let dress = dress.map(|(_, value)| value);
        if !self.block_of(value, dress) {
            // Nothing stays nothing.
            let empty = matches!(dress.map(|dress| &dress.form), Some(Form::Scalar(text, Quotes::Plain)) if text.is_empty());
            if !(empty && matches!(value, Value::Null)) {
                self.text.push(' ');
                self.inline(value, dress, indent + self.options.indent);
            }
            self.end_line(dress);
            return;
        }
        let start = self.text.len();
        self.text.push(' ');
        if !self.properties(dress) {
            self.text.truncate(start);
        }
        self.end_line(dress);
        let inner = indent + self.options.indent;
        self.block(value, dress, inner.max(1), false);
    }

    /// A value that follows something on its line.
    fn inline(&mut self, value: &Value, dress: Option<&Dress>, indent: usize) {
        if let Some(Form::Alias(name)) = dress.map(|dress| &dress.form)
            && self.is_alias(value, dress)
        {
            self.text.push('*');
            self.text.push_str(name);
            return;
        }
        let kept_tag = dress.filter(|dress| {
            dress.value == *value || dress.tag.as_deref().is_none_or(|tag| !tag.starts_with("!!"))
        });
        if self.properties(kept_tag) {
            self.text.push(' ');
        }
        match (value, dress.map(|dress| (&dress.form, &dress.value))) {
            // What stood there without quotes can do so again.
            (Value::String(text), Some((Form::Scalar(_, Quotes::Plain), Value::String(old))))
                if text == old && !text.contains('\n') =>
            {
                self.text.push_str(text);
            }
            (Value::String(text), Some((Form::Scalar(_, quotes), _))) if !self.options.pretty => {
                self.string(text, Some(*quotes), indent);
            }
            (Value::String(text), _) => self.string(text, None, indent),
            (Value::Array(items), dress) => {
                let dresses: &[Dress] = match dress {
                    Some((Form::Sequence(dresses, _), _)) => dresses,
                    _ => &[],
                };
                self.text.push('[');
                self.brackets += 1;
                for (index, item) in items.iter().enumerate() {
                    self.text.push_str(if index > 0 { ", " } else { "" });
                    self.inline(item, dresses.get(index), indent);
                }
                self.brackets -= 1;
                self.text.push(']');
            }
            (Value::Object(object), _) => self.braces(object, dress, indent),
            // A number or a name as it was written, if it still is the same.
            (scalar, Some((Form::Scalar(text, Quotes::Plain), old))) if scalar == old && !text.is_empty() => {
                self.text.push_str(text);
            }
            (Value::Number(number), _) if number.is_nan() => self.text.push_str(".nan"),
            (Value::Number(number), _) if number.is_infinite() => {
                self.text.push_str(if *number > 0.0 { ".inf" } else { "-.inf" });
            }
            (Value::Number(number), _) => number::write(*number, &mut self.text),
            (other, _) => self.text.push_str(&json::to_text(other)),
        }
    }

    fn braces(&mut self, object: &Object, dress: Option<&Dress>, indent: usize) {
        self.text.push('{');
        self.brackets += 1;
        for (index, (key, value)) in object.iter().enumerate() {
            self.text.push_str(if index > 0 { ", " } else { "" });
            let own = dress.and_then(|dress| dress.entry(key));
            match own {
                Some((key, _)) => self.inline(&key.value, Some(key), indent),
                None => self.string(key, None, indent),
            }
            self.text.push_str(": ");
            self.inline(value, own.map(|(_, value)| value), indent);
        }
        self.brackets -= 1;
        self.text.push('}');
    }

    /// A string, in the quotes it had if they still do.
    fn string(&mut self, text: &str, quotes: Option<Quotes>, indent: usize) {
        let printable = text.chars().all(|letter| letter == '\n' || letter == '\t' || !letter.is_control());
        match quotes {
            _ if !printable => self.text.push_str(&json::to_text(&Value::string(text))),
            Some(Quotes::Double) => self.text.push_str(&json::to_text(&Value::string(text))),
            Some(Quotes::Single) if !text.contains('\n') => self.single(text),
            _ if text.contains('\n') && self.brackets > 0 => {
                self.text.push_str(&json::to_text(&Value::string(text)))
            }
            Some(Quotes::Folded) if can_fold(text) => self.lines(text, '>', indent),
            _ if text.contains('\n') => self.lines(text, '|', indent),
            _ if !matches!(scalar::resolve(text), Value::String(_)) || is_old_name(text) => {
                self.text.push_str(&json::to_text(&Value::string(text)));
            }
            _ if is_plain(text) && (self.brackets == 0 || !text.contains([',', '[', ']', '{', '}'])) => {
                self.text.push_str(text);
            }
            _ => self.single(text),
        }
    }

    fn single(&mut self, text: &str) {
        self.text.push('\'');
        self.text.push_str(&text.replace('\'', "''"));
        self.text.push('\'');
    }

    /// A text of several lines as a block.
    fn lines(&mut self, text: &str, sign: char, indent: usize) {
        self.text.push(sign);
        let first = text.trim_start_matches('\n');
        if first.starts_with(' ') || text.starts_with('\n') {
            self.text.push_str(&self.options.indent.to_string());
        }
        let body = text.strip_suffix('\n');
        match body {
            None => self.text.push('-'),
            Some(body) if body.ends_with('\n') || body.is_empty() => self.text.push('+'),
            Some(_) => {}
        }
        self.text.push('\n');
        for (index, line) in body.unwrap_or(text).split('\n').enumerate() {
            // In a folded text one line break is a blank.
            if sign == '>' && index > 0 {
                self.text.push('\n');
            }
            if !line.is_empty() {
                self.blanks(indent.max(self.options.indent));
                self.text.push_str(line);
            }
            self.text.push('\n');
        }
    }
}

/// Whether a text comes out of folding as it went in: no line is indented, none is empty.
fn can_fold(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.split('\n').all(|line| !line.is_empty() && !line.starts_with([' ', '\t']))
}

/// Whether an entry is there only because another mapping was merged in.
fn is_merged(entries: &[(Dress, Dress)], key: &str, value: &Value) -> bool {
    let merged = entries.iter().filter(|(key, _)| is_merge(key)).flat_map(|(_, value)| match &value.value {
        Value::Array(sources) => sources.to_vec(),
        other => vec![other.clone()],
    });
    let mut sources = merged.filter_map(|source| match source {
        Value::Object(source) => source.get(key).cloned(),
        _ => None,
    });
    sources.next().is_some_and(|present| present == *value)
}

/// Whether a text can stand without quotes and be read as the same.
fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let second = text.chars().nth(1);
    let begins = match first {
        '-' | '?' | ':' => second.is_some_and(|letter| letter != ' '),
        ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`'
        | ' ' => false,
        _ => true,
    };
    begins
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with(':')
        && !text.ends_with(' ')
        && !text.contains('\t')
        && text != "---"
        && !matches!(text, "<<" | "=")
}

/// What older YAML took for a truth.
fn is_old_name(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "yes" | "no" | "on" | "off" | "y" | "n")
}
