use std::path::Path;

use engine_wasmparser::{Validator, WasmFeatures};
use wasmtime::{Engine, Module};

use super::{FEATURES, Refused, admit, caps};
use crate::limits::FLAT_CHARGE;

fn wasm(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A program with this in it.
fn program(text: &str) -> Vec<u8> {
    wasm(&format!("(module (func (export \"_start\")) {text})"))
}

fn refusal(wasm: &[u8]) -> String {
    admit(wasm).expect_err("it is refused").to_string()
}

/// For each feature that is off: a module that needs it, and what the refusal says.
const OFF: [(WasmFeatures, &str, &str); 16] = [
    (WasmFeatures::THREADS, "(module (memory 1 1 shared))", "threads"),
    (WasmFeatures::THREADS, "(module (func atomic.fence))", "threads"),
    (WasmFeatures::MULTI_MEMORY, "(module (memory 1) (memory 1))", "multi"),
    (WasmFeatures::MEMORY64, "(module (memory i64 1))", "memory64"),
    (WasmFeatures::MEMORY64, "(module (table i64 1 funcref))", "memory64"),
    (WasmFeatures::EXCEPTIONS, "(module (tag))", "exceptions"),
    (WasmFeatures::LEGACY_EXCEPTIONS, "(module (func try catch_all end))", "exceptions"),
    (WasmFeatures::GC, "(module (type (struct)))", "gc"),
    (WasmFeatures::GC_TYPES, "(module (func (param externref)))", "gc"),
    (WasmFeatures::FUNCTION_REFERENCES, "(module (func (param (ref func))))", "function references"),
    (WasmFeatures::CUSTOM_PAGE_SIZES, "(module (memory 1 (pagesize 1)))", "custom page sizes"),
    (WasmFeatures::STACK_SWITCHING, "(module (type $f (func)) (type (cont $f)))", "stack switching"),
    (
        WasmFeatures::WIDE_ARITHMETIC,
        "(module (func (param i64 i64 i64 i64) (i64.add128 (local.get 0) (local.get 1) (local.get 2) (local.get 3)) drop drop))",
        "wide arithmetic",
    ),
    (WasmFeatures::SHARED_EVERYTHING_THREADS, "(module (global (shared i32) (i32.const 0)))", "shared"),
    (
        WasmFeatures::MEMORY_CONTROL,
        "(module (memory 1) (func (memory.discard (i32.const 0) (i32.const 0))))",
        "memory control",
    ),
    (WasmFeatures::COMPONENT_MODEL, "(component)", "component"),
];

/// Features of components, and those that this text format cannot write down.
fn has_no_module(feature: WasmFeatures, name: &str) -> bool {
    name.starts_with("CM")
        || feature == WasmFeatures::COMPACT_IMPORTS
        || feature == WasmFeatures::CUSTOM_DESCRIPTORS
}

#[test]
fn unlisted_features_are_refused_by_name_here_and_by_the_engine() {
    let config = crate::kernel::engine_config();
    let engine = Engine::new(&config).expect("an engine");
    assert_eq!(engine.get_wasm_features(), FEATURES);
    for (feature, text, named) in OFF {
        let wasm = wasm(text);
        let all = Validator::new_with_features(WasmFeatures::all()).validate_all(&wasm).map(drop);
        assert!(all.is_ok(), "it is refused for something else: {all:?} {text}");
        let refusal = refusal(&wasm).to_lowercase();
        assert!(refusal.contains(named), "{refusal} does not name {named} for {text}");
        assert!(!FEATURES.intersects(feature), "{text}");
        assert!(Module::new(&engine, &wasm).is_err(), "the engine takes {text}");
    }
    for (name, feature) in WasmFeatures::all().iter_names() {
        let tried = OFF.iter().any(|(off, ..)| *off == feature);
        let told = FEATURES.contains(feature) || tried || has_no_module(feature, name);
        assert!(told, "{name} is neither on the list nor tried");
    }
}

/// As a user's own programs would be; what they need beside their memory is less than the flat charge.
#[test]
fn every_bundled_program_would_be_admitted() {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests");
    let mut seen = 0;
    for dist in [guests.join("dist"), guests.join("testing/dist")] {
        for entry in std::fs::read_dir(dist).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "zst") {
                let file = std::fs::File::open(&path).expect("a file");
                let wasm = zstd::decode_all(file).expect("a zstd file");
                let admitted = admit(&wasm).unwrap_or_else(|refused| panic!("{}: {refused}", path.display()));
                // Python's tables have the functions of numpy and pandas, too.
                let is_python = path.ends_with("python3.wasm.zst");
                let most = if is_python { 1 << 20 } else { 2 * FLAT_CHARGE };
                assert!(admitted.instance_bytes < most, "{}: {admitted:?}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 8, "{seen}");
}

/// `count` times the same text.
fn times(count: u64, text: &str) -> String {
    text.repeat(count as usize)
}

/// Text of a module that has as much of something as is allowed, and one more.
fn at_the_cap(what: &str, most: u64) -> [String; 2] {
    let with = |count: u64| match what {
        "types" => times(count, "(type (func))"),
        "parameters of a function" => format!("(func (param {}))", times(count, " i32")),
        "results of a function" => format!("(func (result {}) unreachable)", times(count, " i32")),
        "parameters or results of a block" => {
            format!("(func (block (param {}) unreachable))", times(count, " i32"))
                .replace("(func (block", "(func unreachable (block")
        }
        "functions" => times(count - 1, "(func)"),
        "locals of a function" => format!("(func (local {}))", times(count, " i32")),
        // The body of the function is one more.
        "blocks inside each other" => {
            format!("(func {} {})", times(count - 1, "block "), times(count - 1, "end "))
        }
        "targets of a br_table" => format!("(func i32.const 0 br_table {})", times(count + 1, "0 ")),
        "tables" => times(count, "(table 1 funcref)"),
        "table elements" => format!("(table {count} funcref)"),
        "globals" => times(count, "(global i32 (i32.const 0))"),
        "element segments" => format!("(table 1 funcref) {}", times(count, "(elem (i32.const 0) func)")),
        "elements outside a table" => format!("(elem func {})", times(count, "0 ")),
        "data segments" => format!("(memory 1) {}", times(count, "(data \"\")")),
        "custom sections" => times(count, "(@custom \"a\" \"\")"),
        "bytes of a name" => format!("(export \"{}\" (func 0))", times(count, "a")),
        // The first is two bytes, each other three, and the end is one.
        "bytes of a constant expression" => {
            let adds = (count - 2) / 3;
            format!("(global i32 {} i32.const 1 {})", times(adds, "i32.const 1 "), times(adds, "i32.add "))
        }
        other => panic!("{other}"),
    };
    [with(most), with(most + 1 + 2 * u64::from(what.contains("expression")))]
}

#[test]
fn each_cap_is_refused_by_name_and_one_less_is_admitted() {
    let caps = [
        ("types", caps::TYPES),
        ("parameters of a function", caps::PARAMETERS),
        ("results of a function", caps::RESULTS),
        ("parameters or results of a block", caps::BLOCK_VALUES),
        ("functions", caps::FUNCTIONS),
        ("locals of a function", caps::LOCALS),
        ("blocks inside each other", caps::NESTING),
        ("targets of a br_table", caps::TARGETS),
        ("tables", caps::TABLES),
        ("table elements", caps::TABLE_ELEMENTS),
        ("globals", caps::GLOBALS),
        ("element segments", caps::ELEMENT_SEGMENTS),
        ("elements outside a table", caps::KEPT_ELEMENTS),
        ("data segments", caps::DATA_SEGMENTS),
        ("custom sections", caps::CUSTOM_SECTIONS),
        ("bytes of a name", caps::NAME_BYTES),
        ("bytes of a constant expression", caps::EXPRESSION_BYTES),
    ];
    for (what, most) in caps {
        let [allowed, one_more] = at_the_cap(what, most);
        let admitted = admit(&program(&allowed));
        assert!(admitted.is_ok(), "{what}: {admitted:?}");
        match admit(&program(&one_more)) {
            Err(Refused::TooMany { what: named, most: told, .. }) => assert_eq!((named, told), (what, most)),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn totals_over_a_program_have_caps() {
    let too_many = |wasm: &[u8]| match admit(wasm) {
        Err(Refused::TooMany { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(too_many(&vec![0; caps::BYTES as usize + 1]), "bytes");
    let imports = times(caps::IMPORTS + 1, "(import \"a\" \"b\" (func))");
    assert_eq!(too_many(&wasm(&format!("(module {imports})"))), "imports");
    let exports: String = (0..caps::EXPORTS).map(|n| format!("(export \"{n}\" (func 0))")).collect();
    assert_eq!(too_many(&program(&exports)), "exports");
    let elements = times(caps::ELEMENTS + 1, "0 ");
    assert_eq!(
        too_many(&program(&format!("(table 1 funcref) (elem (i32.const 0) func {elements})"))),
        "elements"
    );
    let locals = format!("(func (local {}))", times(caps::LOCALS, "i32 "));
    assert_eq!(
        too_many(&program(&times(caps::ALL_LOCALS / caps::LOCALS + 1, &locals))),
        "locals of all functions"
    );
    let computed = "values that must be computed or copied at the start";
    let (sum, many) = ("(i32.add (i32.const 0) (i32.const 0))", caps::COMPUTED + 1);
    for text in [
        times(many, &format!("(global i32 {sum})")),
        times(many, "(global funcref (ref.func 0))"),
        format!("(table 2000 funcref) (elem (offset {sum}) func {})", times(many, "0 ")),
        format!("(table 2000 funcref) (elem (i32.const 0) funcref {})", times(many, "(ref.null func) ")),
        // Where one segment is computed, those after it are, too.
        format!(
            "(table 2000 funcref) (elem (offset {sum}) func) (elem (i32.const 0) func {})",
            times(many, "0 ")
        ),
        format!("(memory 1) {}", times(many, &format!("(data (offset {sum}) \"a\")"))),
        format!("(memory 1) (data (offset {sum}) \"a\") {}", times(many, "(data (i32.const 0) \"a\")")),
        format!(
            "(memory 400) (data (i32.const 20000000) \"a\") {}",
            times(many, "(data (i32.const 0) \"a\")")
        ),
    ] {
        assert_eq!(too_many(&program(&text)), computed, "{}", &text[..60]);
    }
    let (near, far) = (times(caps::COPIED_BYTES, "a"), "(data (i32.const 20000000) \"a\")");
    let spread = format!("(memory 400) (data (i32.const 0) \"{near}\") {far}");
    assert!(too_many(&program(&spread)).contains("bytes of data"));
    // Few bytes, and many operands to check: of calls that cannot be reached, of branches, of blocks.
    let calls =
        format!("(func $f (param {})) (func unreachable {})", times(400, "i32 "), times(500, "call $f "));
    assert_eq!(too_many(&program(&calls)), "operands moved so far");
    let (types, pushes) = (times(16, "i32 "), times(16, "i32.const 0 "));
    for (repeated, count) in [
        (format!("i32.const 0 br_table {}", times(1_000, "0 ")), 3),
        ("i32.const 0 br_if 0 ".to_owned(), 5_000),
        (format!("(block (param {types}) (result {types})) "), 5_000),
    ] {
        let text = format!("(func (result {types}) {pushes} {})", times(count, &repeated));
        assert_eq!(too_many(&program(&text)), "operands moved so far", "{repeated}");
    }
}

#[test]
fn what_could_never_start_is_refused() {
    for (text, named) in [
        ("(memory 1) (data (i32.const 65535) \"ab\")", "data segment"),
        ("(memory 1) (data (i32.const -1) \"\")", "data segment"),
        ("(table 1 funcref) (elem (i32.const 1) func 0)", "element segment"),
    ] {
        assert!(refusal(&program(text)).contains(named), "{text}");
    }
}

#[test]
fn imports_are_functions() {
    for (import, named) in
        [("(memory 1)", "memory"), ("(table 1 funcref)", "table"), ("(global i32)", "global")]
    {
        let refused = refusal(&wasm(&format!("(module (import \"a\" \"b\" {import}))")));
        assert_eq!(refused, format!("it imports a {named}: only functions can be imported"));
    }
}

#[test]
fn exports_that_the_kernel_uses_are_of_its_types() {
    let wrong = [
        ("memory", "(func (export \"memory\"))"),
        ("memory", "(global (export \"memory\") i32 (i32.const 0))"),
        ("__stack_pointer", "(global (export \"__stack_pointer\") i32 (i32.const 0))"),
        ("__stack_pointer", "(global (export \"__stack_pointer\") (mut i64) (i64.const 0))"),
        ("__stack_pointer", "(global (export \"__stack_pointer\") (mut f32) (f32.const 0))"),
        ("__stack_pointer", "(global (export \"__stack_pointer\") (mut funcref) (ref.null func))"),
        ("__stack_pointer", "(func (export \"__stack_pointer\"))"),
        ("_initialize", "(func (export \"_initialize\") (param i32))"),
        ("__wardian_fork_entry", "(func (export \"__wardian_fork_entry\"))"),
        (
            "__wardian_fork_entry",
            "(func (export \"__wardian_fork_entry\") (param i64 i32) (result i32) i32.const 0)",
        ),
        ("__wardian_fork_entry", "(memory (export \"__wardian_fork_entry\") 1)"),
        ("wardian_run", "(func (export \"wardian_run\") (param i32) (result i32) i32.const 0)"),
        ("wardian_run_contained", "(func (export \"wardian_run_contained\"))"),
        ("wardian_alloc", "(table (export \"wardian_alloc\") 1 funcref)"),
        ("wardian_getenv", "(func (export \"wardian_getenv\") (param i32 i32) (result i32) i32.const 0)"),
        ("wardian_ask", "(func (export \"wardian_ask\"))"),
        ("wardian_setenv", "(func (export \"wardian_setenv\"))"),
    ];
    for (name, text) in wrong {
        let refused = refusal(&program(text));
        assert!(refused.starts_with(&format!("its export {name} must be ")), "{refused}");
    }
    let start = |text: &str| refusal(&wasm(&format!("(module {text})")));
    assert!(start("(func (export \"_start\") (param i32))").starts_with("its export _start must be "));
    assert!(start("(memory (export \"_start\") 1)").starts_with("its export _start must be "));
    assert_eq!(start("(func (export \"run\"))"), Refused::NoStart.to_string());
}
