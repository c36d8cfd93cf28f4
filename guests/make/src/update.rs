//! The walk over the files: what is out of date, and in which order it is made.

use crate::make::{Make, Res, Stop};
use crate::rules::{FileId, State};
use crate::text;
use crate::times::NEW;
use crate::variables::{Origin, Table, Variable};

/// How far a walk came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Recipes run that must end first.
    Pending,
}

/// What is known of a file's prerequisites.
#[derive(Default)]
struct Prerequisites {
    pending: bool,
    failed: bool,
    /// One of them is newer than the file.
    newer: bool,
}

impl Make {
    /// Makes a goal; answers whether that worked.
    pub fn make_goal(&mut self, id: FileId) -> Res<bool> {
        loop {
            let outcome = self.update(id, None)?;
            if outcome == Outcome::Done || self.giving_up {
                break;
            }
            self.wait_for_a_job()?;
        }
        if self.giving_up {
            self.wait_for_all_jobs()?;
        }
        Ok(!self.files[id].failed && !self.giving_up)
    }

    /// Brings a file up to date, as far as that is possible without waiting.
    fn update(&mut self, id: FileId, needed_by: Option<FileId>) -> Res<Outcome> {
        match self.files[id].state {
            State::Done => return Ok(Outcome::Done),
            State::Running => return Ok(Outcome::Pending),
            State::New => {}
        }
        self.files[id].considering = true;
        let outcome = self.consider(id, needed_by);
        self.files[id].considering = false;
        outcome
    }

    fn consider(&mut self, id: FileId, needed_by: Option<FileId>) -> Res<Outcome> {
        self.prepare(id, needed_by)?;
        loop {
            self.next_double_colon(id);
            let outcome = self.consider_rule(id, needed_by)?;
            // A rule with `::` that is done makes room for the next.
            if outcome == Outcome::Pending || self.files[id].state == State::Done || self.giving_up {
                return Ok(outcome);
            }
        }
    }

    /// What happens once, when a file is first considered.
    fn prepare(&mut self, id: FileId, needed_by: Option<FileId>) -> Res<()> {
        if std::mem::replace(&mut self.files[id].prepared, true) {
            return Ok(());
        }
        self.files[id].parent = needed_by;
        self.adopt_pattern_variables(id)?;
        self.expand_deferred(id)?;
        if self.files[id].recipe.is_none() && self.files[id].doubles.is_empty() {
            self.find_implicit(id)?;
        }
        Ok(())
    }

    /// The second expansion of prerequisites, with the variables of the target.
    fn expand_deferred(&mut self, id: FileId) -> Res<()> {
        for deferred in std::mem::take(&mut self.files[id].deferred) {
            let name = self.files[id].name.clone();
            let known: Vec<Vec<u8>> = (self.files[id].prerequisites.iter())
                .filter(|one| !one.order_only)
                .map(|one| self.files[one.file].name.clone())
                .collect();
            let automatic = |value: Vec<u8>| Variable::new(value, false, Origin::Automatic);
            let frame = Table::from([
                (b"@".to_vec(), automatic(name)),
                (b"*".to_vec(), automatic(deferred.stem.clone().unwrap_or_default())),
                (b"<".to_vec(), automatic(known.first().cloned().unwrap_or_default())),
                (b"^".to_vec(), automatic(text::join(unique(&known)))),
                (b"+".to_vec(), automatic(text::join(&known))),
            ]);
            let outer = self.current.replace(id);
            self.frames.push(frame);
            let expanded = self.expand(&deferred.text);
            self.frames.pop();
            self.current = outer;
            let more = match &deferred.stem {
                Some(stem) => self.static_prerequisites(&expanded?, stem),
                None => self.prerequisites(&expanded?),
            };
            self.files[id].prerequisites.extend(more);
        }
        Ok(())
    }

    fn next_double_colon(&mut self, id: FileId) {
        let file = &mut self.files[id];
        if let Some(rule) = file.doubles.get(file.doubles_done) {
            file.recipe = rule.recipe.clone();
            file.prerequisites = rule.prerequisites.clone();
        }
    }

    fn consider_rule(&mut self, id: FileId, needed_by: Option<FileId>) -> Res<Outcome> {
        let time = self.time(id)?;
        let phony = self.files[id].phony;
        let mut must = phony || time.is_none();
        let mut known = self.update_prerequisites(id, time, must)?;
        must |= known.newer || (self.options.always_make && self.files[id].recipe.is_some());
        must |= !self.files[id].doubles.is_empty() && self.files[id].prerequisites.is_empty();
        if must && !known.pending && !known.failed && time.is_some() {
            // Now the files between are needed, too.
            known = self.update_prerequisites(id, time, true)?;
        }
        if self.giving_up && known.failed {
            return self.give_up(id);
        }
        if known.pending {
            return Ok(Outcome::Pending);
        }
        if known.failed {
            if needed_by.is_none()
                && self.options.keep_going
                && !self.options.dry_run
                && !self.options.question
            {
                self.complain(&format!("Target '{}' not remade because of errors.", self.files[id].shown()));
            }
            return self.give_up(id);
        }
        if must && !self.is_old(id) {
            return self.remake(id, needed_by, time);
        }
        self.finish(id, true, false)?;
        Ok(Outcome::Done)
    }

    fn is_old(&self, id: FileId) -> bool {
        self.options.old_files.contains(&self.files[id].name)
    }

    fn give_up(&mut self, id: FileId) -> Res<Outcome> {
        self.files[id].failed = true;
        self.files[id].state = State::Done;
        Ok(Outcome::Done)
    }

    /// Brings prerequisites up to date. Files in between that do not exist are passed over unless `all` are wanted or what they
    /// are made from is newer.
    fn update_prerequisites(&mut self, id: FileId, time: Option<i64>, all: bool) -> Res<Prerequisites> {
        let mut known = Prerequisites::default();
        let mut number = 0;
        while let Some(one) = self.files[id].prerequisites.get(number).cloned() {
            if self.files[one.file].considering {
                let (file, other) = (self.files[id].shown(), self.files[one.file].shown());
                self.complain(&format!("Circular {file} <- {other} dependency dropped."));
                self.files[id].prerequisites.remove(number);
                for rule in &mut self.files[id].doubles {
                    rule.prerequisites.retain(|other| other.file != one.file);
                }
                continue;
            }
            number += 1;
            if !all && self.can_be_passed_over(one.file)? {
                match self.is_stale(one.file, time)? {
                    None => known.pending = true,
                    Some(false) => continue,
                    Some(true) => known.newer = true,
                }
            }
            if self.update(one.file, Some(id))? == Outcome::Pending {
                known.pending = true;
                continue;
            }
            if self.files[one.file].failed {
                known.failed = true;
                if !self.options.keep_going {
                    self.giving_up = true;
                    break;
                }
                continue;
            }
            let newer = self.is_newer(one.file, time)?;
            self.files[id].prerequisites[number - 1].changed = newer;
            known.newer |= newer && !one.order_only;
        }
        Ok(known)
    }

    /// Whether a prerequisite that is up to date makes its target out of date.
    fn is_newer(&mut self, id: FileId, than: Option<i64>) -> Res<bool> {
        if self.is_old(id) {
            return Ok(false);
        }
        let time = self.time(id)?;
        Ok(self.files[id].remade() || time.is_none() || than.is_none() || time > than)
    }

    fn can_be_passed_over(&mut self, id: FileId) -> Res<bool> {
        self.prepare_intermediate(id)?;
        let file = &self.files[id];
        let maybe = (file.intermediate || self.special.all_secondary && !file.mentioned)
            && !file.phony
            && file.state == State::New
            && file.recipe.is_some();
        Ok(maybe && self.time(id)?.is_none())
    }

    fn prepare_intermediate(&mut self, id: FileId) -> Res<()> {
        match self.files[id].intermediate && self.files[id].state == State::New {
            true => self.prepare(id, None),
            false => Ok(()),
        }
    }

    /// Whether a file between two must be made for the sake of the other; `None` while that is not known.
    fn is_stale(&mut self, id: FileId, time: Option<i64>) -> Res<Option<bool>> {
        let mut stale = false;
        for one in self.files[id].prerequisites.clone() {
            if one.order_only || self.files[one.file].considering {
                continue;
            }
            if self.can_be_passed_over(one.file)? {
                match self.is_stale(one.file, time)? {
                    None => return Ok(None),
                    Some(found) => stale |= found,
                }
                continue;
            }
            if self.update(one.file, Some(id))? == Outcome::Pending {
                return Ok(None);
            }
            stale |= self.files[one.file].failed || self.is_newer(one.file, time)?;
        }
        Ok(Some(stale))
    }

    fn remake(&mut self, id: FileId, needed_by: Option<FileId>, time: Option<i64>) -> Res<Outcome> {
        if self.files[id].recipe.is_none() && !self.files[id].phony && !self.files[id].is_target {
            if time.is_some() {
                self.finish(id, true, false)?;
                return Ok(Outcome::Done);
            }
            if !self.adopt_default(id) {
                return self.no_rule(id, needed_by);
            }
        }
        if self.files[id].recipe.is_none() {
            self.finish(id, true, false)?;
            return Ok(Outcome::Done);
        }
        self.trace(id);
        self.start(id)?;
        match self.files[id].state {
            State::Running => Ok(Outcome::Pending),
            _ => Ok(Outcome::Done),
        }
    }

    /// The recipe of `.DEFAULT`, if there is one.
    fn adopt_default(&mut self, id: FileId) -> bool {
        let recipe = self.known(b".DEFAULT").and_then(|default| self.files[default].recipe.clone());
        self.files[id].recipe = recipe;
        self.files[id].recipe.is_some()
    }

    fn no_rule(&mut self, id: FileId, needed_by: Option<FileId>) -> Res<Outcome> {
        if !std::mem::replace(&mut self.files[id].told, true) {
            let by = needed_by.map(|by| format!(", needed by '{}'", self.files[by].shown()));
            let name = self.files[id].shown();
            let message = format!("*** No rule to make target '{name}'{}.", by.unwrap_or_default());
            match self.options.keep_going {
                true => self.complain(&message),
                false => {
                    self.complain(&format!("{message}  Stop."));
                    self.wait_for_all_jobs()?;
                    return Err(Stop(2));
                }
            }
        }
        self.give_up(id)
    }

    fn trace(&self, id: FileId) {
        if !self.options.trace {
            return;
        }
        let file = &self.files[id];
        let place = file.recipe.as_ref().and_then(|recipe| recipe.place(0));
        let place = place.map_or("<builtin>".to_owned(), |place| format!("{}:{}", place.file, place.line));
        let newer: Vec<&[u8]> = (file.prerequisites.iter())
            .filter(|one| one.changed && !one.order_only)
            .map(|one| self.path(one.file))
            .collect();
        match newer.is_empty() {
            true => self.say(&format!("{place}: target '{}' does not exist", file.shown())),
            false => {
                let newer = text::shown(&text::join(newer));
                self.say(&format!("{place}: update target '{}' due to: {newer}", file.shown()));
            }
        }
    }

    /// Notes the end of the work on a file, and on those that are made with it.
    pub fn finish(&mut self, id: FileId, worked: bool, ran: bool) -> Res<()> {
        self.finish_one(id, worked, ran)?;
        if ran {
            for other in std::mem::take(&mut self.files[id].also_made) {
                self.finish_one(other, worked, ran)?;
            }
        }
        Ok(())
    }

    fn finish_one(&mut self, id: FileId, worked: bool, ran: bool) -> Res<()> {
        let file = &mut self.files[id];
        let more = file.doubles_done + 1 < file.doubles.len();
        file.failed |= !worked;
        file.state = if more && worked { State::New } else { State::Done };
        if !file.doubles.is_empty() {
            file.doubles_done += 1;
        }
        if ran {
            file.ran = true;
            file.before = file.time.flatten();
            file.time = None;
            let pretends = self.options.dry_run || self.options.question;
            if pretends {
                self.files[id].time = Some(Some(NEW));
            } else {
                self.files[id].found_at = None;
                self.time(id)?;
            }
        }
        Ok(())
    }
}

/// Words without those that were there before.
pub fn unique(words: &[Vec<u8>]) -> Vec<&Vec<u8>> {
    let mut seen = std::collections::HashSet::new();
    words.iter().filter(|word| seen.insert(*word)).collect()
}
