//! The tools as a model sees them: names, descriptions and schemas, and which of them only look.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::options::Options;

/// What a tool does to what it works on.
#[derive(Clone, Copy, PartialEq)]
enum Effect {
    /// It only looks.
    Reads,
    /// It adds something.
    Adds,
    /// It may replace or remove something in the sandbox.
    Changes,
    /// It changes files of the host.
    ChangesHost,
}

/// Returns the tools that a server with these options has.
pub(crate) fn tools(options: &Options) -> Vec<Tool> {
    let mut tools = vec![run_command(options), run_python(options)];
    tools.extend(file_tools());
    tools.extend(sandbox_tools());
    if options.state_dir.is_some() {
        tools.extend(state_tools());
    }
    if !options.overlays().is_empty() {
        tools.push(apply_changes(options));
    }
    tools
}

fn run_command(options: &Options) -> Tool {
    let description = "Runs a script in a sandbox with a bash-compatible shell, the usual Unix tools and Python. Variables, \
        functions, the working directory and files persist from call to call; shell options and traps do not. Returns \
        standard output and standard error in the order they were written, and the exit code.";
    tool(
        "run_command",
        "Run a command",
        description,
        Effect::Changes,
        &["command"],
        json!({
            "command": {"type": "string", "description": "The script to run."},
            "timeout_seconds": timeout(options),
            "cwd": {"type": "string", "description": "The directory for this command only."},
            "stdin": {"type": "string", "description": "Standard input; empty by default."},
            "env": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Variables for this command only.",
            },
        }),
    )
}

fn run_python(options: &Options) -> Tool {
    let description = "Runs Python code in an interpreter that stays: variables, imports and open files live from call to call. \
        Returns what it prints and the value of the last expression, or the traceback.";
    tool(
        "run_python",
        "Run Python",
        description,
        Effect::Changes,
        &["code"],
        json!({
            "code": {"type": "string", "description": "The code to run."},
            "context": {"type": "string", "description": "Names another interpreter, with variables of its own."},
            "timeout_seconds": timeout(options),
        }),
    )
}

fn timeout(options: &Options) -> Value {
    let (default, most) = (options.timeout.as_secs_f64(), options.max_timeout.as_secs_f64());
    json!({"type": "number", "exclusiveMinimum": 0, "description": format!("Timeout in seconds; {default} by default, at most {most}.")})
}

fn file_tools() -> [Tool; 5] {
    let path = || json!({"type": "string", "description": "The file's path in the sandbox."});
    [
        tool(
            "read_file",
            "Read a file",
            "Reads a text file of the sandbox, or some of its lines.",
            Effect::Reads,
            &["path"],
            json!({
                "path": path(),
                "first_line": {"type": "integer", "minimum": 1, "description": "The first line to read; 1 by default."},
                "line_count": {"type": "integer", "minimum": 1, "description": "How many lines to read; all by default."},
            }),
        ),
        tool(
            "write_file",
            "Write a file",
            "Writes a text file of the sandbox, replaces what was there, and creates missing \
            directories.",
            Effect::Changes,
            &["path", "content"],
            json!({
                "path": path(),
                "content": {"type": "string", "description": "The whole content."},
            }),
        ),
        tool(
            "edit_file",
            "Edit a file",
            "Replaces a piece of text in a file of the sandbox, and returns the difference. The \
            piece must match exactly, and must be unique unless replace_all is set.",
            Effect::Changes,
            &["path", "old_text", "new_text"],
            json!({
                "path": path(),
                "old_text": {"type": "string", "minLength": 1, "description": "The text to replace, exactly as it is in the file."},
                "new_text": {"type": "string", "description": "The text to put there."},
                "replace_all": {"type": "boolean", "description": "Replace every occurrence; false by default."},
            }),
        ),
        tool(
            "list_directory",
            "List a directory",
            "Lists a directory of the sandbox, with sizes. '/' marks directories, '@' links.",
            Effect::Reads,
            &[],
            json!({
                "path": {"type": "string", "description": "The directory; the shell's by default."},
                "recursive": {"type": "boolean", "description": "List everything below it; false by default."},
            }),
        ),
        tool(
            "search_files",
            "Search files",
            "Finds lines that match a regular expression in the files of a directory of the \
            sandbox, or files by their names. Returns path:line:text, or paths.",
            Effect::Reads,
            &[],
            json!({
                "pattern": {"type": "string", "description": "An extended regular expression (grep -E)."},
                "glob": {"type": "string", "description": "Only files with such a name, as in *.py. Without a pattern, the files themselves."},
                "path": {"type": "string", "description": "Where to search; the shell's directory by default."},
                "max_results": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "200 by default."},
            }),
        ),
    ]
}

fn sandbox_tools() -> [Tool; 6] {
    let count = json!({"type": "integer", "minimum": 1, "description": "How many forks; 1 by default."});
    let label = json!({"type": "string", "description": "What it is for, as list_sandboxes shows it."});
    [
        only(
            "create_sandbox",
            "Create a sandbox",
            "Creates a fresh sandbox and returns its name, for the argument 'sandbox' of \
            the other tools. Without that argument they use the sandbox 'main'.",
            Effect::Adds,
            &[],
            json!({"label": label}),
        ),
        only(
            "list_sandboxes",
            "List sandboxes",
            "Lists the sandboxes by name.",
            Effect::Reads,
            &[],
            json!({}),
        ),
        only(
            "destroy_sandbox",
            "Destroy a sandbox",
            "Destroys a sandbox with all its files.",
            Effect::Changes,
            &["sandbox"],
            json!({"sandbox": {"type": "string", "description": "The sandbox to destroy."}}),
        ),
        tool(
            "fork_sandbox",
            "Fork a sandbox",
            "Makes copies of a sandbox, with files, variables and interpreters, and returns \
            their names. Cheap: use it to try several ways.",
            Effect::Adds,
            &[],
            json!({"count": count}),
        ),
        tool(
            "snapshot",
            "Take a snapshot",
            "Saves the state of a sandbox, and returns the snapshot's name for restore. It goes with its sandbox.",
            Effect::Adds,
            &[],
            json!({}),
        ),
        tool(
            "restore",
            "Restore a snapshot",
            "Puts a sandbox back to a snapshot, with files, variables and interpreters.",
            Effect::Changes,
            &["snapshot"],
            json!({"snapshot": {"type": "string", "description": "The snapshot's name."}}),
        ),
    ]
}

fn state_tools() -> [Tool; 2] {
    let name = || json!({"type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]*$", "description": "The state's name."});
    [
        tool(
            "export_state",
            "Export a state",
            "Saves the whole sandbox under a name on the host, where it outlives this server.",
            Effect::Adds,
            &["name"],
            json!({"name": name()}),
        ),
        tool(
            "import_state",
            "Import a state",
            "Replaces the whole sandbox by a state that export_state saved.",
            Effect::Changes,
            &["name"],
            json!({"name": name()}),
        ),
    ]
}

fn apply_changes(options: &Options) -> Tool {
    let overlays = options.overlays().join(", ");
    let description = "Writes the changes that the sandbox made below a host directory's overlay to the host directory: all \
        of them or none. Until then the host's files are untouched. The user may be asked first.";
    tool(
        "apply_changes",
        "Apply changes to the host",
        description,
        Effect::ChangesHost,
        &[],
        json!({
            "path": {"type": "string", "description": format!("The overlay: {overlays}. May be left out if there is one.")},
            "dry_run": {"type": "boolean", "description": "Only check and show the changes; false by default."},
        }),
    )
}

/// A tool that works on a sandbox: it takes its name, too.
fn tool(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
    required: &[&str],
    mut properties: Value,
) -> Tool {
    properties["sandbox"] = json!({"type": "string", "description": "The sandbox; 'main' by default."});
    only(name, title, description, effect, required, properties)
}

/// A tool that takes only these arguments.
fn only(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
    required: &[&str],
    properties: Value,
) -> Tool {
    let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let schema: Map<String, Value> = schema.as_object().cloned().unwrap_or_default();
    let changes = matches!(effect, Effect::Changes | Effect::ChangesHost);
    let annotations = ToolAnnotations::from_raw(
        Some(title.to_owned()),
        Some(effect == Effect::Reads),
        Some(changes),
        Some(effect == Effect::Reads),
        // Nothing but apply_changes reaches beyond the sandboxes.
        Some(effect == Effect::ChangesHost),
    );
    Tool::new(name, description, Arc::new(schema)).with_title(title).with_annotations(annotations)
}
