//! `.dump`: the database as SQL that makes it again.

use super::arguments::option;
use super::schema::line;
use super::{Outcome, Words, failed};
use crate::database::{Cell, Database, Failure};
use crate::render::{insert_value, quoted_name, sql_text};
use crate::shell::Shell;

/// What to write, and what has been written so far.
#[derive(Default)]
struct Dump {
    keeps_rowids: bool,
    keeps_newlines: bool,
    data_only: bool,
    no_system: bool,
    errors: usize,
    schema_is_writable: bool,
}

pub fn run(shell: &mut Shell, words: &Words) -> Outcome {
    let mut dump = Dump::default();
    let mut patterns: Vec<&Vec<u8>> = Vec::new();
    for word in &words[1..] {
        match option(word) {
            Some(b"preserve-rowids") => dump.keeps_rowids = true,
            Some(b"newlines") => dump.keeps_newlines = true,
            Some(b"data-only") => dump.data_only = true,
            Some(b"nosys") => dump.no_system = true,
            Some(_) => return failed(&[b"Unknown option \"", word, b"\" on \".dump\""]),
            None => patterns.push(word),
        }
    }
    let condition = condition(&patterns);
    shell.database();
    let Some(database) = shell.database.take() else { return Outcome::Failed };
    if !dump.data_only {
        shell.out.put("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n");
    }
    // What other connections write meanwhile is not part of it.
    let _ = database.run(b"SAVEPOINT dump; PRAGMA writable_schema=ON");
    dump.write(shell, &database, &condition);
    if dump.schema_is_writable {
        shell.out.put("PRAGMA writable_schema=OFF;\n");
    }
    let _ = database.run(b"PRAGMA writable_schema=OFF; RELEASE dump");
    if !dump.data_only {
        shell.out.put(if dump.errors > 0 { "ROLLBACK; -- due to errors\n" } else { "COMMIT;\n" });
    }
    shell.database = Some(database);
    if dump.errors > 0 { Outcome::Failed } else { Outcome::Done }
}

/// Which names of the schema are wanted; with a virtual table also the tables it keeps its content in.
fn condition(patterns: &[&Vec<u8>]) -> String {
    let one = |pattern: &&Vec<u8>| {
        let pattern = String::from_utf8_lossy(&sql_text(pattern)).into_owned();
        format!(
            "name LIKE {pattern} ESCAPE '\\' OR EXISTS (SELECT 1 FROM sqlite_schema WHERE name LIKE {pattern} \
             ESCAPE '\\' AND sql LIKE 'CREATE VIRTUAL TABLE%' AND substr(o.name,1,length(name)+1) == (name||'_'))"
        )
    };
    if patterns.is_empty() {
        "true".into()
    } else {
        patterns.iter().map(one).collect::<Vec<_>>().join(" OR ")
    }
}

impl Dump {
    fn write(&mut self, shell: &mut Shell, database: &Database, condition: &str) {
        let tables = format!(
            "SELECT name, type, sql FROM sqlite_schema AS o WHERE ({condition}) AND type=='table' \
             AND sql NOT NULL ORDER BY tbl_name='sqlite_sequence', rowid"
        );
        let rest = format!(
            "SELECT sql FROM sqlite_schema AS o WHERE ({condition}) AND sql NOT NULL \
             AND type IN ('index','trigger','view')"
        );
        match database.rows(&tables, &[]) {
            Ok(rows) => {
                for row in rows {
                    self.table(shell, database, &row);
                }
            }
            Err(failure) => self.tell(shell, &failure),
        }
        if self.data_only {
            return;
        }
        match database.texts(&rest, &[]) {
            Ok(statements) => statements.iter().for_each(|sql| shell.out.put(line(sql, b";\n"))),
            Err(failure) => self.tell(shell, &failure),
        }
    }

    fn tell(&mut self, shell: &mut Shell, failure: &Failure) {
        self.errors += 1;
        let start = format!("/**** ERROR: ({}) ", failure.code);
        shell.out.put([start.as_bytes(), &failure.message, b" *****/\n"].concat());
    }

    fn table(&mut self, shell: &mut Shell, database: &Database, row: &[Cell]) {
        let part = |column: usize| row.get(column).and_then(Cell::text).unwrap_or_default();
        let (name, sql) = (part(0), part(2));
        let is_system = name.starts_with(b"sqlite_");
        if is_system && self.no_system {
            return;
        }
        if name == b"sqlite_sequence" {
            shell.out.put(if self.data_only { "" } else { "DELETE FROM sqlite_sequence;\n" });
        } else if name.len() == 12 && name.starts_with(b"sqlite_stat") {
            shell.out.put(if self.data_only { "" } else { "ANALYZE sqlite_schema;\n" });
        } else if is_system {
            return;
        } else if sql.starts_with(b"CREATE VIRTUAL TABLE") {
            self.virtual_table(shell, &name, &sql);
            return;
        } else if !self.data_only {
            shell.out.put(line(&sql, b";\n"));
        }
        if let Err(failure) = self.rows(shell, database, &name) {
            self.tell(shell, &failure);
        }
    }

    /// A virtual table is put into the schema as it is: making it would make the tables below it, too.
    fn virtual_table(&mut self, shell: &mut Shell, name: &[u8], sql: &[u8]) {
        if self.data_only {
            return;
        }
        if !std::mem::replace(&mut self.schema_is_writable, true) {
            shell.out.put("PRAGMA writable_schema=ON;\n");
        }
        let (name, sql) = (sql_text(name), sql_text(sql));
        let insert: &[u8] = b"INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table',";
        shell.out.put([insert, &name, b",", &name, b",0,", &sql, b");\n"].concat());
    }

    fn rows(&self, shell: &mut Shell, database: &Database, table: &[u8]) -> Result<(), Failure> {
        let Some(columns) = self.columns(database, table)? else { return Ok(()) };
        let mut start = [b"INSERT INTO ", &quoted_name(table)[..]].concat();
        let select: Vec<Vec<u8>> = columns.names.iter().map(|name| quoted_name(name)).collect();
        let select = select.join(&b',');
        if columns.are_named {
            start.extend([b"(", &select[..], b")"].concat());
        }
        start.extend(b" VALUES(");
        let query = [b"SELECT ", &select[..], b" FROM ", &quoted_name(table)].concat();
        let (Some(mut statement), _) = database.prepare(&query)? else { return Ok(()) };
        while statement.step()? {
            let row = statement.row();
            let value = |cell: &Cell| match cell {
                Cell::Text(text) if self.keeps_newlines => sql_text(text),
                cell => insert_value(cell),
            };
            let values: Vec<Vec<u8>> = row.iter().map(value).collect();
            shell.out.put([&start[..], &values.join(&b','), b");\n"].concat());
        }
        Ok(())
    }

    /// The columns of a table that have values of their own, and with `--preserve-rowids` the row's number where that
    /// is none of them.
    fn columns(&self, database: &Database, table: &[u8]) -> Result<Option<Columns>, Failure> {
        let rows = database.rows("SELECT name, pk, type FROM pragma_table_info(?1)", &[table])?;
        let mut names: Vec<Vec<u8>> = rows.iter().filter_map(|row| row.first()?.text()).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let keys: Vec<&Vec<Cell>> = rows.iter().filter(|row| row[1] != Cell::Integer(0)).collect();
        let number_is_a_column = match keys.as_slice() {
            [key] => key[2].text().unwrap_or_default().eq_ignore_ascii_case(b"INTEGER"),
            _ => false,
        };
        if !self.keeps_rowids || number_is_a_column {
            return Ok(Some(Columns { names, are_named: false }));
        }
        let free = [&b"rowid"[..], b"_rowid_", b"oid"]
            .into_iter()
            .find(|alias| !names.iter().any(|name| name.eq_ignore_ascii_case(alias)));
        let query = |alias: &[u8]| [b"SELECT ", alias, b" FROM ", &quoted_name(table)].concat();
        // A table WITHOUT ROWID has no such number.
        let Some(alias) = free.filter(|alias| database.prepare(&query(alias)).is_ok()) else {
            return Ok(Some(Columns { names, are_named: false }));
        };
        names.insert(0, alias.to_vec());
        Ok(Some(Columns { names, are_named: true }))
    }
}

struct Columns {
    names: Vec<Vec<u8>>,
    /// Whether an INSERT has to name them.
    are_named: bool,
}
