//! The functions of the language.

use super::Machine;
use crate::ast::Builtin;
use crate::code::special;
use crate::error::{Error, Result};
use crate::number;
use crate::random::Random;
use crate::streams;
use crate::text::{char_count, map_chars};
use crate::time;
use crate::value::Value;

impl Machine {
    /// Calls a function with the arguments on the stack; its answer goes to the stack it belongs on.
    pub(super) fn builtin(&mut self, builtin: Builtin, count: usize) -> Result<()> {
        let start = self.values.len() - count;
        let args = self.values.split_off(start);
        self.forget_origins(start);
        if builtin.is_numeric() {
            let number = self.numeric_builtin(builtin, &args)?;
            self.nums.push(number);
        } else {
            let value = match builtin {
                Builtin::Gensub => self.gensub(&args)?,
                Builtin::Sprintf => Value::Str(self.format(&args)?.into()),
                Builtin::Strftime => self.strftime(&args)?,
                Builtin::Substr => self.substr(&args),
                Builtin::Tolower => self.change_case(&args, false),
                Builtin::Toupper => self.change_case(&args, true),
                _ => Value::text(args[0].kind().as_bytes()),
            };
            self.values.push(value);
        }
        Ok(())
    }

    fn numeric_builtin(&mut self, builtin: Builtin, args: &[Value]) -> Result<f64> {
        let number = |index: usize| args.get(index).map_or(0.0, Value::to_num);
        Ok(match builtin {
            Builtin::Length => match &args[0] {
                Value::Array(array) => array.borrow().len() as f64,
                Value::Str(text) | Value::Strnum(text) => char_count(text.as_bytes()) as f64,
                other => char_count(other.to_str(&self.convfmt).as_bytes()) as f64,
            },
            Builtin::Index => self.index(args),
            Builtin::Split => self.split(args, false)?,
            Builtin::Patsplit => self.split(args, true)?,
            Builtin::Match => self.matched(args)?,
            Builtin::Asort => self.sort_array(args, false)?,
            Builtin::Asorti => self.sort_array(args, true)?,
            Builtin::Isarray => f64::from(u8::from(matches!(args[0], Value::Array(_)))),
            Builtin::Int => number(0).trunc(),
            Builtin::Sin => number(0).sin(),
            Builtin::Cos => number(0).cos(),
            Builtin::Atan2 => number(0).atan2(number(1)),
            Builtin::Exp => number(0).exp(),
            Builtin::Log => self.root_or_log("log", number(0), f64::ln),
            Builtin::Sqrt => self.root_or_log("sqrt", number(0), f64::sqrt),
            Builtin::Rand => self.random.draw(),
            Builtin::Srand => self.srand(args.first()),
            Builtin::And => bits("and", args, |left, right| left & right)?,
            Builtin::Or => bits("or", args, |left, right| left | right)?,
            Builtin::Xor => bits("xor", args, |left, right| left ^ right)?,
            Builtin::Lshift => shift("lshift", number(0), number(1), u64::wrapping_shl)?,
            Builtin::Rshift => shift("rshift", number(0), number(1), u64::wrapping_shr)?,
            Builtin::Compl => {
                let bits = not_negative("compl", number(0))?;
                (!bits & ((1 << 53) - 1)) as f64
            }
            Builtin::Strtonum => strtonum(&args[0]),
            Builtin::Systime => time::now() as f64,
            Builtin::Mktime => {
                let text = self.text_of(args, 0);
                time::mktime(text.as_bytes(), number(1) != 0.0) as f64
            }
            Builtin::System => self.system(args)?,
            Builtin::Close => {
                let name = self.text_of(args, 0);
                let end = self.text_of(args, 1);
                let closed = match (args.len(), end.as_bytes()) {
                    (..=1, _) => self.streams.close(name.as_bytes()),
                    (_, b"to" | b"To" | b"TO") => self.streams.close_end(name.as_bytes(), true),
                    (_, b"from" | b"From" | b"FROM") => self.streams.close_end(name.as_bytes(), false),
                    _ => return Err(Error::fatal("close: second argument must be `to' or `from'")),
                };
                if closed.is_none() {
                    self.globals[special::ERRNO as usize] =
                        Value::text(b"close of redirection that was never opened");
                }
                f64::from(closed.unwrap_or(-1))
            }
            Builtin::Fflush => self.fflush(args),
            _ => 0.0,
        })
    }

    /// A number below zero has neither: the answer is minus what is no number, on every machine.
    fn root_or_log(&mut self, name: &str, number: f64, function: fn(f64) -> f64) -> f64 {
        if number < 0.0 {
            self.warn(&format!("{name}: received negative argument {number}"));
            return f64::NAN.copysign(-1.0);
        }
        function(number)
    }

    fn srand(&mut self, seed: Option<&Value>) -> f64 {
        let before = self.random.seed;
        let seed = seed.map_or_else(|| time::now() as f64, Value::to_num);
        self.random = Random::new(seed);
        before
    }

    fn change_case(&self, args: &[Value], up: bool) -> Value {
        let text = self.text_of(args, 0);
        let changed = if up {
            map_chars(text.as_bytes(), <[u8]>::make_ascii_uppercase, |char, out| {
                out.push(one_char(char.to_uppercase(), char));
            })
        } else {
            map_chars(text.as_bytes(), <[u8]>::make_ascii_lowercase, |char, out| {
                out.push(one_char(char.to_lowercase(), char));
            })
        };
        Value::Str(changed.into())
    }

    fn strftime(&mut self, args: &[Value]) -> Result<Value> {
        let format = match args.first() {
            Some(format) => format.to_str(&self.convfmt).as_bytes().to_vec(),
            None => b"%a %b %e %H:%M:%S %Z %Y".to_vec(),
        };
        let seconds = args.get(1).map_or_else(time::now, |when| when.to_num() as i64);
        let utc = args.get(2).is_some_and(Value::is_true);
        Ok(Value::Str(time::strftime(&format, seconds, utc).into()))
    }

    fn system(&mut self, args: &[Value]) -> Result<f64> {
        let command = self.text_of(args, 0);
        let flushed = self.streams.flush_all();
        flushed.map_err(|error| Error::fatal(format_args!("error writing standard output: {error}")))?;
        match streams::spawn(command.as_bytes(), &[], &super::environment(&self.globals, &self.convfmt)) {
            Ok(child) => Ok(f64::from(streams::wait(child))),
            Err(error) => {
                self.warn(&format!("system: cannot run the shell: {error}"));
                Ok(-1.0)
            }
        }
    }

    fn fflush(&mut self, args: &[Value]) -> f64 {
        let name = self.text_of(args, 0);
        let flushed = match name.as_bytes() {
            b"" => Some(self.streams.flush_all()),
            name => self.streams.flush(name),
        };
        match flushed {
            Some(Ok(())) => 0.0,
            Some(Err(_)) | None => -1.0,
        }
    }
}

/// As for C's functions, one character becomes one character.
fn one_char(mut changed: impl Iterator<Item = char>, char: char) -> char {
    match (changed.next(), changed.next()) {
        (Some(changed), None) => changed,
        _ => char,
    }
}

fn not_negative(name: &str, number: f64) -> Result<u64> {
    if number < 0.0 {
        return Err(Error::fatal(format_args!("{name}({number}): negative values are not allowed")));
    }
    Ok(number as u64)
}

fn bits(name: &str, args: &[Value], op: fn(u64, u64) -> u64) -> Result<f64> {
    let mut result = not_negative(name, args[0].to_num())?;
    for arg in &args[1..] {
        result = op(result, not_negative(name, arg.to_num())?);
    }
    Ok(result as f64)
}

fn shift(name: &str, number: f64, by: f64, op: fn(u64, u32) -> u64) -> Result<f64> {
    let (bits, by) = (not_negative(name, number)?, not_negative(name, by)?);
    if by >= 64 {
        return Ok(0.0);
    }
    let shifted = op(bits, by as u32);
    // Only so many bits are exact in a number.
    let high = 64 - shifted.leading_zeros();
    let lost = high.saturating_sub(53);
    Ok(((shifted >> lost) << lost) as f64)
}

/// A number from text that may be octal or hexadecimal.
fn strtonum(value: &Value) -> f64 {
    let text = match value {
        Value::Str(text) | Value::Strnum(text) => text.as_bytes(),
        other => return other.to_num(),
    };
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(text.len());
    let in_base = |digits: &[u8], base: u32| {
        let digit = |byte: &u8| char::from(*byte).to_digit(base);
        digits.iter().map_while(digit).fold(0.0, |sum, digit| sum * f64::from(base) + f64::from(digit))
    };
    match &text[start..] {
        [b'0', b'x' | b'X', rest @ ..] => in_base(rest, 16),
        [b'0', rest @ ..]
            if rest.first().is_some_and(u8::is_ascii_digit)
                && !rest.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E' | b'8' | b'9')) =>
        {
            in_base(rest, 8)
        }
        _ => number::parse(text),
    }
}
