//! `declare`, `local`, `export`, `readonly`, `unset`.

mod listing;
mod unset;

pub use listing::{assignment_line, attribute_letters, declaration};
pub use unset::unset;

use listing::{list_functions, list_variables, list_with};

use super::{Options, fail, output};
use crate::ast::{Arg, AssignedValue, Assignment, Simple};
use crate::parser::is_assignment_name;
use crate::shell::{Exec, Flow, Shell};
use crate::vars::{Assoc, Attrs, Indexed, Value, Var};

const DECLARE_USAGE: &str =
    "declare [-aAfFgiIlnrtux] [name[=value] ...] or declare -p [-aAfFilnrtux] [name ...]";
const TYPESET_USAGE: &str =
    "typeset [-aAfFgiIlnrtux] name[=value] ... or typeset -p [-aAfFilnrtux] [name ...]";

/// What the options of `declare` ask for.
#[derive(Default)]
struct Request {
    on: Attrs,
    off: Attrs,
    indexed: bool,
    assoc: bool,
    functions: bool,
    function_names: bool,
    global: bool,
    inherit: bool,
    print: bool,
    no_array: bool,
}

impl Request {
    /// Whether a listing of some kind of arrays has this variable.
    fn wants_kind(&self, var: &Var) -> bool {
        !(self.indexed || self.assoc)
            || self.indexed && matches!(var.value, Value::Indexed(_))
            || self.assoc && matches!(var.value, Value::Assoc(_))
    }
}

fn attribute(letter: u8) -> Option<Attrs> {
    Some(match letter {
        b'x' => Attrs::EXPORT,
        b'r' => Attrs::READONLY,
        b'i' => Attrs::INTEGER,
        b'u' => Attrs::UPPER,
        b'l' => Attrs::LOWER,
        b'n' => Attrs::NAMEREF,
        b't' => Attrs::TRACE,
        b'c' => Attrs::CAPITAL,
        _ => return None,
    })
}

/// Options and where the operands start.
fn request(shell: &Shell, args: &[Vec<u8>]) -> Result<(Request, usize), i32> {
    let mut request = Request::default();
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        if arg == b"--" {
            at += 1;
            break;
        }
        let on = match arg.first() {
            Some(b'-') if arg.len() > 1 => true,
            Some(b'+') if arg.len() > 1 => false,
            _ => break,
        };
        for &letter in &arg[1..] {
            match letter {
                b'a' if on => request.indexed = true,
                b'A' if on => request.assoc = true,
                b'a' | b'A' => request.no_array = true,
                b'f' => request.functions = true,
                b'F' => {
                    request.functions = true;
                    request.function_names = true;
                }
                b'g' => request.global = true,
                b'I' => request.inherit = true,
                b'p' => request.print = true,
                _ => match attribute(letter) {
                    Some(attrs) if on => request.on.set(attrs, true),
                    Some(attrs) => request.off.set(attrs, true),
                    None => {
                        let usage = match args[0].as_slice() {
                            b"declare" => DECLARE_USAGE,
                            b"local" => "local [option] name[=value] ...",
                            _ => TYPESET_USAGE,
                        };
                        return Err(super::invalid_option(shell, &args[0], &[arg[0], letter], usage));
                    }
                },
            }
        }
        at += 1;
    }
    Ok((request, at))
}

pub fn declare(shell: &mut Shell, args: &[Vec<u8>], simple: &Simple) -> Exec {
    let (request, at) = match request(shell, args) {
        Ok(parsed) => parsed,
        Err(status) => return Ok(status),
    };
    let operands = &args[at..];
    if request.functions {
        return list_functions(shell, &request, operands);
    }
    if request.print || operands.is_empty() {
        return list_variables(shell, &args[0], &request, operands);
    }
    let local = shell.vars.in_function() && !request.global;
    apply_all(shell, &args[0], &request, operands, simple, local)
}

pub fn local(shell: &mut Shell, args: &[Vec<u8>], simple: &Simple) -> Exec {
    if !shell.vars.in_function() {
        return Ok(fail(shell, b"local", &[b"can only be used in a function"], 1));
    }
    if args.get(1).is_some_and(|arg| arg == b"-") {
        let options = shell.options.clone();
        if let Some(scope) = shell.vars.scope_mut() {
            scope.saved_options = Some(options);
        }
        return Ok(0);
    }
    let (request, at) = match request(shell, args) {
        Ok(parsed) => parsed,
        Err(status) => return Ok(status),
    };
    if at == args.len() {
        let names = shell.vars.local_names();
        let line = |name: &Vec<u8>| Some([declaration(name, shell.vars.raw(name)?), b"\n".to_vec()].concat());
        let text = names.iter().filter_map(line).collect::<Vec<_>>().concat();
        return Ok(output(shell, b"local", &text));
    }
    apply_all(shell, b"local", &request, &args[at..], simple, true)
}

pub fn export(shell: &mut Shell, args: &[Vec<u8>], simple: &Simple) -> Exec {
    let mut options = Options::new(args);
    let (mut functions, mut remove) = (false, false);
    let mut request = Request::default();
    while let Some(letter) = options.next() {
        match letter {
            b'f' => functions = true,
            b'n' => remove = true,
            b'a' => request.indexed = true,
            b'A' => request.assoc = true,
            b'p' => {}
            other => {
                return Ok(super::invalid_option(
                    shell,
                    b"export",
                    &[b'-', other],
                    "export [-fn] [name[=value] ...] or export -p",
                ));
            }
        }
    }
    let operands = options.rest();
    if functions {
        return set_function_attrs(shell, b"export", Attrs::EXPORT, !remove, operands);
    }
    if operands.is_empty() {
        return list_with(shell, b"export", Attrs::EXPORT, &request);
    }
    if remove {
        request.off = Attrs::EXPORT
    } else {
        request.on = Attrs::EXPORT
    }
    apply_all(shell, b"export", &request, operands, simple, false)
}

pub fn readonly(shell: &mut Shell, args: &[Vec<u8>], simple: &Simple) -> Exec {
    let mut options = Options::new(args);
    let mut request = Request { on: Attrs::READONLY, ..Request::default() };
    let mut functions = false;
    while let Some(letter) = options.next() {
        match letter {
            b'f' => functions = true,
            b'a' => request.indexed = true,
            b'A' => request.assoc = true,
            // Taken, as bash takes it, but what is read-only stays so.
            b'n' => request.on = Attrs::default(),
            b'p' => {}
            other => {
                return Ok(super::invalid_option(
                    shell,
                    b"readonly",
                    &[b'-', other],
                    "readonly [-aAf] [name[=value] ...] or readonly -p",
                ));
            }
        }
    }
    let operands = options.rest();
    if functions {
        return set_function_attrs(shell, b"readonly", Attrs::READONLY, true, operands);
    }
    if operands.is_empty() {
        return list_with(shell, b"readonly", Attrs::READONLY, &request);
    }
    apply_all(shell, b"readonly", &request, operands, simple, false)
}

fn set_function_attrs(shell: &mut Shell, name: &[u8], attrs: Attrs, on: bool, operands: &[Vec<u8>]) -> Exec {
    let mut status = 0;
    for operand in operands {
        if !shell.functions.contains_key(operand) {
            status = fail(shell, name, &[operand, b": not a function"], 1);
            continue;
        }
        if on && attrs == Attrs::EXPORT && operand.iter().any(|byte| matches!(byte, b'=' | b'/')) {
            status = fail(shell, name, &[operand, b": cannot export"], 1);
            continue;
        }
        shell.function_attrs.entry(operand.clone()).or_default().set(attrs, on);
    }
    Ok(status)
}

fn apply_all(
    shell: &mut Shell,
    name: &[u8],
    request: &Request,
    operands: &[Vec<u8>],
    simple: &Simple,
    local: bool,
) -> Exec {
    let mut status = 0;
    for operand in operands {
        match apply(shell, name, request, operand, simple, local) {
            Ok(result) => status = status.max(result),
            Err(Flow::Discard(_)) if name != b"declare" && !request.on.has(Attrs::INTEGER) => status = 1,
            Err(flow) => return Err(flow),
        }
    }
    Ok(status)
}

/// An operand taken apart.
struct Operand<'o> {
    name: &'o [u8],
    subscript: Option<&'o [u8]>,
    append: bool,
    value: Option<&'o [u8]>,
}

fn take_apart(operand: &[u8]) -> Operand<'_> {
    let end = operand
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))
        .unwrap_or(operand.len());
    let (name, mut rest) = operand.split_at(end);
    let mut subscript = None;
    if rest.first() == Some(&b'[')
        && let Some(close) = rest.iter().position(|&byte| byte == b']')
    {
        subscript = Some(&rest[1..close]);
        rest = &rest[close + 1..];
    }
    if let Some(value) = rest.strip_prefix(b"+=") {
        return Operand { name, subscript, append: true, value: Some(value) };
    }
    match rest.strip_prefix(b"=") {
        Some(value) => Operand { name, subscript, append: false, value: Some(value) },
        None if rest.is_empty() => Operand { name, subscript, append: false, value: None },
        None => Operand { name: operand, subscript: None, append: false, value: None },
    }
}

fn apply(
    shell: &mut Shell,
    command: &[u8],
    request: &Request,
    operand: &[u8],
    simple: &Simple,
    local: bool,
) -> Exec {
    let parts = take_apart(operand);
    let of_element = parts.subscript.is_some() && matches!(command, b"export" | b"readonly");
    if !is_assignment_name(parts.name) || of_element {
        return Ok(fail(shell, command, &[b"`", operand, b"': not a valid identifier"], 1));
    }
    if request.global && shell.vars.in_function() {
        // The closure cannot borrow the whole shell, so the scopes are set aside by hand.
        let hidden = shell.vars.raw(parts.name).cloned();
        let is_hidden = shell.vars.with_global(parts.name, |vars| vars.raw(parts.name).cloned());
        return apply_global(shell, command, request, operand, simple, hidden, is_hidden);
    }
    if local {
        let was_local = shell.vars.is_local(parts.name);
        // A caller's local may be hidden even if it is read-only; what is outside all functions may not.
        let is_global = !shell.vars.is_local_anywhere(parts.name);
        if !was_local
            && is_global
            && shell.vars.raw(parts.name).is_some_and(|var| var.attrs.has(Attrs::READONLY))
        {
            return Ok(fail(shell, command, &[parts.name, b": readonly variable"], 1));
        }
        let hidden = shell.vars.make_local(parts.name);
        if !was_local {
            // `x=1 local x` makes a local of what was just assigned.
            let given = simple.assignments.iter().any(|assignment| assignment.name.as_ref() == parts.name);
            let inherit = request.inherit || given || shell.shopt.get("localvar_inherit");
            let exported = hidden.as_ref().is_some_and(|var| var.attrs.has(Attrs::EXPORT));
            let var = if inherit { hidden.unwrap_or_default() } else { Var::default() };
            shell.vars.insert(parts.name, var);
            if let Some(var) = shell.vars.raw_mut(parts.name) {
                var.attrs.set(Attrs::EXPORT, exported || inherit && var.attrs.has(Attrs::EXPORT));
                var.attrs.set(Attrs::READONLY, false);
                if parts.name == b"OPTIND" {
                    var.attrs.set(Attrs::WATCHED, true);
                    shell.getopts_at = 0;
                }
            }
        }
    }
    apply_here(shell, command, request, &parts, simple)
}

/// `declare -g`: acts on the variable outside all functions.
fn apply_global(
    shell: &mut Shell,
    command: &[u8],
    request: &Request,
    operand: &[u8],
    simple: &Simple,
    local: Option<Var>,
    global: Option<Var>,
) -> Exec {
    let parts = take_apart(operand);
    match global {
        Some(var) => shell.vars.insert(parts.name, var),
        None => drop(shell.vars.remove(parts.name)),
    }
    let result = apply_here(shell, command, request, &parts, simple);
    let changed = shell.vars.remove(parts.name);
    if let Some(local) = local.clone() {
        shell.vars.insert(parts.name, local);
    }
    let name = parts.name.to_vec();
    shell.vars.with_global(&name, |vars| match changed {
        Some(var) => vars.insert(&name, var),
        None => drop(vars.remove(&name)),
    });
    result
}

fn apply_here(
    shell: &mut Shell,
    command: &[u8],
    request: &Request,
    parts: &Operand<'_>,
    simple: &Simple,
) -> Exec {
    let resolved = if request.on.has(Attrs::NAMEREF) || request.off.has(Attrs::NAMEREF) {
        parts.name.to_vec()
    } else {
        shell.vars.resolve(parts.name).into_owned()
    };
    if !is_assignment_name(&resolved) {
        if let Some(value) = parts.value {
            shell.assign(parts.name, value)?;
        }
        return Ok(0);
    }
    if request.off.has(Attrs::NAMEREF)
        && let Some(value) = parts.value
        && shell.vars.raw(parts.name).is_some_and(|var| var.attrs.has(Attrs::NAMEREF))
    {
        // The value is for the variable it still points to; what stays of itself is that one's name.
        shell.assign(parts.name, value)?;
        shell.vars.entry(parts.name).attrs.set(request.off, false);
        return Ok(0);
    }
    let name = resolved.as_slice();
    // What is exported or made read-only in a function is not only there for its call.
    if matches!(command, b"export" | b"readonly") && shell.vars.is_temporary(name) {
        shell.vars.keep_temporary(name);
    }
    let frozen = shell.vars.raw(name).is_some_and(|var| var.attrs.has(Attrs::READONLY));
    let whole = (request.indexed || request.assoc) && array_of(simple, parts.name).is_none();
    if frozen && parts.value.is_some() && !whole && matches!(command, b"export" | b"readonly") {
        shell.complain_parts(&[name, b": readonly variable"]);
        return Ok(1);
    }
    let becomes_reference = request.on.has(Attrs::NAMEREF);
    if frozen && (parts.value.is_some() || request.off.has(Attrs::READONLY) || becomes_reference) {
        return Ok(fail(shell, command, &[name, b": readonly variable"], 1));
    }
    if becomes_reference && let Some(status) = unfit_for_reference(shell, command, parts) {
        return Ok(status);
    }
    if request.on.has(Attrs::NAMEREF)
        && let Some(target) = parts.value
    {
        let base = &target[..target.iter().position(|&byte| byte == b'[').unwrap_or(target.len())];
        if !is_assignment_name(base) {
            return Ok(fail(
                shell,
                command,
                &[b"`", target, b"': invalid variable name for name reference"],
                1,
            ));
        }
        if target == name && shell.vars.is_local(name) {
            // It means the one outside, which then need not be hidden.
            fail(shell, command, &[b"warning: ", name, b": circular name reference"], 0);
            shell.vars.reveal(name);
            return Ok(0);
        }
        if target == name {
            return Ok(fail(shell, command, &[name, b": nameref variable self references not allowed"], 1));
        }
    }
    if let Some(status) = misshapen(shell, command, request, name) {
        return Ok(status);
    }
    shape(shell, request, name, parts);
    assign(shell, command, request, name, parts, simple)?;
    let var = shell.vars.entry(name);
    var.attrs.set(Attrs(request.on.0 & (Attrs::READONLY.0 | Attrs::NAMEREF.0)), true);
    Ok(0)
}

/// What cannot refer to another variable: an array, and one whose value is no name.
fn unfit_for_reference(shell: &Shell, command: &[u8], parts: &Operand<'_>) -> Option<i32> {
    let element = parts.subscript.map(|subscript| [b"[", subscript, b"]"].concat()).unwrap_or_default();
    let var = shell.vars.raw(parts.name);
    if parts.subscript.is_some() || var.is_some_and(Var::is_array) {
        let message = b": reference variable cannot be an array";
        return Some(fail(shell, command, &[parts.name, &element, message], 1));
    }
    let value = var.and_then(Var::text).filter(|_| parts.value.is_none())?;
    let base = value.split(|&byte| byte == b'[').next().unwrap_or_default();
    if is_assignment_name(base) {
        return None;
    }
    Some(fail(shell, command, &[b"`", value, b"': invalid variable name for name reference"], 1))
}

/// Arrays do not become arrays of the other kind, nor plain variables.
fn misshapen(shell: &Shell, command: &[u8], request: &Request, name: &[u8]) -> Option<i32> {
    let message: &[u8] = match shell.vars.raw(name).map(|var| &var.value) {
        Some(Value::Assoc(_)) if request.indexed => b": cannot convert associative to indexed array",
        Some(Value::Indexed(_)) if request.assoc => b": cannot convert indexed to associative array",
        Some(Value::Assoc(_) | Value::Indexed(_)) if request.no_array => {
            b": cannot destroy array variables in this way"
        }
        _ => return None,
    };
    Some(fail(shell, command, &[name, message], 1))
}

/// Gives a variable its attributes and kind, except those that would stop the assignment.
fn shape(shell: &mut Shell, request: &Request, name: &[u8], parts: &Operand<'_>) {
    let var = shell.vars.entry(name);
    var.attrs.set(Attrs(request.on.0 & !(Attrs::READONLY.0 | Attrs::NAMEREF.0)), true);
    if request.on.has(Attrs::UPPER) {
        var.attrs.set(Attrs::LOWER, false);
    }
    if request.on.has(Attrs::LOWER) {
        var.attrs.set(Attrs::UPPER, false);
    }
    var.attrs.set(request.off, false);
    let wants_array = request.indexed || parts.subscript.is_some();
    match &mut var.value {
        Value::Unset if request.assoc => {
            var.value = Value::Assoc(Assoc::default());
            var.attrs.set(Attrs::UNASSIGNED, true);
        }
        Value::Scalar(text) if request.assoc => {
            let mut array = Assoc::default();
            array.insert(b"0".to_vec(), std::mem::take(text));
            var.value = Value::Assoc(array);
        }
        Value::Unset if wants_array => {
            var.value = Value::Indexed(Indexed::default());
            var.attrs.set(Attrs::UNASSIGNED, true);
        }
        Value::Scalar(text) if wants_array => {
            var.value = Value::Indexed([std::mem::take(text)].into_iter().collect());
        }
        _ => {}
    }
}

fn assign(
    shell: &mut Shell,
    command: &[u8],
    request: &Request,
    name: &[u8],
    parts: &Operand<'_>,
    simple: &Simple,
) -> Exec<()> {
    let Some(value) = parts.value else { return Ok(()) };
    if request.on.has(Attrs::NAMEREF) {
        shell.vars.set_raw(name, value);
        return Ok(());
    }
    let is_list = value.starts_with(b"(") && value.ends_with(b")") && value != b"()";
    let makes_array = request.indexed || request.assoc;
    if is_list && parts.subscript.is_some() && makes_array {
        return assign_array_text(shell, name, value, parts.append);
    }
    if let Some(subscript) = parts.subscript {
        let target = [name, b"[", subscript, b"]"].concat();
        return shell.assign_reference(&target, name.len(), value.to_vec(), parts.append);
    }
    if value == b"()"
        && let Some(assignment) = array_of(simple, parts.name)
        && let AssignedValue::Array(elements) = &assignment.value
    {
        let items = shell.expand_elements(name, elements)?;
        return shell.assign_array(name, items, parts.append);
    }
    // The text of a list makes elements of an array, one that is made now or is there already.
    let extends =
        || shell.vars.raw(name).is_some_and(Var::is_array) && command != b"export" && command != b"readonly";
    if value == b"()" && makes_array || is_list && (makes_array || extends()) {
        return assign_array_text(shell, name, value, parts.append);
    }
    let mut value = value.to_vec();
    if shell.vars.raw(name).is_some_and(|var| var.attrs.has(Attrs::INTEGER)) {
        // An expression that is wrong is the builtin's to complain of.
        let number = shell.arith_text(&value).map_err(|error| shell.arith_discard(b"declare: ", error))?;
        value = number.to_string().into_bytes();
    }
    let value = value.as_slice();
    if parts.append { shell.assign_append(name, value) } else { shell.assign(name, value) }
}

/// The array written in the command for a name.
fn array_of<'s>(simple: &'s Simple, name: &[u8]) -> Option<&'s Assignment> {
    simple.words.iter().find_map(|word| match word {
        Arg::Assignment(assignment)
            if assignment.name.as_ref() == name && matches!(assignment.value, AssignedValue::Array(_)) =>
        {
            Some(assignment)
        }
        _ => None,
    })
}

/// `declare -a "x=(1 2)"`: the text of an array.
fn assign_array_text(shell: &mut Shell, name: &[u8], value: &[u8], append: bool) -> Exec<()> {
    let operator: &[u8] = if append { b"+=" } else { b"=" };
    let text = [name, operator, value].concat();
    let mut parser = crate::parser::Parser::new(text, shell.line);
    let dialect = shell.dialect();
    match parser.next_command(&dialect) {
        Ok(Some(list)) if is_one_assignment(&list) && parser.is_at_end() => shell.run_list(&list).map(drop),
        _ => shell.assign(name, value),
    }
}

/// Whether commands are no more than an assignment: text that is more is not run.
fn is_one_assignment(list: &crate::ast::List) -> bool {
    let [item] = list.items.as_slice() else { return false };
    let alone = item.rest.is_empty() && !item.background && !item.first.negated && item.first.timed.is_none();
    match item.first.stages.as_slice() {
        [crate::ast::Command::Simple(simple)] if alone => {
            simple.words.is_empty() && simple.redirects.is_empty() && simple.assignments.len() == 1
        }
        _ => false,
    }
}
