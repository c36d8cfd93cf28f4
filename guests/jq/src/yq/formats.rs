//! The formats besides YAML that yq reads and writes.

use std::rc::Rc;

use crate::builtins;
use crate::json::{self, Reader, Tree};
use crate::object::Object;
use crate::run::{Error, paths};
use crate::value::{Str, Value};
use crate::yaml::{self, Document, Dress};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    Yaml,
    Json,
    Props,
    Csv,
    Tsv,
    Xml,
    Toml,
    Shell,
}

impl Format {
    pub fn named(name: &str) -> Option<Format> {
        Some(match name {
            "yaml" | "y" | "yml" => Format::Yaml,
            "json" | "j" => Format::Json,
            "props" | "p" | "properties" => Format::Props,
            "csv" | "c" => Format::Csv,
            "tsv" | "t" => Format::Tsv,
            "xml" | "x" => Format::Xml,
            "toml" => Format::Toml,
            "shell" | "s" | "sh" => Format::Shell,
            _ => return None,
        })
    }

    /// What a file's name says.
    pub fn of_file(file: &str) -> Format {
        let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension {
            "json" | "csv" | "tsv" | "xml" | "toml" | "properties" => {
                Format::named(extension).unwrap_or(Format::Yaml)
            }
            _ => Format::Yaml,
        }
    }
}

/// The documents of a text.
pub fn read(format: Format, text: &str) -> Result<Vec<Document>, String> {
    let values = match format {
        Format::Yaml => return yaml::read(text),
        Format::Json => json_values(text)?,
        Format::Props => vec![properties(text)?],
        Format::Csv => vec![table(text, ',')],
        Format::Tsv => vec![table(text, '\t')],
        other => return Err(format!("reading {other:?} is not supported here; see yq --help")),
    };
    let document = |value| Document { value, dress: Dress::default(), explicit: false, foot: Vec::new() };
    Ok(values.into_iter().map(document).collect())
}

fn json_values(text: &str) -> Result<Vec<Value>, String> {
    let mut reader = Reader::new(Tree::default());
    let (mut at, mut values) = (0, Vec::new());
    while let Some(value) = reader.next(text.as_bytes(), &mut at)? {
        values.push(value);
    }
    values.extend(reader.finish()?);
    Ok(values)
}

/// `a.b.0 = c`, line by line.
fn properties(text: &str) -> Result<Value, String> {
    let mut root = Value::Null;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let (key, value) = line.split_once(['=', ':']).unwrap_or((line, ""));
        let key_of = |part: &str| match part.parse::<u32>() {
            Ok(index) => Value::Number(f64::from(index)),
            Err(_) => Value::string(part),
        };
        let path: Vec<Value> = key.trim().split('.').map(key_of).collect();
        root = paths::set(root, &path, Value::string(value.trim())).map_err(|error| format!("{error:?}"))?;
    }
    Ok(root)
}

/// Rows of a table with a head, as objects.
fn table(text: &str, between: char) -> Value {
    let mut rows = records(text, between).into_iter();
    let head: Vec<Str> = rows.next().unwrap_or_default().into_iter().map(Str::from).collect();
    let object = |row: Vec<String>| {
        let cells = row.into_iter().map(|cell| scalar(&cell));
        Value::object(head.iter().cloned().zip(cells).collect::<Object>())
    };
    Value::array(rows.map(object).collect())
}

/// A cell as YAML would read it.
fn scalar(cell: &str) -> Value {
    let read = yaml::read(cell).ok().and_then(|documents| documents.into_iter().next());
    match read.map(|document| document.value) {
        Some(value @ (Value::Number(_) | Value::Literal(_) | Value::Bool(_))) => value,
        _ => Value::string(cell),
    }
}

fn records(text: &str, between: char) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => quoted = !quoted,
            _ if quoted => cell.push(letter),
            '\r' => {}
            '\n' => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            _ if letter == between => row.push(std::mem::take(&mut cell)),
            _ => cell.push(letter),
        }
    }
    if !cell.is_empty() || !row.is_empty() {
        row.push(cell);
        rows.push(row);
    }
    rows
}

/// A value in a format other than YAML and JSON.
pub fn write(format: Format, value: &Value) -> Result<String, String> {
    match format {
        Format::Props => Ok(flat(value, ".", |key, text| format!("{key} = {text}\n"))),
        Format::Shell => Ok(flat(value, "_", |key, text| {
            let safe = !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./:".contains(&byte));
            let text = if safe { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\"'\"'")) };
            format!("{key}={text}\n")
        })),
        Format::Csv => rows(value, "csv"),
        Format::Tsv => rows(value, "tsv"),
        Format::Xml => xml(value),
        Format::Toml => toml(value),
        Format::Yaml | Format::Json => Ok(json::to_text(value)),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Null => String::new(),
        other => json::to_text(other),
    }
}

/// Each leaf with its path.
fn flat(value: &Value, between: &str, line: impl Fn(&str, &str) -> String) -> String {
    let mut text = String::new();
    let mut pending = vec![(String::new(), value.clone())];
    while let Some((path, value)) = pending.pop() {
        let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}{between}{key}") };
        match &value {
            Value::Array(items) => {
                let items =
                    items.iter().enumerate().map(|(index, item)| (join(&index.to_string()), item.clone()));
                pending.extend(items.collect::<Vec<_>>().into_iter().rev());
            }
            Value::Object(object) => {
                let entries = object.iter().map(|(key, value)| (join(key), value.clone()));
                pending.extend(entries.collect::<Vec<_>>().into_iter().rev());
            }
            leaf => text += &line(&path, &plain(leaf)),
        }
    }
    text
}

/// An array of arrays, or of objects with a head, as lines.
fn rows(value: &Value, format: &str) -> Result<String, String> {
    let Value::Array(items) = value else {
        return Err(format!("{format} encoding only works for arrays, got: {}", value.type_name()));
    };
    let mut rows = Vec::new();
    match items.first() {
        Some(Value::Object(first)) => {
            let keys: Vec<Str> = first.iter().map(|(key, _)| key.clone()).collect();
            rows.push(keys.iter().cloned().map(Value::String).collect());
            for item in items.iter() {
                let cell = |key: &Str| match item {
                    Value::Object(object) => object.get(key).cloned().unwrap_or_default(),
                    _ => Value::Null,
                };
                rows.push(keys.iter().map(cell).collect());
            }
        }
        Some(Value::Array(_)) => {
            for item in items.iter() {
                rows.push(if let Value::Array(cells) = item { cells.to_vec() } else { vec![item.clone()] });
            }
        }
        _ => rows.push(items.to_vec()),
    }
    let mut text = String::new();
    for row in rows {
        let cells: Vec<Value> = row;
        // A cell is in quotes where it must be.
        let line: Vec<String> = cells.iter().map(|cell| quoted(cell, format)).collect::<Result<_, _>>()?;
        text += &line.join(if format == "csv" { "," } else { "\t" });
        text.push('\n');
    }
    Ok(text)
}

fn quoted(cell: &Value, format: &str) -> Result<String, String> {
    match cell {
        Value::Array(_) | Value::Object(_) => {
            Err(format!("{format} encoding only works for arrays of scalars, got: {}", cell.type_name()))
        }
        Value::String(text) if format == "csv" && text.contains([',', '"', '\n']) => {
            let row = Value::Array(Rc::new(crate::value::Array(vec![cell.clone()])));
            builtins::format("csv", &row).map(|text| text.to_string()).map_err(|error| match error {
                Error::Raised(value) => plain(&value),
                _ => String::new(),
            })
        }
        other => Ok(plain(other)),
    }
}

/// How deep a value may be to be written as elements or tables.
const DEEPEST: usize = 500;

fn xml(value: &Value) -> Result<String, String> {
    let mut text = String::new();
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter() {
                element(name, value, 0, &mut text)?;
            }
        }
        other => text += &format!("{}\n", xml_escaped(&plain(other))),
    }
    Ok(text)
}

fn xml_escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// An element: `+@name` is an attribute, `+content` the text.
fn element(name: &str, value: &Value, depth: usize, text: &mut String) -> Result<(), String> {
    if depth > DEEPEST {
        return Err("the value is nested too deeply".into());
    }
    let indent = "  ".repeat(depth);
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| element(name, item, depth, text)),
        Value::Object(object) => {
            let attributes = object.iter().filter_map(|(key, value)| Some((key.strip_prefix("+@")?, value)));
            let attributes: String = attributes
                .map(|(key, value)| {
                    format!(" {key}=\"{}\"", xml_escaped(&plain(value)).replace('"', "&quot;"))
                })
                .collect();
            if let Some(content) = object.get("+content") {
                *text += &format!("{indent}<{name}{attributes}>{}</{name}>\n", xml_escaped(&plain(content)));
                return Ok(());
            }
            *text += &format!("{indent}<{name}{attributes}>\n");
            for (key, value) in object.iter().filter(|(key, _)| !key.starts_with("+@")) {
                element(key, value, depth + 1, text)?;
            }
            *text += &format!("{indent}</{name}>\n");
            Ok(())
        }
        scalar => {
            *text += &format!("{indent}<{name}>{}</{name}>\n", xml_escaped(&plain(scalar)));
            Ok(())
        }
    }
}

fn toml(value: &Value) -> Result<String, String> {
    let Value::Object(object) = value else {
        return Err(format!("toml encoding only works for maps, got: {}", value.type_name()));
    };
    let mut text = String::new();
    toml_table(object, "", 0, &mut text)?;
    Ok(text)
}

fn toml_key(key: &str) -> String {
    let bare =
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if bare { key.to_owned() } else { json::to_text(&Value::string(key)) }
}

/// Plain values first, then tables: what follows a head belongs to it.
fn toml_table(object: &Object, path: &str, depth: usize, text: &mut String) -> Result<(), String> {
    if depth > DEEPEST {
        return Err("the value is nested too deeply".into());
    }
    let is_tables = |value: &Value| match value {
        Value::Array(items) => !items.is_empty() && items.iter().all(|item| matches!(item, Value::Object(_))),
        _ => false,
    };
    for (key, value) in object.iter() {
        if !matches!(value, Value::Object(_) | Value::Null) && !is_tables(value) {
            *text += &format!("{} = {}\n", toml_key(key), toml_value(value));
        }
    }
    for (key, value) in object.iter() {
        let full = if path.is_empty() { toml_key(key) } else { format!("{path}.{}", toml_key(key)) };
        let tables: Vec<(&Object, String)> = match value {
            Value::Object(inner) => vec![(inner, format!("[{full}]"))],
            Value::Array(items) if is_tables(value) => {
                let inner = items
                    .iter()
                    .filter_map(|item| if let Value::Object(inner) = item { Some(inner) } else { None });
                inner.map(|inner| (&**inner, format!("[[{full}]]"))).collect()
            }
            _ => continue,
        };
        for (inner, head) in tables {
            if !text.is_empty() {
                text.push('\n');
            }
            *text += &format!("{head}\n");
            toml_table(inner, &full, depth + 1, text)?;
        }
    }
    Ok(())
}

fn toml_value(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(object) => {
            let entries: Vec<String> = object
                .iter()
                .map(|(key, value)| format!("{} = {}", toml_key(key), toml_value(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => json::to_text(other),
    }
}
