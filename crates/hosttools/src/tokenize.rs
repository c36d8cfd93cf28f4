//! Stage 2: splits a line into arguments by the shell's quoting rules, and by no other shell syntax.
//!
//! Everything else that a shell would do (pipes, expansions, comments, …) is rejected by name: an accepted line means
//! the same here as in a shell.

use std::iter::Peekable;
use std::str::Chars;

use crate::error::ToolError;

/// Returns the words of a line.
pub(crate) fn words(line: &str) -> Result<Vec<String>, ToolError> {
    let mut reader = Reader { rest: line.chars().peekable(), words: Vec::new(), word: None };
    while let Some(c) = reader.rest.next() {
        reader.take(c)?;
    }
    reader.end_word();
    if reader.words.is_empty() {
        return Err(refused("empty command"));
    }
    Ok(reader.words)
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    words: Vec<String>,
    /// The word being read; `''` is a word as well.
    word: Option<String>,
}

impl Reader<'_> {
    fn take(&mut self, c: char) -> Result<(), ToolError> {
        match c {
            ' ' | '\t' => self.end_word(),
            '\'' => self.single_quoted()?,
            '"' => self.double_quoted()?,
            '\\' => self.escaped()?,
            c => {
                if let Some(meaning) = metacharacter(c) {
                    return Err(refused(&format!("{} ({meaning}) outside quotes", shown(c))));
                }
                self.push(c)?;
            }
        }
        Ok(())
    }

    fn push(&mut self, c: char) -> Result<(), ToolError> {
        if c == '\0' {
            return Err(refused("a NUL character"));
        }
        self.word.get_or_insert_default().push(c);
        Ok(())
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn single_quoted(&mut self) -> Result<(), ToolError> {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next() {
                Some('\'') => return Ok(()),
                Some(c) => self.push(c)?,
                None => return Err(refused("unclosed '")),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<(), ToolError> {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next() {
                Some('"') => return Ok(()),
                Some('`') => return Err(refused("` (a command's output) inside double quotes")),
                Some('$') if self.rest.peek().is_some_and(|next| expands(*next)) => {
                    return Err(refused("$ (an expansion) inside double quotes"));
                }
                Some('\\') => self.escaped_in_quotes()?,
                Some(c) => self.push(c)?,
                None => return Err(refused("unclosed \"")),
            }
        }
    }

    fn escaped(&mut self) -> Result<(), ToolError> {
        match self.rest.next() {
            Some('\n') => Err(refused("a line that goes on after \\")),
            Some(c) => self.push(c),
            None => Err(refused("a \\ at the end")),
        }
    }

    /// In double quotes a backslash is literal unless the next character is special.
    fn escaped_in_quotes(&mut self) -> Result<(), ToolError> {
        match self.rest.peek() {
            Some('\n') => return Err(refused("a line that goes on after \\")),
            Some(&c @ ('$' | '`' | '"' | '\\')) => {
                self.rest.next();
                self.push(c)?;
            }
            _ => self.push('\\')?,
        }
        Ok(())
    }
}

/// Returns whether `$` before this character is more than a dollar sign.
fn expands(next: char) -> bool {
    next.is_ascii_alphanumeric() || "_{(@*#?-$!['".contains(next)
}

fn metacharacter(c: char) -> Option<&'static str> {
    Some(match c {
        '|' => "a pipe",
        '&' => "a background job or list",
        ';' => "a list",
        '$' => "an expansion",
        '`' => "a command's output",
        '(' | ')' => "a subshell",
        '{' | '}' => "a group",
        '<' | '>' => "a redirection",
        '#' => "a comment",
        '~' => "a home directory",
        '!' => "a negation or history",
        '\n' => "the end of a command",
        _ => return None,
    })
}

fn shown(c: char) -> String {
    if c == '\n' { "a newline".to_owned() } else { c.to_string() }
}

fn refused(what: &str) -> ToolError {
    ToolError::Syntax(what.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::words;

    /// Returns what a shell makes of the line: the words, or that it is not one plain command.
    fn of_bash(line: &str) -> Option<Vec<String>> {
        let script = format!("set -f; printf '%s\\0' {line}");
        let output = Command::new("bash").args(["--norc", "-c", &script]).env_clear().output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        (output.status.success() && output.stderr.is_empty())
            .then(|| text.split_terminator('\0').map(str::to_owned).collect())
    }

    #[test]
    fn quoting_is_the_shells() {
        for line in [
            "a b",
            "  a\t b ",
            "'' \"\" a''b",
            r#"a\ b "c d" 'e f'"#,
            r#""a\"b\\c\d\$e""#,
            r"a\'b\\c",
            r#"'a"b' "a'b""#,
            "\"a$\" 'x$y' \\$z",
            "a=b --c=d *.rs [x]? ^/%+,:@",
            "é ü\u{a0}x",
            "'a\nb'",
        ] {
            assert_eq!(words(line).ok(), of_bash(line), "{line:?}");
        }
    }

    #[test]
    fn every_metacharacter_is_refused_by_name_outside_quotes_and_taken_inside() {
        for c in "|&;$`(){}<>#~!\n".chars() {
            let error = words(&format!("ls a{c}b")).unwrap_err();
            assert_eq!(error.code(), "SYNTAX_DENIED");
            let name = if c == '\n' { "a newline".to_owned() } else { c.to_string() };
            assert!(error.to_string().contains(&name), "{c:?}: {error}");
            assert_eq!(words(&format!("ls 'a{c}b'")).unwrap()[1], format!("a{c}b"));
        }
    }

    #[test]
    fn what_a_shell_would_expand_in_double_quotes_is_refused() {
        for line in ["ls \"$HOME\"", "ls \"${x}\"", "ls \"$(id)\"", "ls \"`id`\"", "ls \"$1\"", "ls \"$?\""] {
            assert_eq!(words(line).unwrap_err().code(), "SYNTAX_DENIED", "{line}");
        }
    }

    #[test]
    fn half_a_command_is_refused() {
        for line in ["", "  ", "ls 'a", "ls \"a", "ls a\\", "ls \\\nb", "ls \"a\\\nb\"", "ls a\0b"] {
            assert_eq!(words(line).unwrap_err().code(), "SYNTAX_DENIED", "{line:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Whatever is accepted means the same to bash.
        #[test]
        fn a_line_that_is_taken_is_what_bash_makes_of_it(line in r#"x[a'"\\$ \t\n|;#~`=*é-]{0,12}"#) {
            if let Ok(words) = words(&line) {
                prop_assert_eq!(Some(words), of_bash(&line));
            }
        }
    }
}
