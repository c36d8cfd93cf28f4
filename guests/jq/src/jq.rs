//! jq: the command.

mod options;

use std::collections::HashMap;
use std::path::PathBuf;

use toolkit::complain;
use toolkit::out::Out;

use crate::inputs::{Form, Inputs};
use crate::json::{self, Colors, Events, Layout, Reader, Style, Tree};
use crate::lang::{self, Compiled, Library};
use crate::object::Object;
use crate::run::{Error, Machine, Outcome};
use crate::value::Value;
use crate::world::World;
use options::{Options, Output};

/// Exit codes, as jq has them.
const USAGE: i32 = 2;
const COMPILE: i32 = 3;
const NOTHING: i32 = 4;
const FAILED: i32 = 5;

/// Runs jq with arguments, its name first; the exit code.
pub fn main(arguments: Vec<Vec<u8>>) -> i32 {
    let options = match options::parse(arguments) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let program = match compile(&options) {
        Ok(program) => program,
        Err(code) => return code,
    };
    let null_input = options.null_input;
    let form = match (options.raw_input, options.stream) {
        (true, _) => Form::Lines(Vec::new()),
        (false, false) => Form::Json(Reader::new(Tree::default())),
        (false, true) => Form::Events(Reader::new(Events::default()), options.stream_errors),
    };
    let mut world = World::new(Inputs::new(options.files, form, options.slurp, options.output.seq));
    world.search_list =
        Value::array(options.search.iter().map(|path| Value::string(path.to_string_lossy())).collect());
    let printer = Printer::new(options.output);
    let mut session = Session { program, world, printer, code: 0, last: None, halted: false };
    session.run(null_input);
    session.finish(options.exit_status)
}

/// `$ENV`: all variables of the environment.
pub fn environment() -> Value {
    let mut object = Object::default();
    for pair in wardian_abi::environ() {
        let text = String::from_utf8_lossy(&pair);
        let (name, value) = text.split_once('=').unwrap_or((&text, ""));
        object.insert(name.into(), Value::string(value));
    }
    Value::object(object)
}

fn compile(options: &Options) -> Result<Compiled, i32> {
    let mut globals: HashMap<String, Value> = HashMap::new();
    let mut named = Object::default();
    for (name, value) in &options.named {
        // The first of a name counts.
        if !named.contains_key(name) {
            named.insert(name.as_str().into(), value.clone());
            globals.insert(name.clone(), value.clone());
        }
    }
    let mut arguments = Object::default();
    arguments.insert("positional".into(), Value::array(options.positional.clone()));
    arguments.insert("named".into(), Value::object(named));
    globals.insert("ARGS".into(), Value::object(arguments));
    globals.insert("ENV".into(), environment());
    let search = match options.search.is_empty() {
        true => vec![PathBuf::from(std::env::var("HOME").unwrap_or_default()).join(".jq")],
        false => options.search.clone(),
    };
    let mut library = Library::new(globals, search);
    lang::compile(&options.program, &mut library).map_err(|problem| {
        let text = format!("{problem}\njq: 1 compile error\n");
        // There is nowhere left to say that this failed.
        let _ = wardian_abi::write_all(2, text.as_bytes());
        COMPILE
    })
}

/// A program, what it reads, and what became of it so far.
struct Session {
    program: Compiled,
    world: World,
    printer: Printer,
    code: i32,
    /// The last result, for `--exit-status`.
    last: Option<Value>,
    halted: bool,
}

impl Session {
    fn run(&mut self, null_input: bool) {
        if null_input {
            self.process(Value::Null);
            return;
        }
        while !self.halted {
            match self.world.next_input() {
                Ok(Some(input)) => self.process(input),
                Ok(None) => break,
                Err(error) => {
                    self.code = FAILED;
                    complain("jq", format_args!("parse error: {}", message_of(&error)));
                    break;
                }
            }
        }
    }

    /// All results for one input.
    fn process(&mut self, input: Value) {
        // How the last input went is how the command ends.
        self.code = 0;
        let mut machine = Machine::new(&self.program, input, &mut self.world);
        let failure = loop {
            match machine.next() {
                None => return,
                Some(Err(error)) => break error,
                Some(Ok(value)) => match self.printer.print(&value) {
                    Ok(()) => self.last = Some(value),
                    Err(error) => break error,
                },
            }
        };
        match failure {
            Error::Halt { code, message } => self.halt(code, message),
            error => {
                self.code = FAILED;
                let note = if is_text(&error) { "" } else { " (not a string)" };
                let place = self.world.inputs.place();
                complain("jq", format_args!("error (at {place}){note}: {}", message_of(&error)));
            }
        }
    }

    fn halt(&mut self, code: i32, message: Option<Value>) {
        self.halted = true;
        self.code = code;
        self.last = Some(Value::Bool(true));
        match message {
            None => {}
            Some(Value::String(text)) => self.world.say(&text),
            Some(other) => self.world.say(&format!("{}\n", json::to_text(&other))),
        }
    }

    fn finish(mut self, exit_status: bool) -> i32 {
        self.printer.out.flush();
        if self.code == 0 && self.world.inputs.failed {
            return USAGE;
        }
        if self.code != 0 || !exit_status || self.halted {
            return self.code;
        }
        match self.last {
            None => NOTHING,
            Some(value) => i32::from(!value.is_true()),
        }
    }
}

fn is_text(error: &Error) -> bool {
    matches!(error, Error::Raised(Value::String(_)) | Error::Break(_))
}

fn message_of(error: &Error) -> String {
    match error {
        Error::Raised(Value::String(text)) => text.to_string(),
        Error::Raised(other) => json::to_text(other),
        _ => "break".into(),
    }
}

/// Writes results.
struct Printer {
    style: Style,
    raw: bool,
    /// What follows each.
    end: &'static str,
    seq: bool,
    no_nul: bool,
    unbuffered: bool,
    text: String,
    out: Out,
}

impl Printer {
    fn new(output: Output) -> Printer {
        let colored = output.color.unwrap_or_else(|| {
            wardian_abi::isatty(1) && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        });
        let colors = colored.then(|| {
            let chosen = std::env::var("JQ_COLORS").ok();
            let (colors, valid) = Colors::new(chosen.as_deref());
            if !valid {
                complain("jq", "Failed to set $JQ_COLORS");
            }
            colors
        });
        let layout = output.layout.unwrap_or(Layout::Spaces(2));
        let end = match (output.join, output.nul) {
            (true, _) => "",
            (false, true) => "\0",
            _ => "\n",
        };
        Printer {
            style: Style { layout, sorted: output.sorted, ascii: output.ascii, colors },
            raw: output.raw || output.join || output.nul,
            end,
            seq: output.seq,
            no_nul: output.nul,
            unbuffered: output.unbuffered,
            text: String::new(),
            out: Out::new("jq"),
        }
    }

    fn print(&mut self, value: &Value) -> Outcome<()> {
        if self.seq {
            self.out.put("\x1e");
        }
        self.text.clear();
        match value {
            Value::String(text) if self.raw && !self.style.ascii => {
                if self.no_nul && text.contains('\0') {
                    return crate::run::raise(
                        "Cannot dump a string containing NUL with --raw-output0 option",
                    );
                }
                self.out.put(&**text);
            }
            _ => {
                json::write(value, &self.style, &mut self.text);
                self.out.put(&self.text);
            }
        }
        self.out.put(self.end);
        if self.unbuffered {
            self.out.flush();
        }
        Ok(())
    }
}
