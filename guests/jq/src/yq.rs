//! yq: the same language over YAML, JSON, properties and tables, with the command line of mikefarah's yq 4.

mod formats;
mod options;

use std::collections::HashMap;

use toolkit::complain;
use toolkit::out::Out;

use crate::inputs::{Form, Inputs};
use crate::json::{self, Layout, Reader, Style, Tree};
use crate::lang::{self, Compiled, Library};
use crate::run::{Error, Machine};
use crate::value::Value;
use crate::world::{Origin, World};
use crate::yaml::{self, Document, Dress};
use formats::Format;
use options::Options;

/// Runs yq with arguments, its name first; the exit code.
pub fn main(arguments: Vec<Vec<u8>>) -> i32 {
    match options::parse(arguments).and_then(|options| run(&options)) {
        Ok(()) => 0,
        Err(code) => code,
    }
}

/// Says what is wrong, as yq does.
fn fail(problem: impl std::fmt::Display) -> i32 {
    // There is nowhere left to say that this failed.
    let _ = wardian_abi::write_all(2, format!("Error: {problem}\n").as_bytes());
    1
}

fn run(options: &Options) -> Result<(), i32> {
    let mut globals: HashMap<String, Value> = HashMap::new();
    globals.insert("ENV".into(), crate::jq::environment());
    let mut library = Library::new(globals, Vec::new());
    library.is_yq = true;
    let program = lang::compile(&options.expression, &mut library)
        .map_err(|problem| fail(problem.strip_prefix("jq: error: ").unwrap_or(&problem)))?;
    let mut session = Session {
        options,
        program,
        world: World::new(Inputs::new(Vec::new(), Form::Json(Reader::new(Tree::default())), false, false)),
        any_true: false,
    };
    if options.null_input {
        let text = session.results(&[nothing()], &[Origin::default()])?;
        Out::new("yq").put(text);
    } else if options.in_place {
        for (index, file) in options.files.iter().enumerate() {
            session.edit(file, index)?;
        }
    } else {
        session.print_all()?;
    }
    if options.exit_status && !session.any_true {
        return Err(fail("no matches found"));
    }
    Ok(())
}

/// A document that says nothing.
fn nothing() -> Document {
    Document { value: Value::Null, dress: Dress::default(), explicit: false, foot: Vec::new() }
}

struct Session<'a> {
    options: &'a Options,
    program: Compiled,
    world: World,
    /// Whether some result was neither null nor false.
    any_true: bool,
}

impl Session<'_> {
    /// The documents of a file; `-` is standard input.
    fn documents(&self, file: &str, file_index: usize) -> Result<(Vec<Document>, Vec<Origin>), i32> {
        let bytes = match file {
            "-" => {
                toolkit::files::read_fd(0).map_err(|error| fail(format_args!("standard input: {error}")))?
            }
            _ => read_file(file)?,
        };
        let text = String::from_utf8_lossy(&bytes);
        let format = self.options.input.unwrap_or_else(|| Format::of_file(file));
        let documents = formats::read(format, &text)
            .map_err(|problem| fail(format_args!("bad file '{file}': {problem}")))?;
        let origins = (0..documents.len()).map(|index| Origin { file: file.to_owned(), file_index, index });
        let origins = origins.collect();
        Ok((documents, origins))
    }

    fn print_all(&mut self) -> Result<(), i32> {
        let stdin = ["-".to_owned()];
        let files: &[String] = if self.options.files.is_empty() { &stdin } else { &self.options.files };
        let (mut documents, mut origins) = (Vec::new(), Vec::new());
        for (index, file) in files.iter().enumerate() {
            let (more, theirs) = self.documents(file, index)?;
            documents.extend(more);
            origins.extend(theirs);
        }
        let text = self.results(&documents, &origins)?;
        Out::new("yq").put(text);
        Ok(())
    }

    /// `-i`: a file becomes what its documents give.
    fn edit(&mut self, file: &str, index: usize) -> Result<(), i32> {
        let (documents, origins) = self.documents(file, index)?;
        let text = self.results(&documents, &origins)?;
        std::fs::write(file, text).map_err(|error| fail(format_args!("{file}: {error}")))
    }

    /// What all documents give, as text.
    fn results(&mut self, documents: &[Document], origins: &[Origin]) -> Result<String, i32> {
        self.world.documents.all =
            documents.iter().map(|document| document.value.clone()).zip(origins.iter().cloned()).collect();
        let mut text = String::new();
        if self.options.all_at_once {
            let program = lang::over_all_documents(&self.program);
            let first = documents.first();
            self.one(&program, Value::Null, first.map(|first| &first.dress), None, &mut text)?;
            return Ok(text);
        }
        for (index, (document, origin)) in documents.iter().zip(origins).enumerate() {
            self.world.documents.current = origin.clone();
            let before = text.len();
            let mut part = String::new();
            let program = Compiled { main: self.program.main };
            self.one(&program, document.value.clone(), Some(&document.dress), Some(document), &mut part)?;
            let separates = self.output() == Format::Yaml && !self.options.no_separators && !part.is_empty();
            let begins = index == 0 && document.explicit && is_whole(&self.program);
            if separates && (before > 0 || begins) {
                text.push_str("---\n");
            }
            text.push_str(&part);
        }
        Ok(text)
    }

    /// What one document gives.
    fn one(
        &mut self,
        program: &Compiled,
        input: Value,
        dress: Option<&Dress>,
        document: Option<&Document>,
        text: &mut String,
    ) -> Result<(), i32> {
        let mut results = Vec::new();
        let mut machine = match document {
            Some(_) => Machine::following(program, input, &mut self.world),
            None => Machine::new(program, input, &mut self.world),
        };
        while let Some(result) = machine.next_with_path() {
            results.push(result.map_err(|error| fail(message_of(&error)))?);
        }
        for (value, path) in results {
            self.any_true |= value.is_true();
            let found = match (&path, dress) {
                (Some(path), Some(dress)) => dress.at_path(path),
                (None, Some(dress)) if document.is_none() => Some(dress),
                _ => None,
            };
            self.print(&value, found, path.as_ref().is_some_and(Vec::is_empty), text)?;
            if let Some(document) = document.filter(|_| path.as_ref().is_some_and(Vec::is_empty))
                && self.output() == Format::Yaml
            {
                for comment in &document.foot {
                    text.push_str(comment);
                    text.push('\n');
                }
            }
        }
        Ok(())
    }

    fn output(&self) -> Format {
        self.options.output.unwrap_or_else(|| {
            // What only says how to read is no way to write: the name of a file says both.
            let named = self.options.files.first().filter(|_| self.options.input.is_none());
            let is_json = named.is_some_and(|file| Format::of_file(file) == Format::Json);
            if is_json { Format::Json } else { Format::Yaml }
        })
    }

    fn print(&self, value: &Value, dress: Option<&Dress>, whole: bool, text: &mut String) -> Result<(), i32> {
        let options = self.options;
        match (self.output(), value) {
            (Format::Json, Value::String(plain)) if options.unwrap == Some(true) => {
                text.push_str(plain);
                text.push('\n');
            }
            (Format::Json, _) => {
                let layout =
                    if options.indent == 0 { Layout::Compact } else { Layout::Spaces(options.indent) };
                json::write(value, &Style { layout, ..Style::PLAIN }, text);
                text.push('\n');
            }
            (Format::Yaml, _) => {
                let how = yaml::Options {
                    indent: options.indent.max(2),
                    pretty: options.pretty,
                    unwrap: options.unwrap.unwrap_or(true),
                    explode: options.explodes,
                };
                let mut bare = None;
                if let Some(dress) = dress.filter(|_| !whole) {
                    // Comments before an entry stay with the whole.
                    bare = Some(dress.alone());
                }
                text.push_str(&yaml::write(value, bare.as_ref().or(dress), &how));
            }
            (format, _) => text.push_str(&formats::write(format, value).map_err(fail)?),
        }
        Ok(())
    }
}

/// Whether a program gives back whole documents, perhaps changed.
fn is_whole(program: &Compiled) -> bool {
    matches!(program.main.node, lang::Node::Identity | lang::Node::Update(..) | lang::Node::Call(..))
}

fn read_file(file: &str) -> Result<Vec<u8>, i32> {
    std::fs::read(file).map_err(|error| {
        let words = error.to_string();
        let words = words.split(" (os error").next().unwrap_or_default().to_lowercase();
        fail(format_args!("open {file}: {words}"))
    })
}

fn message_of(error: &Error) -> String {
    match error {
        Error::Raised(Value::String(text)) => text.to_string(),
        Error::Raised(other) => json::to_text(other),
        _ => "break".into(),
    }
}

/// A note for what yq has and this one has not.
fn unsupported(what: &str) -> i32 {
    complain("yq", format_args!("{what} is not supported here; see yq --help"));
    1
}
