//! Commands that show what is in the database: `.tables`, `.schema`, `.indexes`, `.databases`, `.fullschema`.

use super::arguments::{is_option, option};
use super::{Outcome, Words, failed, usage};
use crate::database::{Cell, Database, Failure};
use crate::render::{insert_value, quoted_name, sql_text};
use crate::shell::Shell;

/// The names of all databases of a connection, `main` first.
fn names_of_databases(database: &Database) -> Result<Vec<Vec<u8>>, Failure> {
    let rows = database.rows("PRAGMA database_list", &[])?;
    Ok(rows.iter().filter_map(|row| row.get(1)?.text()).collect())
}

pub fn said(failure: &Failure) -> Outcome {
    failed(&[b"Error: ", &failure.message])
}

pub fn databases(shell: &mut Shell, _: &Words) -> Outcome {
    let database = shell.database();
    let rows = match database.rows("PRAGMA database_list", &[]) {
        Ok(rows) => rows,
        Err(failure) => return said(&failure),
    };
    let mut text = Vec::new();
    for row in rows {
        let part = |column: usize| row.get(column).and_then(Cell::text).unwrap_or_default();
        let (name, file) = (part(1), part(2));
        let is_read_only = database.connection.is_readonly(&*String::from_utf8_lossy(&name)).unwrap_or(false);
        let file = if file.is_empty() { b"\"\"".to_vec() } else { file };
        let access: &[u8] = if is_read_only { b" r/o\n" } else { b" r/w\n" };
        text.extend([&name[..], b": ", &file, access].concat());
    }
    shell.out.put(text);
    Outcome::Done
}

pub fn tables(shell: &mut Shell, words: &Words) -> Outcome {
    if words.len() > 2 {
        return usage(".tables ?LIKE-PATTERN?");
    }
    let kinds = "type IN ('table','view') AND name NOT LIKE 'sqlite_%' AND name LIKE ?1 ";
    list(shell, kinds, words.get(1))
}

pub fn indexes(shell: &mut Shell, words: &Words) -> Outcome {
    if words.len() > 2 {
        return usage(".indexes ?LIKE-PATTERN?");
    }
    list(shell, "type='index' AND tbl_name LIKE ?1", words.get(1))
}

/// Shows names of the schema in columns, those of attached databases with their database's.
fn list(shell: &mut Shell, condition: &str, pattern: Option<&Vec<u8>>) -> Outcome {
    let database = shell.database();
    let pattern = pattern.map_or(&b"%"[..], Vec::as_slice);
    let names = names_of_databases(database).and_then(|databases| {
        let one = |name: &Vec<u8>| {
            let schema = String::from_utf8_lossy(&quoted_name(name)).into_owned();
            let shown = match name.as_slice() {
                b"main" => "name".to_owned(),
                name => format!("{}||'.'||name", String::from_utf8_lossy(&sql_text(name))),
            };
            format!("SELECT {shown} FROM {schema}.sqlite_schema WHERE {condition}")
        };
        let queries: Vec<String> = databases.iter().map(one).collect();
        database.texts(&format!("{} ORDER BY 1", queries.join(" UNION ALL ")), &[pattern])
    });
    match names {
        Ok(names) => {
            shell.out.put(in_columns(&names));
            Outcome::Done
        }
        Err(failure) => said(&failure),
    }
}

/// Names below each other, in as many columns as fit into 80 characters.
fn in_columns(names: &[Vec<u8>]) -> Vec<u8> {
    let width = names.iter().map(Vec::len).max().unwrap_or(0);
    let columns = (80 / (width + 2)).max(1);
    let rows = names.len().div_ceil(columns);
    let mut text = Vec::new();
    for row in 0..rows {
        for (column, name) in names[row..].iter().step_by(rows).enumerate() {
            text.extend(if column == 0 { &b""[..] } else { b"  " });
            text.extend(name);
            text.extend(vec![b' '; width - name.len()]);
        }
        text.push(b'\n');
    }
    text
}

/// What `.schema` was asked for.
#[derive(Default)]
struct Request {
    pattern: Option<Vec<u8>>,
    indent: bool,
    no_system: bool,
    debug: bool,
}

pub fn run(shell: &mut Shell, words: &Words) -> Outcome {
    let mut request = Request::default();
    for word in &words[1..] {
        match option(word) {
            Some(b"indent") => request.indent = true,
            Some(b"nosys") => request.no_system = true,
            Some(b"debug") => request.debug = true,
            Some(_) => return failed(&[b"Unknown option: \"", word, b"\""]),
            None if request.pattern.is_some() => {
                return usage(".schema ?--indent? ?--nosys? ?LIKE-PATTERN?");
            }
            None => request.pattern = Some(word.clone()),
        }
    }
    let catalogues: [&[u8]; 4] =
        [b"sqlite_master", b"sqlite_schema", b"sqlite_temp_master", b"sqlite_temp_schema"];
    if let Some(name) = request.pattern.as_ref()
        && catalogues.contains(&name.to_ascii_lowercase().as_slice())
    {
        let name = String::from_utf8_lossy(name).into_owned();
        shell.out.put(format!(
            "CREATE TABLE {name} (\n  type text,\n  name text,\n  tbl_name text,\n  rootpage integer,\n  sql text\n);\n"
        ));
        return Outcome::Done;
    }
    match statements(shell.database(), &request) {
        Ok(statements) => {
            for statement in statements {
                shell.out.put(if request.indent { indented(&statement) } else { line(&statement, b";\n") });
            }
            Outcome::Done
        }
        Err(failure) => said(&failure),
    }
}

/// The statements that make what a request is about.
fn statements(database: &Database, request: &Request) -> Result<Vec<Vec<u8>>, Failure> {
    let (subject, pattern) = match &request.pattern {
        None => ("1", Vec::new()),
        Some(pattern) => {
            let pattern = pattern.to_ascii_lowercase();
            let is_glob = pattern.iter().any(|byte| b"*?[".contains(byte));
            let subject = match (pattern.contains(&b'.'), is_glob) {
                (true, true) => "lower(printf('%s.%s',sname,tbl_name)) GLOB ?1",
                (true, false) => "lower(printf('%s.%s',sname,tbl_name)) LIKE ?1 ESCAPE '\\'",
                (false, true) => "lower(tbl_name) GLOB ?1",
                (false, false) => "lower(tbl_name) LIKE ?1 ESCAPE '\\'",
            };
            (subject, pattern)
        }
    };
    let system = if request.no_system { " AND name NOT LIKE 'sqlite_%'" } else { "" };
    let mut statements = Vec::new();
    for name in names_of_databases(database)? {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let query = format!(
            "SELECT sql,type,name FROM (SELECT *,rowid,{} AS sname FROM {}.sqlite_schema) \
             WHERE {subject} AND type!='meta' AND sql IS NOT NULL{system} ORDER BY rowid",
            text(sql_text(&name)),
            text(quoted_name(&name))
        );
        let parameters: &[&[u8]] = if request.pattern.is_some() { &[&pattern] } else { &[] };
        for row in database.rows(&query, parameters)? {
            statements.push(explained(database, &name, &row));
        }
    }
    Ok(statements)
}

/// A statement with the name of its database where that is not `main`, and the columns that a view or a virtual table
/// has as a comment.
fn explained(database: &Database, schema: &[u8], row: &[Cell]) -> Vec<u8> {
    let part = |column: usize| row.get(column).and_then(Cell::text).unwrap_or_default();
    let (sql, kind, name) = (part(0), part(1), part(2));
    let mut statement = with_schema(&sql, schema);
    if kind == b"view" || sql.to_ascii_uppercase().starts_with(b"CREATE VIRTUAL") {
        statement.extend(columns_comment(database, schema, &name).unwrap_or_default());
    }
    statement
}

fn with_schema(sql: &[u8], schema: &[u8]) -> Vec<u8> {
    const KINDS: [&[u8]; 6] = [b"TABLE", b"INDEX", b"UNIQUE INDEX", b"VIEW", b"TRIGGER", b"VIRTUAL TABLE"];
    if let Some(rest) = sql.strip_prefix(b"CREATE ").filter(|_| schema != b"main") {
        for kind in KINDS {
            if let Some(object) = rest.strip_prefix(kind).and_then(|rest| rest.strip_prefix(b" ")) {
                return [b"CREATE ", kind, b" ", &schema_name(schema), b".", object].concat();
            }
        }
    }
    sql.to_vec()
}

/// A database's name; `temp`, a word of SQL's, is one without quotes.
fn schema_name(schema: &[u8]) -> Vec<u8> {
    if schema == b"temp" { schema.to_vec() } else { quoted_name(schema) }
}

fn columns_comment(database: &Database, schema: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let query = "SELECT name FROM pragma_table_info(?1, ?2)";
    let columns = database.texts(query, &[name, schema]).ok().filter(|columns| !columns.is_empty())?;
    let columns: Vec<Vec<u8>> = columns.iter().map(|column| quoted_name(column)).collect();
    let place = if schema == b"main" { Vec::new() } else { [&schema_name(schema)[..], b"."].concat() };
    Some([b"\n/* ", &place[..], &quoted_name(name), b"(", &columns.join(&b','), b") */"].concat())
}

/// A statement of the schema as it is shown: one for a table with a quoted name can be run where there is one already.
pub fn line(sql: &[u8], end: &[u8]) -> Vec<u8> {
    let is_quoted = |rest: &&[u8]| matches!(rest.first(), Some(b'\'' | b'"'));
    match sql.strip_prefix(b"CREATE TABLE ").filter(is_quoted) {
        Some(rest) => [b"CREATE TABLE IF NOT EXISTS ", rest, end].concat(),
        None => [sql, end].concat(),
    }
}

/// A statement with a line for each column, if it is long.
fn indented(sql: &[u8]) -> Vec<u8> {
    let is_left_alone =
        |start: &[u8]| sql.len() >= start.len() && sql[..start.len()].eq_ignore_ascii_case(start);
    if is_left_alone(b"CREATE VIEW") || is_left_alone(b"CREATE TRIG") {
        return [sql, b";\n"].concat();
    }
    let sql = squeezed(sql);
    if sql.len() < 79 {
        return line(&sql, b";\n");
    }
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let (mut current, mut depth, mut until) = (Vec::new(), 0, None);
    let mut bytes = sql.iter().copied().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            _ if Some(byte) == until => until = None,
            b'"' | b'\'' | b'`' => until = Some(byte),
            b'[' => until = Some(b']'),
            b'-' if sql.get(at + 1) == Some(&b'-') => until = Some(b'\n'),
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if !lines.is_empty() && depth == 0 && !current.is_empty() {
                    lines.push([&std::mem::take(&mut current)[..], b"\n"].concat());
                }
            }
            _ => {}
        }
        current.push(byte);
        let ends_column = byte == b',' && !is_blank_to_line_end(&sql[at + 1..]);
        if depth == 1 && until.is_none() && (byte == b'(' || byte == b'\n' || ends_column) {
            if byte == b'\n' {
                current.pop();
            }
            lines.push([&std::mem::take(&mut current)[..], b"\n  "].concat());
            while bytes.next_if(|(_, next)| next.is_ascii_whitespace()).is_some() {}
        }
    }
    lines.push(current);
    line(&lines.concat(), b";\n")
}

/// A statement with single blanks, and none inside of parentheses.
fn squeezed(sql: &[u8]) -> Vec<u8> {
    let mut squeezed: Vec<u8> = Vec::new();
    for &byte in sql.trim_ascii_start() {
        let last_is_blank = squeezed.last().is_some_and(u8::is_ascii_whitespace);
        if byte.is_ascii_whitespace() {
            if last_is_blank || squeezed.last() == Some(&b'(') {
                continue;
            }
        } else if matches!(byte, b'(' | b')') && last_is_blank {
            squeezed.pop();
        }
        squeezed.push(byte);
    }
    squeezed.trim_ascii_end().to_vec()
}

/// Whether nothing but blanks or a comment follows on the line.
fn is_blank_to_line_end(rest: &[u8]) -> bool {
    for (at, &byte) in rest.iter().enumerate() {
        match byte {
            b'\n' => return true,
            b'-' if rest.get(at + 1) == Some(&b'-') => return true,
            byte if byte.is_ascii_whitespace() => {}
            _ => return false,
        }
    }
    true
}

/// The schema with the statistics that the planner has of it.
pub fn full(shell: &mut Shell, words: &Words) -> Outcome {
    let indent = words.get(1).is_some_and(|word| is_option(word, "indent"));
    if words.len() > 2 || words.len() == 2 && !indent {
        return usage(".fullschema ?--indent?");
    }
    match full_text(shell.database(), indent) {
        Ok(text) => {
            shell.out.put(text);
            Outcome::Done
        }
        Err(failure) => said(&failure),
    }
}

fn full_text(database: &Database, indent: bool) -> Result<Vec<u8>, Failure> {
    let statements = database.texts(
        "SELECT sql FROM (SELECT sql sql, type type, tbl_name tbl_name, name name, rowid x FROM sqlite_schema \
         UNION ALL SELECT sql, type, tbl_name, name, rowid FROM sqlite_temp_schema) \
         WHERE type!='meta' AND sql NOTNULL AND name NOT LIKE 'sqlite_%' ORDER BY x",
        &[],
    )?;
    let mut text: Vec<u8> =
        statements.iter().flat_map(|sql| if indent { indented(sql) } else { line(sql, b";\n") }).collect();
    let kept = database.texts("SELECT name FROM sqlite_schema WHERE name GLOB 'sqlite_stat[134]'", &[])?;
    if kept.is_empty() {
        text.extend(b"/* No STAT tables available */\n");
        return Ok(text);
    }
    text.extend(b"ANALYZE sqlite_schema;\n");
    for name in [&b"sqlite_stat1"[..], b"sqlite_stat4"] {
        if !kept.iter().any(|kept| kept == name) {
            continue;
        }
        for row in database.rows(&format!("SELECT * FROM {}", String::from_utf8_lossy(name)), &[])? {
            let values: Vec<Vec<u8>> = row.iter().map(insert_value).collect();
            text.extend([b"INSERT INTO ", name, b" VALUES(", &values.join(&b','), b");\n"].concat());
        }
    }
    text.extend(b"ANALYZE sqlite_schema;\n");
    Ok(text)
}
