//! `[[ ]]`.

use crate::arith::ArithError;
use crate::ast::{Condition, Word};
use crate::shell::{Exec, Flow, Shell};
use crate::vars::{Indexed, Value};
use wardian_regex::small::{Manner, Regex, Style};

impl Shell {
    /// The status of a condition: 0 true, 1 false, 2 wrong.
    pub(super) fn run_test(&mut self, condition: &Condition) -> Exec {
        match self.test(condition) {
            Ok(true) => Ok(0),
            Ok(false) => Ok(1),
            // A test that cannot be made has said so; `Break(0)` carries its status here.
            Err(Flow::Break(0)) => Ok(self.status),
            Err(flow) => Err(flow),
        }
    }

    /// A chain of `&&` and `||` leans to the left, however long it is: its end is found without recursion.
    fn test(&mut self, condition: &Condition) -> Exec<bool> {
        let (mut first, mut rest) = (condition, Vec::new());
        loop {
            first = match first {
                Condition::And(left, right) => {
                    rest.push((true, right));
                    left
                }
                Condition::Or(left, right) => {
                    rest.push((false, right));
                    left
                }
                _ => break,
            };
        }
        let mut value = self.test_one(first)?;
        while let Some((goes_on_if, right)) = rest.pop() {
            if value == goes_on_if {
                value = self.test(right)?;
            }
        }
        Ok(value)
    }

    fn test_one(&mut self, condition: &Condition) -> Exec<bool> {
        match condition {
            Condition::Not(inner) => {
                let negated = self.trace_negated;
                self.trace_negated = !negated;
                let result = self.test(inner);
                self.trace_negated = negated;
                Ok(!result?)
            }
            Condition::And(..) | Condition::Or(..) => self.test(condition),
            Condition::Group(inner) => self.test(inner),
            Condition::Word(word) => {
                let text = self.expand_string(word)?;
                self.trace_test(&[b"-n", &text]);
                Ok(!text.is_empty())
            }
            Condition::Unary(operator, word) => {
                let text = self.expand_string(word)?;
                self.trace_test(&[operator, &text]);
                Ok(self.test_unary(operator[1], &text))
            }
            Condition::Binary(left, operator, right) => self.test_binary(left, operator, right),
        }
    }

    fn trace_test(&mut self, parts: &[&[u8]]) {
        if self.options.xtrace {
            let shown: Vec<Vec<u8>> = parts
                .iter()
                .map(|part| if part.is_empty() { b"''".to_vec() } else { part.to_vec() })
                .collect();
            let negation: &[u8] = if self.trace_negated { b"! " } else { b"" };
            self.trace(&[b"[[ ", negation, shown.join(&b' ').as_slice(), b" ]]"].concat());
        }
    }

    fn test_binary(&mut self, left: &Word, operator: &[u8], right: &Word) -> Exec<bool> {
        let subject = self.expand_string(left)?;
        match operator {
            b"=" | b"==" | b"!=" => {
                let fold = self.shopt.get("nocasematch");
                let text = self.expand_pattern_text(right)?;
                self.trace_test(&[&subject, operator, &text]);
                let style = crate::pattern::Style { extended: true, fold, utf8: self.utf8() };
                let matched = crate::pattern::Pattern::new(&text, style).matches(&subject);
                Ok(matched == (operator != b"!="))
            }
            b"=~" => self.test_regex(&subject, right),
            b"<" | b">" => {
                let other = self.expand_string(right)?;
                self.trace_test(&[&subject, operator, &other]);
                Ok(if operator == b"<" { subject < other } else { subject > other })
            }
            b"-nt" | b"-ot" | b"-ef" => {
                let other = self.expand_string(right)?;
                Ok(crate::builtins::compare_files(&subject, operator, &other))
            }
            _ => {
                let other = self.expand_string(right)?;
                self.trace_test(&[&subject, operator, &other]);
                let left = self.test_number(&subject)?;
                let right = self.test_number(&other)?;
                Ok(crate::builtins::compare_numbers(left, operator, right))
            }
        }
    }

    fn test_number(&mut self, text: &[u8]) -> Exec<i64> {
        match self.arith_text(text) {
            Ok(value) => Ok(value),
            Err(ArithError::Flow(flow)) => Err(flow),
            Err(error) => {
                self.complain_arith(b"[[: ", &error);
                self.status = 1;
                Err(Flow::Break(0))
            }
        }
    }

    fn test_regex(&mut self, subject: &[u8], right: &Word) -> Exec<bool> {
        let text = self.expand_regex(right)?;
        self.trace_test(&[subject, b"=~", &text]);
        let fold = self.shopt.get("nocasematch");
        let manner = Manner { style: Style::Shell, fold, utf8: self.utf8() };
        let Some(regex) = Regex::new(&text, manner) else {
            self.status = 2;
            return Err(Flow::Break(0));
        };
        let found = regex.find_at(subject, 0);
        let groups: Indexed = match &found {
            Some(groups) => groups
                .iter()
                .map(|group| group.map_or_else(Vec::new, |(start, end)| subject[start..end].to_vec()))
                .collect(),
            None => Indexed::default(),
        };
        self.vars.entry(b"BASH_REMATCH").value = Value::Indexed(groups);
        Ok(found.is_some())
    }
}
