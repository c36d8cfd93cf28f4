//! Reading makefiles: directives, definitions and rules, line by line.

use std::rc::Rc;

use wardian_abi::{self as abi, Dir, Errno, open_flags};

use crate::conditions::{Conditions, split_word};
use crate::lines::{Lines, collapse, without_comment};
use crate::make::{Make, Makefile, Place, Res};
use crate::rules::{Pending, Recipe};
use crate::text::{self, Pattern};
use crate::variables::{Origin, Variable, appended, definition};
use crate::wildcard;

/// Where files are looked for that `include` names, after the directory and those of `-I`.
pub const INCLUDE_DIRECTORIES: [&str; 3] = ["/usr/include", "/usr/local/include", "/usr/gnu/include"];

/// How deep makefiles may include each other.
const DEEPEST: usize = 200;

/// What is open while a text is read.
struct Reading {
    file: Rc<str>,
    conditions: Conditions,
    rule: Option<Pending>,
    /// A rule without targets: its recipe is passed over.
    no_targets: bool,
}

impl Make {
    /// Reads a makefile; answers whether it was there.
    pub fn read_makefile(&mut self, name: &[u8], required: bool) -> Res<bool> {
        let found = self.open_makefile(name, name == b"-")?;
        let place = self.place.clone();
        let shown = found.as_ref().map_or(name, |(path, _)| path).to_vec();
        self.makefiles.push(Makefile { name: shown, required, found: found.is_some(), place });
        let Some((path, content)) = found else { return Ok(false) };
        if self.makefiles.len() > DEEPEST * 50 || self.depth > DEEPEST {
            return Err(self.fatal("makefiles include each other endlessly"));
        }
        let list = self.globals.get(&b"MAKEFILE_LIST"[..]).map(|list| list.value.clone()).unwrap_or_default();
        let list = appended(&list, &path);
        self.globals.insert(b"MAKEFILE_LIST".to_vec(), Variable::new(list, false, Origin::File));
        self.depth += 1;
        self.read_text(&content, &text::shown(&path), 1)?;
        self.depth -= 1;
        Ok(true)
    }

    fn open_makefile(&mut self, name: &[u8], standard_input: bool) -> Res<Option<(Vec<u8>, Vec<u8>)>> {
        if standard_input {
            let content = toolkit::files::read_fd(0);
            return match content {
                Ok(content) => Ok(Some((b"-".to_vec(), content))),
                Err(error) => Err(self.fatal_anywhere(&format!("read error: stdin: {error}"))),
            };
        }
        let mut paths = vec![name.to_vec()];
        if !name.starts_with(b"/") {
            let given = self.options.include.iter().map(Vec::as_slice);
            let all = given.chain(INCLUDE_DIRECTORIES.iter().map(|directory| directory.as_bytes()));
            paths.extend(all.map(|directory| toolkit::files::join(directory, name)));
        }
        for path in paths {
            let opened = abi::open(Dir::CWD, &path, open_flags::RDONLY | open_flags::CLOEXEC, 0);
            let content = opened.and_then(|fd| {
                let content = toolkit::files::read_fd(fd);
                let _ = abi::close(fd);
                content
            });
            match content {
                Ok(content) => return Ok(Some((path, content))),
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => return Err(self.fatal(&format!("{}: {error}", text::shown(&path)))),
            }
        }
        Ok(None)
    }

    /// Reads what `$(eval)` or `--eval` gives.
    pub fn read_evaluated(&mut self, content: &[u8]) -> Res<()> {
        let place = self.place.clone();
        let (file, line) = match &place {
            Some(place) => (place.file.to_string(), place.line),
            None => (self.name.clone(), 1),
        };
        self.read_text(content, &file, line)?;
        self.place = place;
        Ok(())
    }

    fn read_text(&mut self, content: &[u8], file: &str, first: usize) -> Res<()> {
        let file: Rc<str> = file.into();
        let outer = self.place.take();
        let mut lines = Lines::new(content, first);
        let mut reading = Reading { file, conditions: Conditions::default(), rule: None, no_targets: false };
        while let Some((line, number)) = lines.next() {
            self.place = Some(Place { file: reading.file.clone(), line: number });
            self.line(&mut reading, &mut lines, line, number)?;
        }
        if !reading.conditions.is_closed() {
            self.place = Some(Place { file: reading.file.clone(), line: lines.number() });
            return Err(self.fatal("missing 'endif'"));
        }
        self.end_rule(&mut reading)?;
        self.place = outer;
        Ok(())
    }

    fn line(&mut self, reading: &mut Reading, lines: &mut Lines<'_>, raw: &[u8], number: usize) -> Res<()> {
        let prefix = self.recipe_prefix();
        if raw.first() == Some(&prefix) {
            if !reading.conditions.active() || reading.no_targets {
                return Ok(());
            }
            if let Some(rule) = &mut reading.rule {
                rule.recipe.lines.push((recipe_line(&raw[1..], prefix), number));
                rule.has_recipe = true;
                return Ok(());
            }
        }
        let line = without_comment(&collapse(raw));
        let trimmed = text::trim(&line);
        if trimmed.is_empty() {
            return Ok(());
        }
        // A definition may be of a variable with the name of a directive.
        let defined = definition(trimmed);
        if defined.is_none() && reading.conditions.take(self, trimmed)? {
            return Ok(());
        }
        if !reading.conditions.active() {
            self.pass_over(lines, trimmed, defined.is_some());
            return Ok(());
        }
        if self.directive(reading, lines, text::trim_start(&line))? {
            return Ok(());
        }
        if raw.first() == Some(&prefix) {
            return Err(self.fatal("recipe commences before first target"));
        }
        self.end_rule(reading)?;
        self.rule_line(reading, raw, text::trim_start(&line), number)
    }

    fn recipe_prefix(&self) -> u8 {
        let set = self.globals.get(&b".RECIPEPREFIX"[..]);
        set.and_then(|variable| variable.value.first().copied()).unwrap_or(b'\t')
    }

    /// Passes over the body of a `define` in a branch that does not count.
    fn pass_over(&mut self, lines: &mut Lines<'_>, line: &[u8], defined: bool) {
        let (word, _) = split_word(line);
        if !defined && word == b"define" {
            let mut depth = 1;
            while depth > 0
                && let Some((line, _)) = lines.next()
            {
                match split_word(line).0 {
                    b"define" => depth += 1,
                    b"endef" => depth -= 1,
                    _ => {}
                }
            }
        }
    }

    /// Handles a line that is not a rule; answers whether it was one such.
    fn directive(&mut self, reading: &mut Reading, lines: &mut Lines<'_>, line: &[u8]) -> Res<bool> {
        if let Some(found) = self.definition_line(lines, line)? {
            self.end_rule(reading)?;
            found.carry_out(self)?;
            return Ok(true);
        }
        let (word, rest) = split_word(line);
        match word {
            b"include" | b"-include" | b"sinclude" => {
                self.end_rule(reading)?;
                self.include(rest, word == b"include")?;
            }
            b"vpath" => {
                self.end_rule(reading)?;
                self.vpath(rest)?;
            }
            b"undefine" => {
                self.end_rule(reading)?;
                let name = text::trim(&self.expand(rest)?).to_vec();
                if self.globals.get(&name).is_some_and(|variable| variable.origin < Origin::CommandLine) {
                    self.globals.remove(&name);
                }
            }
            b"endef" => return Err(self.fatal("extraneous 'endef'")),
            b"load" | b"-load" => {
                return Err(self.fatal("the 'load' directive is not supported in the sandbox"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn include(&mut self, names: &[u8], required: bool) -> Res<()> {
        let names = self.expand(names)?;
        for word in text::words(&names) {
            for name in wildcard::or_itself(word) {
                let place = self.place.clone();
                self.read_makefile(&name, required)?;
                self.place = place;
            }
        }
        Ok(())
    }

    /// `vpath PATTERN DIRECTORIES`; without directories what was said before is forgotten.
    fn vpath(&mut self, rest: &[u8]) -> Res<()> {
        let rest = self.expand(rest)?;
        let mut words = text::words(&rest);
        let Some(pattern) = words.next() else {
            self.search_paths.clear();
            return Ok(());
        };
        let pattern = Pattern::new(pattern);
        let directories: Vec<Vec<u8>> = words
            .flat_map(|word| word.split(|&byte| byte == b':'))
            .filter(|directory| !directory.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        match directories.is_empty() {
            true => self.search_paths.retain(|(known, _)| *known != pattern),
            false => self.search_paths.push((pattern, directories)),
        }
        Ok(())
    }

    /// A rule, or a variable of targets.
    fn rule_line(&mut self, reading: &mut Reading, raw: &[u8], line: &[u8], number: usize) -> Res<()> {
        let place = Place { file: reading.file.clone(), line: number };
        let expanded;
        let (line, colon) = match text::find_outside(line, |byte| byte == b':') {
            Some(colon) => (line, colon),
            None => {
                // The colon may come out of a variable, the recipe of a one-line rule must not be expanded yet.
                let semicolon = text::find_outside(line, |byte| byte == b';').unwrap_or(line.len());
                let head = self.expand(&line[..semicolon])?;
                if text::trim(&head).is_empty() && semicolon == line.len() {
                    return Ok(());
                }
                expanded = [&head[..], &line[semicolon..]].concat();
                match text::find_outside(&expanded, |byte| byte == b':') {
                    Some(colon) => (&expanded[..], colon),
                    None => return Err(self.missing_separator(raw)),
                }
            }
        };
        let mut left = &line[..colon];
        let mut right = &line[colon + 1..];
        let double = right.first() == Some(&b':') && right.get(1) != Some(&b'=');
        if double {
            right = &right[1..];
        }
        let grouped = text::trim_end(left).ends_with(b"&");
        if grouped {
            left = &text::trim_end(left)[..text::trim_end(left).len() - 1];
        }
        let names = self.expand(left)?;
        let targets: Vec<Vec<u8>> = text::words(&unescape(&names)).flat_map(wildcard::or_itself).collect();
        if self.target_variables(&targets, right)? {
            return Ok(());
        }
        let (head, command) = match text::find_outside(right, |byte| byte == b';') {
            Some(at) => (&right[..at], Some(&right[at + 1..])),
            None => (right, None),
        };
        let head = self.expand(head)?;
        // A definition for targets may come out of an expansion.
        if command.is_none() && self.target_variables(&targets, &head)? {
            return Ok(());
        }
        if targets.is_empty() {
            reading.no_targets = true;
            return Ok(());
        }
        self.begin_rule(reading, place, targets, (&head, command), double, grouped)
    }

    fn begin_rule(
        &mut self,
        reading: &mut Reading,
        place: Place,
        targets: Vec<Vec<u8>>,
        (head, command): (&[u8], Option<&[u8]>),
        double: bool,
        grouped: bool,
    ) -> Res<()> {
        let (pattern, prerequisites) = match text::find_outside(head, |byte| byte == b':') {
            None => (None, head),
            Some(colon) => {
                let pattern = text::trim(&head[..colon]);
                let wrong = match text::words(pattern).count() {
                    0 => Some("missing target pattern"),
                    1 if Pattern::new(pattern).has_stem() => None,
                    1 => Some("target pattern contains no '%'"),
                    _ => Some("multiple target patterns"),
                };
                if let Some(wrong) = wrong {
                    return Err(self.fatal(wrong));
                }
                (Some(pattern.to_vec()), &head[colon + 1..])
            }
        };
        if let Some(member) = targets.iter().find(|target| target.ends_with(b")") && target.contains(&b'(')) {
            let message = format!("members of archives ('{}') are not supported", text::shown(member));
            return Err(self.fatal(&message));
        }
        let mut recipe = Recipe { lines: Vec::new(), file: Some(place.file.clone()), rule_line: place.line };
        if let Some(command) = command {
            recipe.lines.push((text::trim_start(command).to_vec(), place.line));
        }
        self.note_default_goal(&targets, pattern.is_some());
        reading.rule = Some(Pending {
            targets,
            pattern,
            prerequisites: unescape(prerequisites),
            double,
            grouped,
            recipe,
            has_recipe: command.is_some(),
            place,
        });
        Ok(())
    }

    fn note_default_goal(&mut self, targets: &[Vec<u8>], is_static: bool) {
        let goal = self.globals.get(&b".DEFAULT_GOAL"[..]);
        if goal.is_some_and(|goal| !goal.value.is_empty()) {
            return;
        }
        let fits = |target: &&Vec<u8>| {
            let special = target.starts_with(b".") && !target.contains(&b'/');
            !special && (is_static || !Pattern::new(target).has_stem())
        };
        if let Some(first) = targets.iter().find(fits) {
            let goal = Variable::new(first.clone(), false, Origin::File);
            self.globals.insert(b".DEFAULT_GOAL".to_vec(), goal);
        }
    }

    fn end_rule(&mut self, reading: &mut Reading) -> Res<()> {
        reading.no_targets = false;
        let Some(rule) = reading.rule.take() else { return Ok(()) };
        let here = self.place.clone();
        self.record(rule)?;
        self.place = here;
        Ok(())
    }

    fn missing_separator(&mut self, line: &[u8]) -> crate::make::Stop {
        let spaces = line.starts_with(b"        ");
        self.fatal(match spaces {
            true => "missing separator (did you mean TAB instead of 8 spaces?)",
            false => "missing separator",
        })
    }
}

/// A recipe's line: breaks stay, but the prefix of the lines that continue it goes.
fn recipe_line(line: &[u8], prefix: u8) -> Vec<u8> {
    text::replace(line, &[b'\n', prefix], b"\n")
}

/// Names with `\:` and `\ ` as they are meant. A blank inside a name cannot be told from one between two, so it stays.
fn unescape(names: &[u8]) -> Vec<u8> {
    let names = text::replace(names, b"\\:", b":");
    text::replace(&names, b"\\#", b"#")
}
