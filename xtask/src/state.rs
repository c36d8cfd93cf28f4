//! Where a program keeps its state.
//!
//! The kernel wipes the instances of programs that ship with us and gives them to the next process. It sets back their
//! memory and their stack pointer; a program that can change anything else of itself would hand that on.

use anyhow::{Context, Result, bail};
use wasmparser::{DataKind, ElementKind, Operator, Parser, Payload};

/// Fails, saying what it is, if a program has state other than its memory and the one global that is its stack pointer.
pub fn check(wasm: &[u8]) -> Result<()> {
    let mut variables = 0;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.context("not a WebAssembly module")? {
            Payload::GlobalSection(globals) => {
                for global in globals {
                    variables += usize::from(global?.ty.mutable);
                }
            }
            Payload::MemorySection(memories) if memories.count() > 1 => bail!("it has several memories"),
            Payload::DataSection(segments) => {
                for segment in segments {
                    if matches!(segment?.kind, DataKind::Passive) {
                        bail!("it can drop a segment of data");
                    }
                }
            }
            Payload::ElementSection(segments) => {
                for segment in segments {
                    if matches!(segment?.kind, ElementKind::Passive) {
                        bail!("it can drop a segment of its table");
                    }
                }
            }
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader()? {
                    check_operator(&operator?)?;
                }
            }
            _ => {}
        }
    }
    match variables {
        1 => Ok(()),
        many => bail!("it has {many} variable globals instead of the stack pointer alone"),
    }
}

fn check_operator(operator: &Operator) -> Result<()> {
    match operator {
        Operator::TableSet { .. }
        | Operator::TableGrow { .. }
        | Operator::TableFill { .. }
        | Operator::TableCopy { .. }
        | Operator::TableInit { .. } => bail!("it changes its table: {operator:?}"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    fn complaint(text: &str) -> String {
        check(&wat::parse_str(text).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn memory_and_a_stack_pointer_are_all_a_program_may_have() {
        let plain = r#"(module (memory 1) (table 1 funcref) (global (mut i32) (i32.const 9)) (global i32 (i32.const 1))
            (data (i32.const 0) "x") (func $f) (elem (i32.const 0) $f))"#;
        check(&wat::parse_str(plain).unwrap()).unwrap();
    }

    #[test]
    fn any_other_state_is_found() {
        let global = "(global (mut i32) (i32.const 0))";
        assert!(complaint(&format!("(module {global} {global})")).contains("2 variable globals"));
        assert!(complaint("(module)").contains("0 variable globals"));
        assert!(complaint(&format!("(module {global} (memory 1) (memory 1))")).contains("several memories"));
        assert!(
            complaint(&format!(r#"(module {global} (memory 1) (data "x"))"#)).contains("segment of data")
        );
        assert!(
            complaint(&format!("(module {global} (func $f) (elem func $f))"))
                .contains("segment of its table")
        );
        let sets =
            format!("(module {global} (table 1 funcref) (func (table.set (i32.const 0) (ref.null func))))");
        assert!(complaint(&sets).contains("changes its table"));
    }
}
