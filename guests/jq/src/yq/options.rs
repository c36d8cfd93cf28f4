//! yq's command line.

use super::formats::Format;
use super::{fail, unsupported};

/// What was asked for.
pub struct Options {
    pub expression: String,
    pub files: Vec<String>,
    /// `eval-all`: all documents are one input.
    pub all_at_once: bool,
    pub null_input: bool,
    pub in_place: bool,
    pub exit_status: bool,
    pub no_separators: bool,
    pub pretty: bool,
    /// `None`: strings without quotes in YAML, with quotes in JSON.
    pub unwrap: Option<bool>,
    pub indent: usize,
    pub input: Option<Format>,
    pub output: Option<Format>,
    /// Whether the expression asks for aliases to be replaced.
    pub explodes: bool,
}

const HELP: &str = include_str!("help.txt");

/// Takes a command line apart. The error is the exit code: what there was to say has been said.
pub fn parse(arguments: Vec<Vec<u8>>) -> Result<Options, i32> {
    let words = arguments.into_iter().skip(1).map(|word| String::from_utf8_lossy(&word).into_owned());
    let mut parser = Parser {
        rest: words.collect::<Vec<_>>().into_iter(),
        operands: Vec::new(),
        expression: None,
        options: Options {
            expression: String::new(),
            files: Vec::new(),
            all_at_once: false,
            null_input: false,
            in_place: false,
            exit_status: false,
            no_separators: false,
            pretty: false,
            unwrap: None,
            indent: 2,
            input: None,
            output: None,
            explodes: false,
        },
    };
    while let Some(word) = parser.rest.next() {
        if word == "--" {
            let rest: Vec<String> = parser.rest.by_ref().collect();
            parser.operands.extend(rest);
        } else if let Some(long) = word.strip_prefix("--") {
            parser.long(long)?;
        } else if word.len() > 1 && word.starts_with('-') {
            parser.short(&word[1..])?;
        } else {
            parser.operands.push(word);
        }
    }
    parser.finish()
}

struct Parser {
    rest: std::vec::IntoIter<String>,
    operands: Vec<String>,
    expression: Option<String>,
    options: Options,
}

impl Parser {
    fn value(&mut self, attached: Option<&str>, option: &str) -> Result<String, i32> {
        match attached {
            Some(value) => Ok(value.to_owned()),
            None => self.rest.next().ok_or_else(|| fail(format_args!("flag needs an argument: {option}"))),
        }
    }

    fn short(&mut self, letters: &str) -> Result<(), i32> {
        let mut letters = letters;
        while let Some(letter) = letters.chars().next() {
            let rest = &letters[letter.len_utf8()..];
            letters = rest;
            let attached = rest.strip_prefix('=').or(Some(rest)).filter(|value| !value.is_empty());
            let options = &mut self.options;
            match letter {
                'i' => options.in_place = true,
                'n' => options.null_input = true,
                'e' => options.exit_status = true,
                'N' => options.no_separators = true,
                'P' => options.pretty = true,
                'j' => options.output = Some(Format::Json),
                'C' | 'M' | 'v' => {}
                'h' => return Err(print(HELP)),
                'V' => return Err(version()),
                'r' => {
                    options.unwrap = Some(attached != Some("false"));
                    letters = if rest.starts_with('=') { "" } else { rest };
                }
                'o' | 'p' | 'I' => {
                    let value = self.value(attached, &format!("-{letter}"))?;
                    return self.valued(letter, &value);
                }
                's' => return Err(unsupported("splitting into files (-s)")),
                _ => return Err(fail(format_args!("unknown shorthand flag: '{letter}' in -{letters}"))),
            }
        }
        Ok(())
    }

    fn valued(&mut self, letter: char, value: &str) -> Result<(), i32> {
        match letter {
            'I' => match value.parse() {
                Ok(indent) if indent <= 16 => self.options.indent = indent,
                _ => {
                    return Err(fail(format_args!("invalid argument \"{value}\" for \"-I, --indent\" flag")));
                }
            },
            _ if matches!(value, "a" | "auto") => {}
            _ => {
                let format =
                    Format::named(value).ok_or_else(|| fail(format_args!("unknown format '{value}'")))?;
                match letter {
                    'o' => self.options.output = Some(format),
                    _ => self.options.input = Some(format),
                }
            }
        }
        Ok(())
    }

    fn long(&mut self, word: &str) -> Result<(), i32> {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let on = attached != Some("false");
        let options = &mut self.options;
        match name {
            "inplace" => options.in_place = on,
            "null-input" => options.null_input = on,
            "exit-status" => options.exit_status = on,
            "no-doc" => options.no_separators = on,
            "prettyPrint" => options.pretty = on,
            "tojson" => options.output = Some(Format::Json),
            "unwrapScalar" | "raw-output" => options.unwrap = Some(on),
            "colors" | "no-colors" | "verbose" | "header-preprocess" => {}
            "help" => return Err(print(HELP)),
            "version" => return Err(version()),
            "output-format" | "input-format" | "indent" => {
                let letter = match name {
                    "output-format" => 'o',
                    "input-format" => 'p',
                    _ => 'I',
                };
                let value = self.value(attached, &format!("--{name}"))?;
                return self.valued(letter, &value);
            }
            "expression" => self.expression = Some(self.value(attached, "--expression")?),
            "from-file" => {
                let file = self.value(attached, "--from-file")?;
                let text = super::read_file(&file)?;
                self.expression = Some(String::from_utf8_lossy(&text).into_owned());
            }
            _ => return Err(fail(format_args!("unknown flag: --{name}"))),
        }
        Ok(())
    }

    /// The expression is the first operand, unless that is a file and nothing follows it.
    fn finish(mut self) -> Result<Options, i32> {
        let is_verb = |word: &String| matches!(word.as_str(), "eval" | "e" | "eval-all" | "ea");
        if let Some(verb) = self.operands.first().filter(|word| is_verb(word)) {
            self.options.all_at_once = verb.starts_with("ea") || verb == "eval-all";
            self.operands.remove(0);
        }
        let only_a_file = matches!(&self.operands[..], [one] if std::path::Path::new(one).is_file());
        let expression = match self.expression.take() {
            Some(expression) => expression,
            None if self.operands.is_empty() || only_a_file => ".".into(),
            None => self.operands.remove(0),
        };
        self.options.expression = if expression.trim().is_empty() { ".".into() } else { expression };
        self.options.explodes = self.options.expression.contains("explode(");
        self.options.files = self.operands;
        if self.options.in_place && self.options.files.is_empty() {
            return Err(fail(
                "write in place flag only applicable when giving an expression and at least one file",
            ));
        }
        Ok(self.options)
    }
}

fn version() -> i32 {
    print(&format!(
        "yq (Wardian) {}, after yq (https://github.com/mikefarah/yq/) version v4\n",
        env!("CARGO_PKG_VERSION")
    ))
}

fn print(text: &str) -> i32 {
    i32::from(wardian_abi::write_all(1, text.as_bytes()).is_err())
}
