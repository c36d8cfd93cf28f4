//! Implicit rules: which pattern rule can make a file that has no recipe of its own.

use crate::make::{Make, Res};
use crate::rules::{FileId, Prerequisite, marked_words};
use crate::text::{self, Pattern};
use crate::variables::{Origin, Table, Variable};

/// How many files may lie between a file and what it is made from.
const LONGEST_CHAIN: usize = 10;

/// A rule that fits a file.
struct Candidate {
    rule: usize,
    /// Which of its targets is the file.
    target: usize,
    directory: Vec<u8>,
    stem: Vec<u8>,
}

/// How a file will be made.
struct Plan {
    candidate: Candidate,
    prerequisites: Vec<Planned>,
}

struct Planned {
    name: Vec<u8>,
    order_only: bool,
    /// It is made by an implicit rule, too.
    through: Option<Box<Plan>>,
}

impl Make {
    /// Looks for an implicit rule and gives the file its recipe and prerequisites.
    pub fn find_implicit(&mut self, id: FileId) -> Res<()> {
        if self.files[id].phony || std::mem::replace(&mut self.files[id].tried_implicit, true) {
            return Ok(());
        }
        let name = self.files[id].name.clone();
        if let Some(plan) = self.plan(&name, &mut Vec::new())? {
            self.follow(id, plan);
        }
        Ok(())
    }

    fn plan(&mut self, name: &[u8], used: &mut Vec<usize>) -> Res<Option<Plan>> {
        let candidates = self.candidates(name, used);
        for through_others in [false, true] {
            for candidate in &candidates {
                if through_others
                    && (self.pattern_rules[candidate.rule].terminal || used.len() >= LONGEST_CHAIN)
                {
                    continue;
                }
                let words = self.implicit_prerequisites(candidate, name)?;
                if let Some(prerequisites) = self.all_there(words, candidate.rule, through_others, used)? {
                    let candidate = Candidate {
                        directory: candidate.directory.clone(),
                        stem: candidate.stem.clone(),
                        ..*candidate
                    };
                    return Ok(Some(Plan { candidate, prerequisites }));
                }
            }
        }
        Ok(None)
    }

    /// The rules that fit a name, those with the shortest stem first.
    fn candidates(&self, name: &[u8], used: &[usize]) -> Vec<Candidate> {
        let (directory, file) = text::split_path(name);
        let (mut found, mut specific) = (Vec::new(), false);
        for (rule, content) in self.pattern_rules.iter().enumerate().filter(|(rule, _)| !used.contains(rule))
        {
            for (target, pattern) in content.targets.iter().enumerate() {
                let whole = directory.is_empty() || pattern.before.contains(&b'/');
                let stem = pattern.stem(if whole { name } else { file });
                let Some(stem) = stem.filter(|stem| !stem.is_empty()) else { continue };
                let anything = matches_anything(pattern);
                if anything && !used.is_empty() && !content.terminal {
                    continue;
                }
                specific |= !anything;
                let directory = if whole { Vec::new() } else { directory.to_vec() };
                found.push(Candidate { rule, target, directory, stem: stem.to_vec() });
            }
        }
        if specific {
            found.retain(|one| {
                let rule = &self.pattern_rules[one.rule];
                rule.terminal || !matches_anything(&rule.targets[one.target])
            });
        }
        found.sort_by_key(|one| one.stem.len() + one.directory.len());
        found
    }

    fn implicit_prerequisites(&mut self, one: &Candidate, name: &[u8]) -> Res<Vec<(Vec<u8>, bool)>> {
        let words = self.pattern_rules[one.rule].prerequisites.clone();
        let mut filled = Vec::with_capacity(words.len());
        for (word, order_only) in words {
            if !(self.special.second_expansion && word.contains(&b'$')) {
                filled.push((Pattern::new(&word).fill_path(&one.directory, &one.stem), order_only));
                continue;
            }
            let stem = [&one.directory[..], &one.stem].concat();
            let automatic = |value: &[u8]| Variable::new(value, false, Origin::Automatic);
            self.frames
                .push(Table::from([(b"*".to_vec(), automatic(&stem)), (b"@".to_vec(), automatic(name))]));
            let expanded = self.expand(&text::replace(&word, b"%", b"$*"));
            self.frames.pop();
            let more = marked_words(&expanded?);
            filled.extend(more.into_iter().map(|(word, after_bar)| (word, order_only || after_bar)));
        }
        Ok(filled)
    }

    /// Whether all prerequisites exist, are mentioned, or can be made.
    fn all_there(
        &mut self,
        words: Vec<(Vec<u8>, bool)>,
        rule: usize,
        through_others: bool,
        used: &mut Vec<usize>,
    ) -> Res<Option<Vec<Planned>>> {
        let mut planned = Vec::with_capacity(words.len());
        for (name, order_only) in words {
            let mentioned = self.known(&name).is_some_and(|id| self.files[id].mentioned);
            if mentioned || self.exists(&name) {
                planned.push(Planned { name, order_only, through: None });
                continue;
            }
            if !through_others {
                return Ok(None);
            }
            used.push(rule);
            let through = self.plan(&name, used);
            used.pop();
            match through? {
                None => return Ok(None),
                Some(plan) => planned.push(Planned { name, order_only, through: Some(Box::new(plan)) }),
            }
        }
        Ok(Some(planned))
    }

    fn follow(&mut self, id: FileId, plan: Plan) {
        let rule = self.pattern_rules[plan.candidate.rule].clone();
        let Candidate { target, directory, stem, .. } = plan.candidate;
        let mut prerequisites = Vec::new();
        for planned in plan.prerequisites {
            let file = self.file(&planned.name);
            if let Some(through) = planned.through {
                self.files[file].intermediate = true;
                self.files[file].remove_later = true;
                self.files[file].tried_implicit = true;
                self.follow(file, *through);
            }
            prerequisites.push(Prerequisite { file, order_only: planned.order_only, changed: false });
        }
        for (number, other) in rule.targets.iter().enumerate().filter(|(number, _)| *number != target) {
            debug_assert_ne!(number, target);
            let other = self.file(&other.fill_path(&directory, &stem));
            self.files[id].also_made.push(other);
        }
        let file = &mut self.files[id];
        prerequisites.append(&mut file.prerequisites);
        file.prerequisites = prerequisites;
        file.recipe = Some(rule.recipe);
        file.stem = [directory, stem].concat();
    }
}

fn matches_anything(pattern: &Pattern) -> bool {
    pattern.before.is_empty() && pattern.after.as_ref().is_some_and(Vec::is_empty)
}
