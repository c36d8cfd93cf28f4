//! The arguments of a call: each is checked, has a cap, and what nobody asks for is refused by its name.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::answer::Mistake;

/// How long a path may be.
const LONGEST_PATH: usize = 4096;
/// How long a name may be.
const LONGEST_NAME: usize = 256;
/// How many variables a command may be given, and how long each may be.
const MOST_VARIABLES: usize = 256;
const LONGEST_VARIABLE: usize = 64 << 10;

/// The arguments that have not been taken yet.
#[derive(Debug)]
pub(crate) struct Arguments {
    given: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Arguments {
    pub(crate) fn new(given: Option<Map<String, Value>>) -> Arguments {
        Arguments { given: given.unwrap_or_default(), known: Vec::new() }
    }

    /// Takes one; `null` counts as absent.
    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.given.remove(name).filter(|value| !value.is_null())
    }

    /// Takes text of at most `longest` bytes, which must be there.
    pub(crate) fn text(&mut self, name: &'static str, longest: usize) -> Result<String, Mistake> {
        self.optional_text(name, longest)?
            .ok_or_else(|| Mistake::new(format!("the argument '{name}' is missing")))
    }

    /// Takes text that may be absent.
    pub(crate) fn optional_text(
        &mut self,
        name: &'static str,
        longest: usize,
    ) -> Result<Option<String>, Mistake> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() > longest => {
                let length = text.len();
                Err(Mistake::new(format!(
                    "the argument '{name}' has {length} bytes; at most {longest} are accepted"
                )))
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, "a string", &other)),
        }
    }

    /// Takes a path; `default` if it is absent.
    pub(crate) fn path(&mut self, name: &'static str, default: Option<&str>) -> Result<String, Mistake> {
        let given = self.optional_text(name, LONGEST_PATH)?.or_else(|| default.map(str::to_owned));
        let path = given.ok_or_else(|| Mistake::new(format!("the argument '{name}' is missing")))?;
        if path.is_empty() || path.contains('\0') {
            return Err(Mistake::new(format!("the argument '{name}' must be a path")));
        }
        Ok(path)
    }

    /// Takes a name, which may be absent.
    pub(crate) fn name(&mut self, name: &'static str) -> Result<Option<String>, Mistake> {
        self.optional_text(name, LONGEST_NAME)
    }

    /// Takes a whole number within bounds.
    pub(crate) fn number(
        &mut self,
        name: &'static str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, Mistake> {
        let Some(value) = self.take(name) else { return Ok(None) };
        // Some clients send every number as a fraction.
        let whole = value.as_u64().or_else(|| {
            let number = value.as_f64()?;
            (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64)
        });
        match whole {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(wrong(name, &format!("a whole number from {least} to {most}"), &value)),
        }
    }

    /// Takes a number of seconds; more than `most` is as much as `most`.
    pub(crate) fn seconds(
        &mut self,
        name: &'static str,
        most: Duration,
    ) -> Result<Option<Duration>, Mistake> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.as_f64() {
            Some(seconds) if seconds > 0.0 => {
                Ok(Some(Duration::try_from_secs_f64(seconds).map_or(most, |asked| asked.min(most))))
            }
            _ => Err(wrong(name, "a positive number of seconds", &value)),
        }
    }

    /// Takes a switch; false if it is absent.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, Mistake> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong(name, "true or false", &other)),
        }
    }

    /// Takes variables: an object of strings.
    pub(crate) fn variables(&mut self, name: &'static str) -> Result<Vec<(String, String)>, Mistake> {
        let Some(value) = self.take(name) else { return Ok(Vec::new()) };
        let Value::Object(given) = value else { return Err(wrong(name, "an object of strings", &value)) };
        if given.len() > MOST_VARIABLES {
            return Err(Mistake::new(format!(
                "'{name}' has {} variables; at most {MOST_VARIABLES} are accepted",
                given.len()
            )));
        }
        let pair = |(variable, value): (String, Value)| match value {
            Value::String(text) if variable.len() + text.len() <= LONGEST_VARIABLE => Ok((variable, text)),
            Value::String(_) => Err(Mistake::new(format!(
                "the variable '{variable}' is longer than {LONGEST_VARIABLE} bytes"
            ))),
            other => Err(wrong(name, "an object of strings", &other)),
        };
        given.into_iter().map(pair).collect()
    }

    /// Refuses what nobody asked for.
    pub(crate) fn finish(self) -> Result<(), Mistake> {
        let Some(unknown) = self.given.keys().next() else { return Ok(()) };
        let shown: String = unknown.chars().take(80).collect();
        let hint = wardian::did_you_mean(unknown, self.known.iter().copied());
        let known = self.known.join(", ");
        Err(Mistake::new(format!("there is no argument '{shown}'{hint}; there are {known}")))
    }
}

fn wrong(name: &str, wanted: &str, value: &Value) -> Mistake {
    let shown: String = value.to_string().chars().take(80).collect();
    Mistake::new(format!("the argument '{name}' must be {wanted}, not {shown}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(given: Value) -> Arguments {
        Arguments::new(given.as_object().cloned())
    }

    #[test]
    fn mistakes_are_reported_in_a_sentence() {
        let mut given = arguments(
            json!({"text": 3, "long": "xxxx", "path": "", "n": -1, "s": 0, "flag": "yes", "env": {"A": 1}}),
        );
        let told = [
            given.text("text", 10).unwrap_err(),
            given.text("long", 3).unwrap_err(),
            given.path("path", None).unwrap_err(),
            given.text("none", 3).unwrap_err(),
            given.number("n", 1, 5).unwrap_err(),
            given.seconds("s", Duration::from_secs(1)).unwrap_err(),
            given.flag("flag").unwrap_err(),
            given.variables("env").unwrap_err(),
        ];
        let told: Vec<&str> = told.iter().map(Mistake::sentence).collect();
        assert_eq!(
            told,
            [
                "the argument 'text' must be a string, not 3",
                "the argument 'long' has 4 bytes; at most 3 are accepted",
                "the argument 'path' must be a path",
                "the argument 'none' is missing",
                "the argument 'n' must be a whole number from 1 to 5, not -1",
                "the argument 's' must be a positive number of seconds, not 0",
                "the argument 'flag' must be true or false, not \"yes\"",
                "the argument 'env' must be an object of strings, not 1",
            ]
        );
    }

    #[test]
    fn what_nobody_asks_for_is_refused_by_name() {
        let mut given = arguments(json!({"comand": "ls"}));
        assert_eq!(given.optional_text("command", 10).unwrap(), None);
        let told = given.finish().unwrap_err();
        assert_eq!(
            told.sentence(),
            "there is no argument 'comand' (did you mean command?); there are command"
        );
        assert!(arguments(json!({"a": null})).finish().is_err());
    }

    #[test]
    fn numbers_may_be_fractions_that_are_whole_and_timeouts_are_capped() {
        let mut given = arguments(json!({"n": 3.0, "s": 1e300}));
        assert_eq!(given.number("n", 1, 5).unwrap(), Some(3));
        assert_eq!(given.seconds("s", Duration::from_secs(7)).unwrap(), Some(Duration::from_secs(7)));
    }
}
