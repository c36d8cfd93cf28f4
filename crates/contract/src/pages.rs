//! What is made of the contract: a JSON Schema, an OpenAPI document, tables for people and types for TypeScript.

use std::fmt::Write;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::methods::{METHODS, Method};

/// How each written file begins, where it can say so.
const WRITTEN: &str = "Written by `cargo xtask contract`.";

fn generator(definitions: &'static str) -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = definitions.into())
        .into_generator()
}

fn pretty(value: &Value) -> String {
    // A value can always be written.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// Returns docs/protocol.schema.json: the types of all params and results, and which method has which.
pub fn schema() -> String {
    let mut generator = generator("/$defs");
    let mut methods = Map::new();
    for method in METHODS {
        let entry = json!({
            "description": method.about,
            "params": (method.params)(&mut generator),
            "result": (method.result)(&mut generator),
        });
        methods.insert(method.name.to_owned(), entry);
    }
    pretty(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The protocol of `wardian serve`",
        "description": format!("{WRITTEN} docs/protocol.md describes the protocol; `methods` says which types a method has."),
        "methods": methods,
        "$defs": generator.take_definitions(true),
    }))
}

/// Returns the names of a method's params, those that are required first, and which of them are.
fn param_names(schema: &Value) -> Vec<(String, bool)> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let mut names: Vec<(String, bool)> = properties
        .keys()
        .filter(|name| *name != "sandboxId" || required.contains(&"sandboxId"))
        .map(|name| (name.clone(), required.contains(&name.as_str())))
        .collect();
    names.sort_by_key(|(_, required)| !required);
    names
}

/// Every type with its definition, where `$ref` leads.
struct Types {
    definitions: Map<String, Value>,
}

impl Types {
    fn of_methods() -> (Types, Vec<(&'static Method, Value, Value)>) {
        let mut generator = generator("/$defs");
        let mut rows = Vec::new();
        for method in METHODS {
            let params = Value::from((method.params)(&mut generator));
            rows.push((method, params, Value::from((method.result)(&mut generator))));
        }
        (Types { definitions: generator.take_definitions(true) }, rows)
    }

    fn resolve<'t>(&'t self, schema: &'t Value) -> &'t Value {
        let name = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
        name.and_then(|name| self.definitions.get(name)).unwrap_or(schema)
    }

    /// Returns the fields of a result, as `{a, b?}`.
    fn shape(&self, schema: &Value) -> String {
        let resolved = self.resolve(schema);
        if let Some(items) = resolved.get("items") {
            return format!("[{}]", self.shape(items));
        }
        let required: Vec<&str> =
            resolved["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let Some(properties) = resolved["properties"].as_object() else { return String::new() };
        let field = |(name, value): (&String, &Value)| {
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            let inner = match value.get("items") {
                Some(items) if self.resolve(items).get("properties").is_some() => {
                    format!(": [{}]", self.shape(items))
                }
                _ => String::new(),
            };
            format!("{name}{mark}{inner}")
        };
        format!("{{{}}}", properties.iter().map(field).collect::<Vec<_>>().join(", "))
    }
}

/// Returns the table of docs/protocol.md.
pub fn table() -> String {
    let (types, rows) = Types::of_methods();
    let mut table = String::from("| method | params | result | |\n|---|---|---|---|\n");
    for (method, params, result) in &rows {
        let names = param_names(types.resolve(params));
        let shown: Vec<String> = names
            .iter()
            .map(|(name, required)| format!("`{name}`{}", if *required { "" } else { "?" }))
            .collect();
        let shape = types.shape(result);
        // Writing to a string does not fail.
        let _ =
            writeln!(table, "| `{}` | {} | `{shape}` | {} |", method.name, shown.join(", "), method.about);
    }
    table
}

/// Returns docs/methods.md: each method with its params, and how it is reached by HTTP.
pub fn reference() -> String {
    let (types, rows) = Types::of_methods();
    let mut page = format!(
        "# Methods\n\n<!-- {WRITTEN} -->\n\nThe params of each method of [the protocol](protocol.md). All of them also take `sandboxId`, unless \
         they are about no sandbox. The types of params and results are in [protocol.schema.json](protocol.schema.json).\n"
    );
    for (method, params, _) in &rows {
        let _ = write!(page, "\n## `{}`\n\n{}.", method.name, method.about);
        if let Some(route) = method.route {
            let _ = write!(page, " By HTTP: `{} {}`.", route.verb, route.path);
        }
        page.push('\n');
        let schema = types.resolve(params);
        let names = param_names(schema);
        if names.is_empty() {
            continue;
        }
        page.push_str("\n| param | type | |\n|---|---|---|\n");
        for (name, required) in names {
            let property = &schema["properties"][&name];
            let about = property["description"].as_str().unwrap_or_default();
            let about = if required { format!("Required. {about}") } else { about.to_owned() };
            let _ = writeln!(page, "| `{name}` | {} | {about} |", types.named(property).replace('|', "\\|"));
        }
    }
    page
}

impl Types {
    /// Returns the type of a param as the reference shows it.
    fn named(&self, schema: &Value) -> String {
        self.typescript(schema).trim_end_matches(" | null").replace("readonly ", "")
    }

    /// Returns a schema as a type of TypeScript.
    fn typescript(&self, schema: &Value) -> String {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            return name.to_owned();
        }
        if let Some(value) = schema.get("const") {
            return value.to_string();
        }
        if let Some(values) = schema["enum"].as_array() {
            return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
        }
        for several in ["anyOf", "oneOf"] {
            if let Some(schemas) = schema[several].as_array() {
                return schemas.iter().map(|schema| self.typescript(schema)).collect::<Vec<_>>().join(" | ");
            }
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return "unknown".to_owned(),
        };
        let kind = |kind: &&str| match *kind {
            "integer" | "number" => "number".to_owned(),
            "array" => format!("readonly ({})[]", self.typescript(&schema["items"])),
            "object" => match &schema["additionalProperties"] {
                Value::Null => "object".to_owned(),
                values => format!("Readonly<Record<string, {}>>", self.typescript(values)),
            },
            other => other.to_owned(),
        };
        kinds
            .iter()
            .map(kind)
            .collect::<Vec<_>>()
            .join(" | ")
            .replace("readonly (string)[]", "readonly string[]")
    }
}

/// Returns sdk/typescript/src/protocol.ts.
pub fn typescript() -> String {
    let (types, rows) = Types::of_methods();
    let mut file = format!(
        "/**\n * The types of the protocol: what each method takes and answers. {WRITTEN}\n *\n * @module\n */\n"
    );
    for (name, schema) in &types.definitions {
        let about = |schema: &Value| schema["description"].as_str().unwrap_or_default().to_owned();
        let _ = write!(file, "\n/** {} */\n", about(schema));
        let Some(properties) = schema["properties"].as_object().filter(|_| schema["type"] == "object") else {
            let _ = match schema["type"] == "object" {
                true => writeln!(file, "export type {name} = Readonly<Record<string, never>>;"),
                false => writeln!(file, "export type {name} = {};", types.typescript(schema)),
            };
            continue;
        };
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let _ = writeln!(file, "export interface {name} {{");
        for (field, property) in properties {
            let optional = if required.contains(&field.as_str()) { "" } else { "?" };
            let kind = types.typescript(property);
            let undefined = if optional.is_empty() { "" } else { " | undefined" };
            let _ = writeln!(
                file,
                "  /** {} */\n  readonly {field}{optional}: {kind}{undefined};",
                about(property)
            );
        }
        file.push_str("}\n");
    }
    file.push_str("\n/** All methods. */\nexport interface Methods {\n");
    for (method, params, result) in &rows {
        let (params, result) = (types.typescript(params), types.typescript(result));
        let _ = writeln!(
            file,
            "  /** {} */\n  readonly \"{}\": {{ readonly params: {params}; readonly result: {result} }};",
            method.about, method.name
        );
    }
    file.push_str("}\n");
    file
}

/// Returns docs/openapi.json, which is also served at `/openapi.json`.
pub fn openapi() -> String {
    let mut generator = generator("/components/schemas");
    let mut paths = Map::new();
    let mut bodies = Vec::new();
    for method in METHODS {
        let Some(route) = method.route else { continue };
        let params = Value::from((method.params)(&mut generator));
        let result = Value::from((method.result)(&mut generator));
        bodies.push((method, route, params, result));
    }
    let schemas = generator.take_definitions(true);
    let resolve = |schema: &Value| {
        let name = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/components/schemas/"));
        name.and_then(|name| schemas.get(name)).cloned().unwrap_or_else(|| schema.clone())
    };
    for (method, route, params, result) in bodies {
        let operation = operation(method, &resolve(&params), result);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.verb.to_lowercase()] = operation;
    }
    for (path, verb, operation) in own_operations() {
        paths.entry(path).or_insert_with(|| json!({}))[verb] = operation;
    }
    pretty(&json!({
        "openapi": "3.1.0",
        "info": { "title": "Wardian", "version": env!("CARGO_PKG_VERSION"), "description": "Sandboxes by HTTP: docs/http.md." },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    }))
}

/// Returns the names in braces of a path.
pub fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn operation(method: &Method, params: &Value, result: Value) -> Value {
    let route = method.route.unwrap_or(crate::methods::Route { verb: "POST", path: "", streams: false });
    let in_path: Vec<&str> = placeholders(route.path).collect();
    let mut parameters: Vec<Value> = in_path
        .iter()
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    let mut body = params.clone();
    for name in in_path.iter().chain(&["sandboxId"]) {
        if let Some(properties) = body["properties"].as_object_mut() {
            properties.remove(*name);
        }
        if let Some(required) = body["required"].as_array_mut() {
            required.retain(|other| other != name);
        }
    }
    let mut operation = json!({
        "operationId": method.name,
        "summary": method.about.split(", [see").next(),
        "responses": {
            "200": { "description": "The result.", "content": { "application/json": { "schema": result } } },
            "default": { "description": "A refusal.", "content": { "application/json": { "schema": refusal() } } },
        },
    });
    if matches!(route.verb, "GET" | "DELETE") {
        let required = body["required"].clone();
        let is_required =
            |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
        for (name, schema) in body["properties"].as_object().into_iter().flatten() {
            parameters.push(
                json!({ "name": name, "in": "query", "required": is_required(name), "schema": schema }),
            );
        }
    } else {
        operation["requestBody"] = json!({ "content": { "application/json": { "schema": body } } });
    }
    if route.streams {
        operation["responses"]["200"]["content"]["text/event-stream"] =
            json!({ "schema": { "type": "string" } });
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}

fn refusal() -> Value {
    json!({
        "type": "object",
        "properties": { "error": { "type": "object", "properties": {
            "code": { "type": "string" }, "message": { "type": "string" },
        } } },
    })
}

/// What there is by HTTP alone: sandboxes as a list, and how long they live.
fn own_operations() -> Vec<(&'static str, &'static str, Value)> {
    let sandbox =
        json!({ "name": "sandbox", "in": "path", "required": true, "schema": { "type": "string" } });
    let answers = |what: &str| {
        json!({
            "200": { "description": what, "content": { "application/json": { "schema": { "type": "object" } } } },
            "default": { "description": "A refusal.", "content": { "application/json": { "schema": refusal() } } },
        })
    };
    let lifetime = json!({ "content": { "application/json": { "schema": {
        "type": "object", "required": ["lifetimeMs"],
        "properties": { "lifetimeMs": { "type": "integer", "minimum": 1, "maximum": 86_400_000 } },
    } } } });
    vec![
        (
            "/v1/sandboxes",
            "get",
            json!({
                "operationId": "listSandboxes", "summary": "The sandboxes of the token", "responses": answers("Them."),
            }),
        ),
        (
            "/v1/sandboxes/{sandbox}",
            "get",
            json!({
                "operationId": "getSandbox", "summary": "One of them", "parameters": [sandbox], "responses": answers("It."),
            }),
        ),
        (
            "/v1/sandboxes/{sandbox}",
            "delete",
            json!({
                "operationId": "destroySandbox", "summary": "Destroys a sandbox, with its forks", "parameters": [sandbox],
                "responses": answers("It is done."),
            }),
        ),
        (
            "/v1/sandboxes/{sandbox}/lifetime",
            "put",
            json!({
                "operationId": "setLifetime", "summary": "How long it lives from now on", "parameters": [sandbox],
                "requestBody": lifetime, "responses": answers("It is done."),
            }),
        ),
    ]
}

/// Between these is the table of docs/protocol.md.
const BEGIN: &str = "<!-- methods: written by `cargo xtask contract` -->\n";
const END: &str = "<!-- end of methods -->\n";

/// Returns every file of the repository that is made of the contract, with what it should be; nothing if the place of the
/// table is missing.
pub fn files(root: &std::path::Path) -> Option<Vec<(&'static str, String)>> {
    let protocol = std::fs::read_to_string(root.join("docs/protocol.md")).ok()?;
    let (before, rest) = protocol.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(vec![
        ("docs/protocol.md", format!("{before}{BEGIN}{}{END}{after}", table())),
        ("docs/protocol.schema.json", schema()),
        ("docs/openapi.json", openapi()),
        ("docs/methods.md", reference()),
        ("sdk/typescript/src/protocol.ts", typescript()),
    ])
}
