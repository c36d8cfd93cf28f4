//! Functions that decide, define, run and say something.

use wardian_abi::{self as abi, Dir, Errno, open_flags as flags};

use super::named;
use crate::make::{Make, Res};
use crate::text;
use crate::variables::{Operator, Origin, Table, Variable};

pub fn condition(make: &mut Make, arguments: &[&[u8]]) -> Res<Vec<u8>> {
    match make.expand(text::trim(arguments[0]))?.is_empty() {
        false => make.expand(arguments[1]),
        true => arguments.get(2).map_or(Ok(Vec::new()), |otherwise| make.expand(otherwise)),
    }
}

pub fn or(make: &mut Make, arguments: &[&[u8]]) -> Res<Vec<u8>> {
    for argument in arguments {
        let value = make.expand(text::trim(argument))?;
        if !value.is_empty() {
            return Ok(value);
        }
    }
    Ok(Vec::new())
}

pub fn and(make: &mut Make, arguments: &[&[u8]]) -> Res<Vec<u8>> {
    let mut value = Vec::new();
    for argument in arguments {
        value = make.expand(text::trim(argument))?;
        if value.is_empty() {
            break;
        }
    }
    Ok(value)
}

pub fn foreach(make: &mut Make, arguments: &[&[u8]]) -> Res<Vec<u8>> {
    let name = text::trim(&make.expand(arguments[0])?).to_vec();
    let list = make.expand(arguments[1])?;
    let mut results: Vec<Vec<u8>> = Vec::new();
    for word in text::words(&list) {
        let variable = Variable::new(word, false, Origin::Automatic);
        make.frames.push(Table::from([(name.clone(), variable)]));
        let value = make.expand(arguments[2]);
        make.frames.pop();
        results.push(value?);
    }
    Ok(results.join(&b' '))
}

pub fn call(make: &mut Make, arguments: &[Vec<u8>]) -> Res<Vec<u8>> {
    let name = text::trim(&arguments[0]).to_vec();
    match named(&name) {
        Some(function) => {
            make.check_count(function, &arguments[1..])?;
            make.apply(function, arguments[1..].to_vec())
        }
        None => {
            let arguments = std::iter::once(name.clone()).chain(arguments[1..].iter().cloned());
            make.call(&name, arguments.collect())
        }
    }
}

pub fn eval(make: &mut Make, arguments: &[Vec<u8>]) -> Res<Vec<u8>> {
    make.read_evaluated(&arguments[0])?;
    Ok(Vec::new())
}

pub fn value(make: &mut Make, arguments: &[Vec<u8>]) -> Res<Vec<u8>> {
    Ok(make.look_up(text::trim(&arguments[0])).map(|variable| variable.value).unwrap_or_default())
}

pub fn origin(make: &mut Make, arguments: &[Vec<u8>]) -> Res<Vec<u8>> {
    let variable = make.look_up(text::trim(&arguments[0]));
    Ok(variable.map_or("undefined", |variable| variable.origin.name()).into())
}

pub fn flavor(make: &mut Make, arguments: &[Vec<u8>]) -> Res<Vec<u8>> {
    let variable = make.look_up(text::trim(&arguments[0]));
    let flavor = variable.map_or("undefined", |one| if one.recursive { "recursive" } else { "simple" });
    Ok(flavor.into())
}

pub fn info(make: &mut Make, arguments: &[Vec<u8>]) -> Res<Vec<u8>> {
    make.say_bytes(&arguments[0]);
    Ok(Vec::new())
}

pub fn warning(make: &mut Make, arguments: &[Vec<u8>]) -> Res<Vec<u8>> {
    make.note(&text::shown(&arguments[0]));
    Ok(Vec::new())
}

pub fn error(make: &mut Make, arguments: &[Vec<u8>]) -> Res<Vec<u8>> {
    Err(make.fatal(&text::shown(&arguments[0])))
}

/// Runs a command and answers what it wrote, in one line.
pub fn shell(make: &mut Make, arguments: &[Vec<u8>]) -> Res<Vec<u8>> {
    let (mut output, status) = make.capture(&arguments[0])?;
    make.globals.insert(
        b".SHELLSTATUS".to_vec(),
        Variable::new(status.shell_code().to_string(), false, Origin::Override),
    );
    while output.last() == Some(&b'\n') {
        output.pop();
    }
    for byte in &mut output {
        if *byte == b'\n' {
            *byte = b' ';
        }
    }
    Ok(output)
}

/// `$(file >name,text)`, `$(file >>name,text)` and `$(file <name)`.
pub fn file(make: &mut Make, arguments: &[Vec<u8>]) -> Res<Vec<u8>> {
    let first = text::trim(&arguments[0]);
    let (mode, rest) = match first {
        [b'>', b'>', rest @ ..] => (flags::WRONLY | flags::CREAT | flags::APPEND, rest),
        [b'>', rest @ ..] => (flags::WRONLY | flags::CREAT | flags::TRUNC, rest),
        [b'<', rest @ ..] => (flags::RDONLY, rest),
        _ => {
            let message = format!("file: invalid file operation: {}", text::shown(first));
            return Err(make.fatal(&message));
        }
    };
    let name = text::trim(rest);
    if name.is_empty() {
        return Err(make.fatal("file: missing filename"));
    }
    if mode == flags::RDONLY && arguments.len() > 1 {
        return Err(make.fatal("file: too many arguments"));
    }
    match transfer(name, mode, arguments.get(1)) {
        Ok(content) => Ok(content),
        Err(Errno::NOENT) if mode == flags::RDONLY => Ok(Vec::new()),
        Err(error) => Err(make.fatal(&format!("open: {}: {error}", text::shown(name)))),
    }
}

fn transfer(name: &[u8], mode: u32, written: Option<&Vec<u8>>) -> Result<Vec<u8>, Errno> {
    let fd = abi::open(Dir::CWD, name, mode | flags::CLOEXEC, 0o666)?;
    let result = match (mode, written) {
        (flags::RDONLY, _) => toolkit::files::read_fd(fd).map(|mut content| {
            if content.last() == Some(&b'\n') {
                content.pop();
            }
            content
        }),
        (_, None) => Ok(Vec::new()),
        (_, Some(text)) => {
            let newline: &[u8] = if text.ends_with(b"\n") { b"" } else { b"\n" };
            abi::write_all(fd, &[text, newline].concat()).map(|()| Vec::new())
        }
    };
    abi::close(fd)?;
    result
}

impl Make {
    /// The value of a definition, as its operator takes it.
    pub fn defined_value(&mut self, operator: Operator, value: &[u8]) -> Res<(Vec<u8>, bool)> {
        match operator {
            Operator::Simple => Ok((self.expand(value)?, false)),
            Operator::Shell => {
                let command = self.expand(value)?;
                Ok((shell(self, &[command])?, true))
            }
            _ => Ok((value.to_vec(), true)),
        }
    }
}
