//! Where a program finds what it does not define: named arguments, functions of ours written in jq, modules in files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::json;
use crate::value::Value;

use super::parser::{Problem, compile_definitions};
use super::prelude;
use super::tree::Function;

/// All of that.
pub struct Library {
    /// What a place in a program is said to be in.
    pub origin: String,
    /// Whether the language is yq's, which is jq's with some words of its own.
    pub is_yq: bool,
    globals: HashMap<String, Value>,
    prelude: HashMap<(String, usize), &'static Function>,
    /// Directories to search, first to last.
    search: Vec<PathBuf>,
    modules: HashMap<PathBuf, Vec<(String, &'static Function)>>,
    /// Modules that are being read.
    reading: Vec<PathBuf>,
}

impl Library {
    pub fn new(globals: HashMap<String, Value>, search: Vec<PathBuf>) -> Library {
        Library {
            origin: "<top-level>".into(),
            is_yq: false,
            globals,
            prelude: HashMap::new(),
            search,
            modules: HashMap::new(),
            reading: Vec::new(),
        }
    }

    pub fn global(&self, name: &str) -> Option<Value> {
        self.globals.get(name).cloned()
    }

    /// A function of the language that is written in it. Only those that are called are ever read.
    pub fn prelude(&mut self, name: &str, parameters: usize) -> Result<Option<&'static Function>, Problem> {
        let key = (name.to_owned(), parameters);
        if let Some(function) = self.prelude.get(&key) {
            return Ok(Some(function));
        }
        let Some(text) = prelude::find(name, parameters, self.is_yq) else { return Ok(None) };
        let outer = std::mem::replace(&mut self.origin, "<builtin>".into());
        let functions = compile_definitions(text, self)?;
        self.origin = outer;
        let function = functions.last().map(|(_, function)| *function);
        if let Some(function) = function {
            self.prelude.insert(key, function);
        }
        Ok(function)
    }

    /// A function that is yq's alone, or that it has otherwise.
    pub fn prelude_of_yq(
        &mut self,
        name: &str,
        parameters: usize,
    ) -> Result<Option<&'static Function>, Problem> {
        match prelude::is_of_yq(name, parameters) {
            true => self.prelude(name, parameters),
            false => Ok(None),
        }
    }

    /// The file of a module: `DIR/a/b.jq`, or `DIR/a/b/b.jq`.
    fn find(&self, name: &str, search: Option<&str>, extension: &str) -> Result<PathBuf, String> {
        let own = search.map(|search| {
            let near = self.reading.last().and_then(|file| file.parent()).unwrap_or(Path::new(""));
            near.join(search)
        });
        let last = name.rsplit('/').next().unwrap_or(name);
        for directory in own.iter().chain(&self.search) {
            let plain = directory.join(format!("{name}{extension}"));
            let nested = directory.join(name).join(format!("{last}{extension}"));
            for file in [plain, nested] {
                if file.is_file() {
                    return Ok(file);
                }
            }
        }
        let searched: Vec<String> =
            own.iter().chain(&self.search).map(|directory| directory.display().to_string()).collect();
        Err(format!("module not found: {name}\nSearched: {}", searched.join(", ")))
    }

    /// The functions that a module defines.
    pub fn functions(
        &mut self,
        name: &str,
        search: Option<&str>,
        problem: &dyn Fn(&str) -> Problem,
    ) -> Result<Vec<(String, &'static Function)>, Problem> {
        let file = self.find(name, search, ".jq").map_err(|why| problem(&why))?;
        if let Some(known) = self.modules.get(&file) {
            return Ok(known.clone());
        }
        if self.reading.contains(&file) {
            return Err(problem(&format!("module {name} imports itself")));
        }
        let text = std::fs::read_to_string(&file)
            .map_err(|error| problem(&format!("cannot read {}: {error}", file.display())))?;
        self.reading.push(file.clone());
        let outer = std::mem::replace(&mut self.origin, file.display().to_string());
        let functions = compile_definitions(&text, self)?;
        self.origin = outer;
        self.reading.pop();
        self.modules.insert(file, functions.clone());
        Ok(functions)
    }

    /// The values in a file of data.
    pub fn data(&mut self, name: &str, search: Option<&str>) -> Result<Vec<Value>, String> {
        let file = self.find(name, search, ".json")?;
        let bytes =
            std::fs::read(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let mut reader = json::Reader::new(json::Tree::default());
        let (mut at, mut values) = (0, Vec::new());
        while let Some(value) = reader.next(&bytes, &mut at)? {
            values.push(value);
        }
        values.extend(reader.finish()?);
        Ok(values)
    }
}
