//! Exports what the kernel looks for: see docs/abi.md.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("wasm32") {
        return;
    }
    let exports = [
        "__stack_pointer",
        "__wardian_fork_entry",
        "_initialize",
        "wardian_run",
        "wardian_run_contained",
        "wardian_alloc",
        "wardian_getenv",
        "wardian_setenv",
    ];
    for export in exports {
        println!("cargo:rustc-link-arg-bins=--export={export}");
    }
}
