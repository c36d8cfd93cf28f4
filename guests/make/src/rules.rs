//! What makefiles say about files: rules, their prerequisites and recipes.

use std::rc::Rc;

use crate::make::{Make, Place, Res};
use crate::text::{self, Pattern};
use crate::variables::{Operator, Table};
use crate::wildcard;

pub type FileId = usize;

/// The commands of a rule, as written.
#[derive(Debug, Default)]
pub struct Recipe {
    /// The lines without their tab, and where each is.
    pub lines: Vec<(Vec<u8>, usize)>,
    pub file: Option<Rc<str>>,
    /// Where the rule is.
    pub rule_line: usize,
}

impl Recipe {
    pub fn place(&self, line: usize) -> Option<Place> {
        let number = self.lines.get(line).map_or(self.rule_line, |(_, number)| *number);
        self.file.clone().map(|file| Place { file, line: number })
    }
}

#[derive(Clone, Debug)]
pub struct Prerequisite {
    pub file: FileId,
    pub order_only: bool,
    /// Its time changed while it was updated.
    pub changed: bool,
}

/// Prerequisites that are expanded once more when their target is considered.
#[derive(Clone, Debug)]
pub struct Deferred {
    pub text: Vec<u8>,
    pub stem: Option<Vec<u8>>,
}

/// What one rule with `::` says.
#[derive(Clone, Debug, Default)]
pub struct DoubleColon {
    pub prerequisites: Vec<Prerequisite>,
    pub recipe: Option<Rc<Recipe>>,
}

/// How far the work on a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    New,
    Running,
    Done,
}

/// A file, or a name that is to be made.
#[derive(Debug)]
pub struct File {
    pub name: Vec<u8>,
    pub prerequisites: Vec<Prerequisite>,
    pub deferred: Vec<Deferred>,
    pub recipe: Option<Rc<Recipe>>,
    pub doubles: Vec<DoubleColon>,
    /// How many of `doubles` are done.
    pub doubles_done: usize,
    pub is_target: bool,
    /// A makefile mentions it: implicit rules may count on it.
    pub mentioned: bool,
    pub phony: bool,
    pub precious: bool,
    pub intermediate: bool,
    pub secondary: bool,
    pub silent: bool,
    pub ignores_errors: bool,
    pub variables: Table,
    pub parent: Option<FileId>,
    /// Made by the same run of the recipe.
    pub also_made: Vec<FileId>,
    pub stem: Vec<u8>,
    pub state: State,
    pub failed: bool,
    /// On the way from the goal to what is being considered.
    pub considering: bool,
    pub prepared: bool,
    pub tried_implicit: bool,
    /// Its time, once asked for: `None` inside if it does not exist.
    pub time: Option<Option<i64>>,
    /// Where it was found, by `vpath`.
    pub found_at: Option<Vec<u8>>,
    /// Made only on the way to another file, and to be removed.
    pub remove_later: bool,
    pub told: bool,
    /// Its recipe was run, and its time before that.
    pub ran: bool,
    pub before: Option<i64>,
}

impl File {
    pub fn new(name: Vec<u8>) -> File {
        File {
            name,
            prerequisites: Vec::new(),
            deferred: Vec::new(),
            recipe: None,
            doubles: Vec::new(),
            doubles_done: 0,
            is_target: false,
            mentioned: false,
            phony: false,
            precious: false,
            intermediate: false,
            secondary: false,
            silent: false,
            ignores_errors: false,
            variables: Table::new(),
            parent: None,
            also_made: Vec::new(),
            stem: Vec::new(),
            state: State::New,
            failed: false,
            considering: false,
            prepared: false,
            tried_implicit: false,
            time: None,
            found_at: None,
            remove_later: false,
            told: false,
            ran: false,
            before: None,
        }
    }

    /// Whether its recipe has no line, as that of `name: ;`.
    pub fn recipe_is_empty(&self) -> bool {
        let blank = |(line, _): &(Vec<u8>, usize)| text::trim(line).is_empty();
        self.recipe.as_ref().is_none_or(|recipe| recipe.lines.iter().all(blank))
    }

    /// Whether its recipe was run and changed it, as far as can be seen.
    pub fn remade(&self) -> bool {
        let time = self.time.flatten();
        self.ran && (self.phony || time.is_none() || time != self.before)
    }

    pub fn shown(&self) -> String {
        text::shown(&self.name)
    }
}

/// A rule whose targets have a `%`.
#[derive(Clone, Debug)]
pub struct PatternRule {
    pub targets: Vec<Pattern>,
    /// The prerequisites' words, and whether they follow a `|`; the whole text if it is to be expanded again.
    pub prerequisites: Vec<(Vec<u8>, bool)>,
    pub recipe: Rc<Recipe>,
    pub terminal: bool,
}

/// `%.o: NAME = VALUE`
#[derive(Clone, Debug)]
pub struct PatternVariables {
    pub pattern: Pattern,
    pub name: Vec<u8>,
    pub operator: Operator,
    pub value: Vec<u8>,
    pub is_override: bool,
    pub private: bool,
    pub export: bool,
}

/// A rule as it was read, until its recipe is complete.
#[derive(Debug)]
pub struct Pending {
    pub targets: Vec<Vec<u8>>,
    /// For static pattern rules: the pattern of the targets.
    pub pattern: Option<Vec<u8>>,
    pub prerequisites: Vec<u8>,
    pub double: bool,
    pub grouped: bool,
    pub recipe: Recipe,
    pub has_recipe: bool,
    pub place: Place,
}

impl Make {
    /// Takes a rule in.
    pub fn record(&mut self, rule: Pending) -> Res<()> {
        self.place = Some(rule.place.clone());
        let recipe = rule.has_recipe.then(|| Rc::new(rule.recipe));
        let patterns = rule.targets.iter().filter(|target| Pattern::new(target).has_stem()).count();
        if patterns > 0 && rule.pattern.is_none() {
            if patterns < rule.targets.len() {
                return Err(self.fatal("mixed implicit and normal rules"));
            }
            let targets: Vec<Pattern> = rule.targets.iter().map(|target| Pattern::new(target)).collect();
            self.record_pattern(targets, &rule.prerequisites, recipe, rule.double);
            return Ok(());
        }
        let pattern = rule.pattern.as_deref().map(Pattern::new);
        let mut group = Vec::new();
        for target in &rule.targets {
            if self.record_special(target, &rule.prerequisites)? {
                continue;
            }
            let stem = pattern.as_ref().and_then(|pattern| pattern.stem(target)).map(<[u8]>::to_vec);
            let mut prerequisites = &rule.prerequisites[..];
            if pattern.is_some() && stem.is_none() {
                self.note(&format!("target '{}' doesn't match the target pattern", text::shown(target)));
                prerequisites = b"";
            }
            let id = self.record_target(target, stem, prerequisites, recipe.clone(), rule.double)?;
            group.push(id);
        }
        if rule.grouped {
            for &id in &group {
                let others = group.iter().copied().filter(|&other| other != id);
                self.files[id].also_made.extend(others.collect::<Vec<_>>());
            }
        }
        Ok(())
    }

    fn record_pattern(
        &mut self,
        targets: Vec<Pattern>,
        prerequisites: &[u8],
        recipe: Option<Rc<Recipe>>,
        terminal: bool,
    ) {
        let prerequisites = match self.special.second_expansion && prerequisites.contains(&b'$') {
            true => vec![(prerequisites.to_vec(), false)],
            false => marked_words(prerequisites),
        };
        // The same pattern again: without a recipe it cancels the rule, with one it replaces it.
        self.pattern_rules.retain(|rule| rule.targets != targets || rule.prerequisites != prerequisites);
        if let Some(recipe) = recipe {
            // Those of makefiles come before the built-in ones.
            let end = self.pattern_rules.iter().position(|rule| rule.recipe.file.is_none());
            let rule = PatternRule { targets, prerequisites, recipe, terminal };
            self.pattern_rules.insert(end.unwrap_or(self.pattern_rules.len()), rule);
        }
    }

    fn record_target(
        &mut self,
        target: &[u8],
        stem: Option<Vec<u8>>,
        prerequisites: &[u8],
        recipe: Option<Rc<Recipe>>,
        double: bool,
    ) -> Res<FileId> {
        let id = self.file(target);
        self.refuse_mixed_colons(id, double)?;
        self.files[id].is_target = true;
        self.files[id].mentioned = true;
        if let Some(stem) = &stem {
            self.files[id].stem = stem.clone();
        }
        let words = match (self.special.second_expansion && prerequisites.contains(&b'$'), &stem) {
            (true, _) => {
                self.files[id].deferred.push(Deferred { text: prerequisites.to_vec(), stem });
                Vec::new()
            }
            (false, Some(stem)) => self.static_prerequisites(prerequisites, stem),
            (false, None) => self.prerequisites(prerequisites),
        };
        if double {
            self.files[id].doubles.push(DoubleColon { prerequisites: words, recipe });
            return Ok(id);
        }
        if let Some(recipe) = recipe {
            self.replace_recipe(id, recipe);
            // The prerequisites of the rule that has the recipe come first, as `$<` shows.
            let others = std::mem::replace(&mut self.files[id].prerequisites, words);
            self.files[id].prerequisites.extend(others);
        } else {
            self.files[id].prerequisites.extend(words);
        }
        Ok(id)
    }

    fn refuse_mixed_colons(&mut self, id: FileId, double: bool) -> Res<()> {
        let file = &self.files[id];
        let mixed = match double {
            true => file.is_target && file.doubles.is_empty(),
            false => !file.doubles.is_empty(),
        };
        match mixed {
            true => Err(self.fatal(&format!("target file '{}' has both : and :: entries", file.shown()))),
            false => Ok(()),
        }
    }

    fn replace_recipe(&mut self, id: FileId, recipe: Rc<Recipe>) {
        if let Some(old) = self.files[id].recipe.take().filter(|old| old.file.is_some()) {
            let name = self.files[id].shown();
            let here = self.place.clone();
            self.place = recipe.place(0);
            self.warn(&format!("overriding recipe for target '{name}'"));
            self.place = old.place(0);
            self.warn(&format!("ignoring old recipe for target '{name}'"));
            self.place = here;
        }
        self.files[id].recipe = Some(recipe);
    }

    /// The files that prerequisites name; those after a `|` are only there to come first.
    pub fn prerequisites(&mut self, text: &[u8]) -> Vec<Prerequisite> {
        let mut found = Vec::new();
        for (word, order_only) in marked_words(text) {
            for name in wildcard::or_itself(&word) {
                let file = self.file(&name);
                self.files[file].mentioned = true;
                found.push(Prerequisite { file, order_only, changed: false });
            }
        }
        found
    }

    pub fn static_prerequisites(&mut self, text: &[u8], stem: &[u8]) -> Vec<Prerequisite> {
        let filled: Vec<Vec<u8>> = text::words(text).map(|word| Pattern::new(word).fill(stem)).collect();
        self.prerequisites(&text::join(filled))
    }

    /// Handles `.PHONY` and its like; answers whether the name is nothing but that.
    fn record_special(&mut self, target: &[u8], prerequisites: &[u8]) -> Res<bool> {
        let names: Vec<FileId> = match target {
            b".PHONY" | b".PRECIOUS" | b".INTERMEDIATE" | b".SECONDARY" | b".SILENT" | b".IGNORE" => {
                let all = self.prerequisites(prerequisites);
                all.into_iter().map(|one| one.file).collect()
            }
            _ => Vec::new(),
        };
        let none = names.is_empty();
        match target {
            b".PHONY" => names.iter().for_each(|&id| {
                self.files[id].phony = true;
                self.files[id].is_target = true;
            }),
            b".PRECIOUS" if none => self.special.all_precious = true,
            b".PRECIOUS" => names.iter().for_each(|&id| self.files[id].precious = true),
            b".INTERMEDIATE" => names.iter().for_each(|&id| self.files[id].intermediate = true),
            b".SECONDARY" if none => self.special.all_secondary = true,
            b".SECONDARY" => names.iter().for_each(|&id| {
                self.files[id].intermediate = true;
                self.files[id].secondary = true;
            }),
            b".SILENT" if none => self.special.all_silent = true,
            b".SILENT" => names.iter().for_each(|&id| self.files[id].silent = true),
            b".IGNORE" if none => self.special.all_ignored = true,
            b".IGNORE" => names.iter().for_each(|&id| self.files[id].ignores_errors = true),
            b".SUFFIXES" => self.set_suffixes(prerequisites),
            b".DELETE_ON_ERROR" => self.special.delete_on_error = true,
            b".ONESHELL" => self.special.one_shell = true,
            b".SECONDEXPANSION" => self.special.second_expansion = true,
            b".NOTPARALLEL" => self.special.not_parallel = true,
            b".EXPORT_ALL_VARIABLES" => self.export_all = true,
            b".POSIX" => self.special.posix = true,
            // Times here are always exact.
            b".LOW_RESOLUTION_TIME" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_suffixes(&mut self, prerequisites: &[u8]) {
        if text::words(prerequisites).next().is_none() {
            self.suffixes.clear();
        }
        for suffix in text::words(prerequisites) {
            if !self.suffixes.iter().any(|known| known == suffix) {
                self.suffixes.push(suffix.to_vec());
            }
        }
    }

    /// Rules such as `.c.o:` as the pattern rules that they mean.
    pub fn convert_suffix_rules(&mut self) {
        let mut found = Vec::new();
        for (number, from) in self.suffixes.iter().enumerate() {
            let double = self.suffixes.iter().map(|to| (Some(to), [&from[..], to].concat()));
            for (to, name) in double.chain([(None, from.clone())]) {
                let recipe = self.known(&name).and_then(|id| self.files[id].recipe.clone());
                if let Some(recipe) = recipe {
                    let target = Pattern { before: Vec::new(), after: Some(to.cloned().unwrap_or_default()) };
                    found.push((number, target, [b"%", &from[..]].concat(), recipe));
                }
            }
        }
        for (_, target, prerequisite, recipe) in found {
            self.record_pattern(vec![target], &prerequisite, Some(recipe), false);
        }
    }
}

/// Words, and whether each follows a `|`.
pub fn marked_words(text: &[u8]) -> Vec<(Vec<u8>, bool)> {
    let mut order_only = false;
    let mut words = Vec::new();
    for word in text::words(text) {
        match word {
            b"|" => order_only = true,
            word => words.push((word.to_vec(), order_only)),
        }
    }
    words
}
