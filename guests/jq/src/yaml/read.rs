//! From text to documents.

use std::collections::HashMap;
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use crate::object::Object;
use crate::value::Value;

use super::{Document, Dress, Form, Quotes, comments, key_text, scalar};

/// How deep nodes may lie in each other.
const DEEPEST: usize = 1000;

/// All documents of a text.
pub fn read(text: &str) -> Result<Vec<Document>, String> {
    let mut events = Vec::new();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        events.push(event.map_err(|error| error.to_string())?);
    }
    let mut scalars = Vec::new();
    for (event, span) in &events {
        if let Event::Scalar(..) = event {
            scalars.push((span.start.index(), span.end.index()));
        }
    }
    let letters: Vec<char> = text.chars().collect();
    let mut comments = comments::find(text, &scalars);
    let mut builder = Builder { events, at: 0, letters, anchors: HashMap::new(), nodes: 0 };
    let mut documents = builder.documents()?;
    // Each document has the comments before the next one's first line.
    for index in (0..documents.len()).rev() {
        let own = match index {
            0 => std::mem::take(&mut comments),
            _ => {
                let start = documents[index].1;
                comments.split_off(comments.partition_point(|comment| comment.is_before(start)))
            }
        };
        documents[index].0.foot = comments::attach(&mut documents[index].0.dress, own);
    }
    Ok(documents.into_iter().map(|(document, _)| document).collect())
}

struct Builder<'a> {
    events: Vec<(Event<'a>, Span)>,
    at: usize,
    letters: Vec<char>,
    /// By the parser's number: the name, the value, and how many nodes that is.
    anchors: HashMap<usize, (String, Value, usize)>,
    /// Nodes so far, with those that aliases stand for.
    nodes: usize,
}

/// More nodes than this, and more than a hundred for each that is written, are an attempt to fill the memory.
const MOST_NODES: usize = 1_000_000;

impl Builder<'_> {
    fn documents(&mut self) -> Result<Vec<(Document, usize)>, String> {
        let mut documents = Vec::new();
        while self.at < self.events.len() {
            let (explicit, line) = match &self.events[self.at] {
                (Event::DocumentStart(explicit), span) => (*explicit, span.start.line()),
                _ => {
                    self.at += 1;
                    continue;
                }
            };
            self.at += 1;
            let dress = self.node(0, None)?;
            let value = dress.value.clone();
            documents.push((Document { value, dress, explicit, foot: Vec::new() }, line));
        }
        Ok(documents)
    }

    /// The next node. An entry begins where its key does.
    fn node(&mut self, depth: usize, key_at: Option<(usize, usize)>) -> Result<Dress, String> {
        if depth > DEEPEST {
            return Err("the document is nested too deeply".into());
        }
        let Some((event, span)) = self.events.get(self.at).cloned() else {
            return Err("the document ends too early".into());
        };
        self.at += 1;
        let at = key_at.unwrap_or((span.start.line(), span.start.col()));
        let mut dress = Dress { at, ..Dress::default() };
        let before = self.nodes;
        self.nodes += 1;
        let number = match event {
            Event::Alias(number) => {
                let (name, value, nodes) = self.anchors.get(&number).cloned().unwrap_or_default();
                self.nodes = self.nodes.saturating_add(nodes);
                if self.nodes > MOST_NODES && self.nodes / 100 > self.events.len() {
                    return Err("document contains excessive aliasing".into());
                }
                dress.form = Form::Alias(name);
                dress.value = value;
                return Ok(dress);
            }
            Event::Scalar(text, style, number, tag) => {
                dress.tag = tag.as_deref().map(tag_text);
                dress.value = scalar_value(&text, style, dress.tag.as_deref());
                dress.form = Form::Scalar(Rc::from(&*text), quotes_of(style));
                number
            }
            Event::SequenceStart(number, tag) => {
                dress.tag = tag.as_deref().map(tag_text);
                let flow = self.begins_with(span.start.index(), '[');
                let items = self.items(depth)?;
                dress.value = Value::array(items.iter().map(|item| item.value.clone()).collect());
                dress.form = Form::Sequence(items, flow);
                number
            }
            Event::MappingStart(number, tag) => {
                dress.tag = tag.as_deref().map(tag_text);
                let flow = self.begins_with(span.start.index(), '{');
                let entries = self.entries(depth)?;
                dress.value = Value::object(object_of(&entries));
                dress.form = Form::Mapping(entries, flow);
                number
            }
            _ => return Ok(dress),
        };
        if number > 0 {
            let name = self.anchor_name(span.start.index()).unwrap_or_else(|| format!("a{number}"));
            self.anchors.insert(number, (name.clone(), dress.value.clone(), self.nodes - before));
            dress.anchor = Some(name);
        }
        Ok(dress)
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Dress>, String> {
        let mut items = Vec::new();
        while !matches!(self.events.get(self.at), Some((Event::SequenceEnd, _)) | None) {
            items.push(self.node(depth + 1, None)?);
        }
        self.at += 1;
        Ok(items)
    }

    fn entries(&mut self, depth: usize) -> Result<Vec<(Dress, Dress)>, String> {
        let mut entries = Vec::new();
        while !matches!(self.events.get(self.at), Some((Event::MappingEnd, _)) | None) {
            let key = self.node(depth + 1, None)?;
            let at = key.at;
            entries.push((key, self.node(depth + 1, Some(at))?));
        }
        self.at += 1;
        Ok(entries)
    }

    /// Whether a node begins with a bracket, after its anchor and tag.
    fn begins_with(&self, start: usize, bracket: char) -> bool {
        let mut rest = self.letters[start.min(self.letters.len())..].iter().peekable();
        while let Some('!' | '&') = rest.peek() {
            while rest.next_if(|letter| !letter.is_whitespace()).is_some() {}
            while rest.next_if(|letter| letter.is_whitespace()).is_some() {}
        }
        rest.peek() == Some(&&bracket)
    }

    /// The name of an anchor that stands at or before a place: the parser knows it by a number only.
    fn anchor_name(&self, start: usize) -> Option<String> {
        let from = match self.letters.get(start) {
            Some('&') => start,
            _ => (0..start.min(self.letters.len())).rev().take(200).find(|at| self.letters[*at] == '&')?,
        };
        let name = self.letters[from + 1..].iter();
        let ends = |letter: &&char| !letter.is_whitespace() && !matches!(letter, ',' | '[' | ']' | '{' | '}');
        Some(name.take_while(ends).collect())
    }
}

/// The object of a mapping: what it merges in is in it, below its own entries.
fn object_of(entries: &[(Dress, Dress)]) -> Object {
    let mut object = Object::default();
    for (key, value) in entries {
        if !is_merge(key) {
            object.insert(key_text(&key.value), value.value.clone());
        }
    }
    for (key, value) in entries {
        if !is_merge(key) {
            continue;
        }
        let sources = match &value.value {
            Value::Array(sources) => sources.to_vec(),
            other => vec![other.clone()],
        };
        for source in sources {
            let Value::Object(source) = source else { continue };
            for (key, value) in source.iter() {
                if !object.contains_key(key) {
                    object.insert(key.clone(), value.clone());
                }
            }
        }
    }
    object
}

/// Whether a key is `<<`.
pub fn is_merge(key: &Dress) -> bool {
    matches!(&key.form, Form::Scalar(text, Quotes::Plain) if &**text == "<<")
}

fn scalar_value(text: &str, style: ScalarStyle, tag: Option<&str>) -> Value {
    let plain = matches!(style, ScalarStyle::Plain);
    match tag {
        Some(tag) => scalar::tagged(text, tag, plain),
        None if plain => scalar::resolve(text),
        None => Value::string(text),
    }
}

fn quotes_of(style: ScalarStyle) -> Quotes {
    match style {
        ScalarStyle::SingleQuoted => Quotes::Single,
        ScalarStyle::DoubleQuoted => Quotes::Double,
        ScalarStyle::Literal => Quotes::Literal,
        ScalarStyle::Folded => Quotes::Folded,
        _ => Quotes::Plain,
    }
}

fn tag_text(tag: &Tag) -> String {
    match tag.handle.as_str() {
        "tag:yaml.org,2002:" => format!("!!{}", tag.suffix),
        handle => format!("{handle}{}", tag.suffix),
    }
}
