//! `as` and what may follow it.

use crate::lang::lexer::Token;
use crate::lang::tree::{Bind, Entry, Expr, Key, Node, Pattern};
use crate::value::Value;

use super::{Parser, Problem};

impl Parser<'_> {
    /// `as PATTERN ?// PATTERN…`: the variables are in scope from here on.
    pub(super) fn bind(&mut self, source: Entry) -> Result<Bind, Problem> {
        self.expect_name("as")?;
        let names = self.variables_ahead();
        for name in &names {
            self.scope.add_variable(name.clone());
        }
        let mut patterns = vec![self.pattern(&names)?];
        while self.skip_sign("?//") {
            patterns.push(self.pattern(&names)?);
        }
        Ok(Bind { source, patterns, variables: names.len() })
    }

    /// The variables of the patterns that follow, each once, in order: an expression within may use any of them.
    fn variables_ahead(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let (mut brackets, mut within_key) = (0usize, 0usize);
        for word in &self.words[self.at..] {
            match &word.token {
                Token::Sign("(") => within_key += 1,
                Token::Sign(")") if within_key > 0 => within_key -= 1,
                Token::Sign(")") | Token::End => break,
                _ if within_key > 0 => {}
                Token::Sign("[" | "{") => brackets += 1,
                Token::Sign("]" | "}") => brackets = brackets.saturating_sub(1),
                Token::Sign("|") if brackets == 0 => break,
                Token::Variable(name) if !names.contains(name) => names.push(name.clone()),
                _ => {}
            }
            // `reduce SOURCE as PATTERN (`: the bracket that follows a whole pattern is no key.
            if within_key > 0 && brackets == 0 {
                break;
            }
        }
        names
    }

    fn pattern(&mut self, names: &[String]) -> Result<Pattern, Problem> {
        self.nested(|parser| match parser.token().clone() {
            Token::Variable(name) => {
                parser.advance();
                Ok(Pattern::Variable(parser.place_of(&name, names)?))
            }
            Token::Sign("[") => {
                parser.advance();
                let mut items = vec![parser.pattern(names)?];
                while parser.skip_sign(",") {
                    items.push(parser.pattern(names)?);
                }
                parser.expect_sign("]")?;
                Ok(Pattern::Array(items))
            }
            Token::Sign("{") => {
                parser.advance();
                let mut entries = vec![parser.pattern_entry(names)?];
                while parser.skip_sign(",") {
                    entries.push(parser.pattern_entry(names)?);
                }
                parser.expect_sign("}")?;
                Ok(Pattern::Object(entries))
            }
            _ => Err(parser.unexpected()),
        })
    }

    fn place_of(&self, name: &str, names: &[String]) -> Result<usize, Problem> {
        names.iter().position(|known| known == name).ok_or_else(|| self.unexpected())
    }

    fn pattern_entry(&mut self, names: &[String]) -> Result<(Key, Option<Pattern>), Problem> {
        let constant = |name: &str| Expr::keep(Node::Const(Value::string(name)));
        let (expr, variable) = match self.token().clone() {
            Token::Variable(name) => {
                self.advance();
                let place = self.place_of(&name, names)?;
                (constant(&name), Some(place))
            }
            Token::Name(name) => {
                self.advance();
                (constant(&name), None)
            }
            Token::String(_) => (self.term_without_suffix()?, None),
            Token::Sign("(") => {
                self.advance();
                let expr = self.pipe()?;
                self.expect_sign(")")?;
                (expr, None)
            }
            _ => return Err(self.unexpected()),
        };
        let inner = match self.skip_sign(":") {
            true => Some(self.pattern(names)?),
            false if variable.is_some() => None,
            false => return Err(self.unexpected()),
        };
        Ok((Key { expr, variable }, inner))
    }
}
