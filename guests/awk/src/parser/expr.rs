//! Expressions, from the loosest operator to the tightest.

use super::Parser;
use crate::ast::{Arith, Builtin, Expr, Name, Relation, Source};
use crate::error::Result;
use crate::lexer::{Token, Word};

/// So many operators may follow one another on one level: the tree of `a + b + c + …` is as deep as it is long.
const LONGEST: usize = 1000;

impl Parser<'_> {
    /// One or more expressions with commas between them.
    pub(super) fn expressions(&mut self) -> Result<Vec<Expr>> {
        let mut list = vec![self.expression_or_list()?];
        while self.take(",")? {
            self.skip_newlines()?;
            list.push(self.expression()?);
        }
        Ok(list)
    }

    /// An expression.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        match self.expression_or_list()? {
            Expr::List(_) => Err(self.unexpected()),
            expr => Ok(expr),
        }
    }

    fn expression_or_list(&mut self) -> Result<Expr> {
        self.nested(Self::conditional)
    }

    fn conditional(&mut self) -> Result<Expr> {
        let test = self.disjunction()?;
        if !self.is("?") {
            return Ok(test);
        }
        self.advance()?;
        self.skip_newlines()?;
        let yes = self.expression()?;
        self.skip_newlines()?;
        self.expect(":")?;
        self.skip_newlines()?;
        let no = self.expression()?;
        Ok(Expr::Cond(Box::new(test), Box::new(yes), Box::new(no)))
    }

    fn disjunction(&mut self) -> Result<Expr> {
        let mut left = self.conjunction()?;
        let mut count = 0;
        while self.is("||") {
            self.count(&mut count)?;
            self.advance()?;
            self.skip_newlines()?;
            left = Expr::Or(Box::new(left), Box::new(self.conjunction()?));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Expr> {
        let mut left = self.membership()?;
        let mut count = 0;
        while self.is("&&") {
            self.count(&mut count)?;
            self.advance()?;
            self.skip_newlines()?;
            left = Expr::And(Box::new(left), Box::new(self.membership()?));
        }
        Ok(left)
    }

    fn count(&self, count: &mut usize) -> Result<()> {
        *count += 1;
        if *count > LONGEST { Err(self.error("expression is too long")) } else { Ok(()) }
    }

    fn membership(&mut self) -> Result<Expr> {
        let mut left = self.matching()?;
        let mut count = 0;
        while self.token == Token::Word(Word::In) {
            self.count(&mut count)?;
            self.advance()?;
            let array = self.array_or_element()?;
            let keys = match left {
                Expr::List(keys) => keys,
                key => vec![key],
            };
            left = Expr::In(keys, Box::new(array));
        }
        Ok(left)
    }

    fn matching(&mut self) -> Result<Expr> {
        let mut left = self.comparison()?;
        let mut count = 0;
        while self.is("~") || self.is("!~") {
            self.count(&mut count)?;
            let negated = self.is("!~");
            self.advance()?;
            let pattern = self.comparison()?;
            left = Expr::Match { negated, subject: Box::new(left), pattern: Box::new(pattern) };
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Expr> {
        let left = self.concatenation()?;
        let relation = match self.token {
            Token::Mark("<") => Relation::Less,
            Token::Mark("<=") => Relation::LessEqual,
            Token::Mark("==") => Relation::Equal,
            Token::Mark("!=") => Relation::NotEqual,
            Token::Mark(">") if !self.no_greater => Relation::Greater,
            Token::Mark(">=") => Relation::GreaterEqual,
            _ => return Ok(left),
        };
        self.advance()?;
        let right = self.concatenation()?;
        Ok(Expr::Compare(relation, Box::new(left), Box::new(right)))
    }

    /// Concatenation, and commands piped to `getline`, which bind as loosely.
    pub(super) fn concatenation(&mut self) -> Result<Expr> {
        let first = self.sum()?;
        let mut left = self.concatenated(first)?;
        let mut count = 0;
        while (self.is("|") || self.is("|&")) && self.lexer.is_followed_by("getline") {
            self.count(&mut count)?;
            let is_coprocess = self.is("|&");
            self.advance()?;
            self.advance()?;
            let var = self.optional_target()?;
            let command = Box::new(left);
            let from = if is_coprocess { Source::Coprocess(command) } else { Source::Command(command) };
            left = Expr::Getline { from, var };
            left = self.concatenated(left)?;
        }
        Ok(left)
    }

    fn concatenated(&mut self, first: Expr) -> Result<Expr> {
        if !self.begins_operand() {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.begins_operand() {
            parts.push(self.sum()?);
        }
        Ok(Expr::Concat(parts))
    }

    /// Whether what comes next can stand behind an expression to be joined to it.
    fn begins_operand(&self) -> bool {
        match self.token {
            Token::Number(_) | Token::Text(_) | Token::Name(_) | Token::Call(_) | Token::Builtin(_) => true,
            Token::Word(word) => word == Word::Getline,
            Token::Mark(mark) => matches!(mark, "$" | "!" | "(" | "++" | "--" | "-" | "+" | "@"),
            _ => false,
        }
    }

    fn sum(&mut self) -> Result<Expr> {
        let mut left = self.product()?;
        let mut count = 0;
        loop {
            let op = match self.token {
                Token::Mark("+") => Arith::Add,
                Token::Mark("-") => Arith::Sub,
                _ => return Ok(left),
            };
            self.count(&mut count)?;
            self.advance()?;
            left = Expr::Binary(op, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expr> {
        let mut left = self.unary()?;
        let mut count = 0;
        loop {
            let op = match self.token {
                Token::Mark("*") => Arith::Mul,
                Token::Mark("/") => Arith::Div,
                Token::Mark("%") => Arith::Mod,
                _ => return Ok(left),
            };
            self.count(&mut count)?;
            self.advance()?;
            left = Expr::Binary(op, Box::new(left), Box::new(self.unary()?));
        }
    }

    fn unary(&mut self) -> Result<Expr> {
        let wrap: fn(Box<Expr>) -> Expr = match self.token {
            Token::Mark("!") => Expr::Not,
            Token::Mark("-") => Expr::Negate,
            Token::Mark("+") => Expr::Plus,
            _ => return self.power(),
        };
        self.advance()?;
        Ok(wrap(Box::new(self.nested(Self::unary)?)))
    }

    fn power(&mut self) -> Result<Expr> {
        let base = self.postfix()?;
        if !self.take("^")? {
            return Ok(base);
        }
        let exponent = self.nested(Self::unary)?;
        Ok(Expr::Binary(Arith::Pow, Box::new(base), Box::new(exponent)))
    }

    /// An operand, with `++` or `--` behind it, or assigned to.
    fn postfix(&mut self) -> Result<Expr> {
        let operand = self.primary()?;
        if !is_target(&operand) {
            return Ok(operand);
        }
        let update = match self.token {
            Token::Mark("++") | Token::Mark("--") => {
                let up = self.is("++");
                self.advance()?;
                return Ok(Expr::Step { target: Box::new(operand), up, prefix: false });
            }
            Token::Mark("=") => None,
            Token::Mark("+=") => Some(Arith::Add),
            Token::Mark("-=") => Some(Arith::Sub),
            Token::Mark("*=") => Some(Arith::Mul),
            Token::Mark("/=") => Some(Arith::Div),
            Token::Mark("%=") => Some(Arith::Mod),
            Token::Mark("^=") => Some(Arith::Pow),
            _ => return Ok(operand),
        };
        self.advance()?;
        self.skip_newlines()?;
        let value = Box::new(self.expression()?);
        Ok(match update {
            None => Expr::Assign(Box::new(operand), value),
            Some(op) => Expr::Update(op, Box::new(operand), value),
        })
    }

    fn primary(&mut self) -> Result<Expr> {
        match self.token.clone() {
            Token::Number(number) => {
                self.advance()?;
                Ok(Expr::Number(number))
            }
            Token::Text(text) => {
                self.advance()?;
                Ok(Expr::Text(text))
            }
            Token::Mark("/" | "/=") => Ok(Expr::Regex(self.pattern()?)),
            Token::Mark("(") => self.group(),
            Token::Mark("$") => {
                self.advance()?;
                Ok(Expr::Field(Box::new(self.nested(Self::field_number)?)))
            }
            Token::Mark("++" | "--") => self.prefix_step(),
            Token::Mark("@") => self.at_sign(),
            Token::Builtin(builtin) => self.builtin(builtin),
            Token::Call(name) => {
                let line = self.line();
                self.advance()?;
                Ok(Expr::Call(name, self.arguments()?, line))
            }
            Token::Name(_) => self.array_or_element(),
            Token::Word(Word::Getline) => self.getline(),
            _ => Err(self.unexpected()),
        }
    }

    fn pattern(&mut self) -> Result<Vec<u8>> {
        match self.lexer.pattern() {
            Ok(pattern) => {
                self.advance()?;
                Ok(pattern)
            }
            Err(message) => Err(self.error(&message)),
        }
    }

    /// Whatever stands in parentheses or brackets knows nothing of the statement around it.
    fn inside<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outer = std::mem::take(&mut self.no_greater);
        let answer = read(self);
        self.no_greater = outer;
        answer
    }

    fn group(&mut self) -> Result<Expr> {
        self.advance()?;
        let mut list = self.inside(|parser| {
            parser.skip_newlines()?;
            let list = parser.expressions()?;
            parser.skip_newlines()?;
            Ok(list)
        })?;
        self.expect(")")?;
        match (list.len(), list.pop()) {
            (1, Some(Expr::List(_))) | (_, None) => Err(self.unexpected()),
            (1, Some(expr)) => Ok(Expr::Group(Box::new(expr))),
            (_, Some(last)) => {
                list.push(last);
                Ok(Expr::List(list))
            }
        }
    }

    /// What stands behind a `$`: it binds tighter than any operator but those before it.
    fn field_number(&mut self) -> Result<Expr> {
        let wrap: fn(Box<Expr>) -> Expr = match self.token {
            Token::Mark("-") => Expr::Negate,
            Token::Mark("+") => Expr::Plus,
            Token::Mark("!") => Expr::Not,
            _ => return self.primary(),
        };
        self.advance()?;
        Ok(wrap(Box::new(self.nested(Self::field_number)?)))
    }

    fn prefix_step(&mut self) -> Result<Expr> {
        let up = self.is("++");
        self.advance()?;
        let target = self.nested(Self::primary)?;
        if !is_target(&target) {
            return Err(self.unexpected());
        }
        Ok(Expr::Step { target: Box::new(target), up, prefix: true })
    }

    /// `@/pattern/` or `@function(…)`.
    fn at_sign(&mut self) -> Result<Expr> {
        self.advance()?;
        match self.token.clone() {
            Token::Mark("/" | "/=") => Ok(Expr::TypedRegex(self.pattern()?)),
            Token::Call(name) => {
                self.advance()?;
                Ok(Expr::CallNamed(name, self.arguments()?))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expr>> {
        self.expect("(")?;
        let arguments = self.inside(|parser| {
            parser.skip_newlines()?;
            if parser.is(")") {
                return Ok(Vec::new());
            }
            let arguments = parser.expressions()?;
            parser.skip_newlines()?;
            Ok(arguments)
        })?;
        if matches!(arguments.first(), Some(Expr::List(_))) {
            return Err(self.unexpected());
        }
        self.expect(")")?;
        Ok(arguments)
    }

    fn builtin(&mut self, builtin: Builtin) -> Result<Expr> {
        self.advance()?;
        if !self.is("(") {
            return match builtin {
                Builtin::Length => Ok(Expr::Builtin(builtin, Vec::new())),
                _ => Err(self.unexpected()),
            };
        }
        let arguments = self.arguments()?;
        let (least, most) = builtin.arity();
        if arguments.len() < least || arguments.len() > most {
            let (count, name) = (arguments.len(), builtin.name());
            return Err(self.error(&format!("{count} is invalid as number of arguments for {name}")));
        }
        Ok(Expr::Builtin(builtin, arguments))
    }

    /// A variable, or an element of an array in one.
    pub(super) fn array_or_element(&mut self) -> Result<Expr> {
        let Token::Name(name) = self.token.clone() else { return Err(self.unexpected()) };
        self.advance()?;
        self.subscripts(name)
    }

    fn subscripts(&mut self, name: Name) -> Result<Expr> {
        let mut target = Expr::Var(name);
        let mut count = 0;
        while self.is("[") {
            self.count(&mut count)?;
            self.advance()?;
            let keys = self.inside(Self::expressions)?;
            if matches!(keys.first(), Some(Expr::List(_))) {
                return Err(self.unexpected());
            }
            self.expect("]")?;
            target = Expr::Index(Box::new(target), keys);
        }
        Ok(target)
    }

    fn getline(&mut self) -> Result<Expr> {
        self.advance()?;
        let var = self.optional_target()?;
        let from =
            if self.take("<")? { Source::File(Box::new(self.nested(Self::primary)?)) } else { Source::Main };
        Ok(Expr::Getline { from, var })
    }

    /// What `getline` reads into, if that is said.
    fn optional_target(&mut self) -> Result<Option<Box<Expr>>> {
        let begins = matches!(self.token, Token::Name(_)) || self.is("$");
        if begins { Ok(Some(Box::new(self.nested(Self::primary)?))) } else { Ok(None) }
    }
}

/// Whether an expression can be assigned to.
fn is_target(expr: &Expr) -> bool {
    matches!(expr, Expr::Var(_) | Expr::Field(_) | Expr::Index(..))
}
