//! Counts the contents of a module, and stops if there is too much.

use engine_wasmparser::{
    BinaryReader, BlockType, CompositeInnerType, ConstExpr, DataKind, DataSectionReader, ElementItems,
    ElementKind, FrameKind, FuncValidator, FunctionBody, Operator, OperatorsReader, Payload, TypeRef,
    ValidatorResources,
};

use super::caps::{self, cap};
use super::{Admitted, Refused};

/// What was found so far.
#[derive(Default)]
pub(super) struct Count {
    /// Parameters and results of each type.
    types: Vec<(u16, u16)>,
    /// The type of each function, imported ones first.
    functions: Vec<u32>,
    imports: u64,
    exports: u64,
    globals: u64,
    memory_bytes: u64,
    table_elements: u64,
    element_segments: u64,
    elements: u64,
    kept_elements: u64,
    /// From here on, segments are not put into the table before the start.
    elements_computed: bool,
    data_segments: u64,
    computed: u64,
    custom_sections: u64,
    locals: u64,
    code_bytes: u64,
    operands: u64,
}

impl Count {
    /// Checks how many of something a section claims to have, before anything is done with them.
    pub(super) fn before(&mut self, payload: &Payload<'_>) -> Result<(), Refused> {
        let count = |section: u32| u64::from(section);
        match payload {
            Payload::TypeSection(section) => cap("types", count(section.count()), caps::TYPES),
            Payload::ImportSection(section) => cap("imports", count(section.count()), caps::IMPORTS),
            Payload::FunctionSection(section) => cap("functions", count(section.count()), caps::FUNCTIONS),
            Payload::TableSection(section) => cap("tables", count(section.count()), caps::TABLES),
            Payload::GlobalSection(section) => cap("globals", count(section.count()), caps::GLOBALS),
            Payload::ExportSection(section) => cap("exports", count(section.count()), caps::EXPORTS),
            Payload::ElementSection(section) => {
                cap("element segments", count(section.count()), caps::ELEMENT_SEGMENTS)
            }
            Payload::DataSection(section) => {
                cap("data segments", count(section.count()), caps::DATA_SEGMENTS)
            }
            Payload::DataCountSection { count, .. } => {
                cap("data segments", u64::from(*count), caps::DATA_SEGMENTS)
            }
            Payload::CustomSection(section) => {
                self.custom_sections += 1;
                cap("custom sections", self.custom_sections, caps::CUSTOM_SECTIONS)?;
                name(section.name())
            }
            _ => Ok(()),
        }
    }

    /// What is in a section that is valid.
    pub(super) fn after(&mut self, payload: Payload<'_>) -> Result<(), Refused> {
        match payload {
            Payload::TypeSection(section) => {
                for group in section {
                    group?.types().try_for_each(|ty| self.add_type(&ty.composite_type.inner))?;
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    name(import.module)?;
                    name(import.name)?;
                    self.imports += 1;
                    self.functions.push(imported_function(import.ty)?);
                }
            }
            Payload::FunctionSection(section) => {
                for function in section {
                    self.functions.push(function?);
                }
            }
            Payload::TableSection(section) => {
                for table in section {
                    self.table_elements += table?.ty.initial;
                    cap("table elements", self.table_elements, caps::TABLE_ELEMENTS)?;
                }
            }
            Payload::MemorySection(section) => {
                for memory in section {
                    self.memory_bytes = memory?.initial << 16;
                }
            }
            Payload::GlobalSection(section) => {
                self.globals = u64::from(section.count());
                for global in section {
                    self.expression(&global?.init_expr)?;
                }
            }
            Payload::ExportSection(section) => {
                self.exports = u64::from(section.count());
                for export in section {
                    name(export?.name)?;
                }
            }
            Payload::ElementSection(section) => {
                self.element_segments = u64::from(section.count());
                for element in section {
                    let element = element?;
                    self.add_elements(&element.kind, element.items)?;
                }
            }
            Payload::DataSection(section) => {
                self.data_segments = u64::from(section.count());
                self.data(section)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn add_type(&mut self, ty: &CompositeInnerType) -> Result<(), Refused> {
        let CompositeInnerType::Func(function) = ty else {
            return Err(Refused::Invalid("only types of functions are supported".to_owned()));
        };
        let (params, results) = (function.params().len(), function.results().len());
        cap("parameters of a function", params as u64, caps::PARAMETERS)?;
        cap("results of a function", results as u64, caps::RESULTS)?;
        self.types.push((params as u16, results as u16));
        cap("types", self.types.len() as u64, caps::TYPES)
    }

    fn add_elements(&mut self, kind: &ElementKind<'_>, items: ElementItems<'_>) -> Result<(), Refused> {
        let count = u64::from(match &items {
            ElementItems::Functions(section) => section.count(),
            ElementItems::Expressions(_, section) => section.count(),
        });
        self.elements += count;
        cap("elements", self.elements, caps::ELEMENTS)?;
        match kind {
            ElementKind::Active { offset_expr, .. } => {
                let offset = self.expression(offset_expr)?;
                if offset.is_some_and(|offset| offset + count > self.table_elements) {
                    return Err(Refused::Outside("an element segment is outside its table"));
                }
                self.elements_computed |= offset.is_none() || matches!(items, ElementItems::Expressions(..));
                if self.elements_computed {
                    self.compute(count)?;
                }
            }
            ElementKind::Passive => {
                self.kept_elements += count;
                cap("elements outside a table", self.kept_elements, caps::KEPT_ELEMENTS)?;
            }
            ElementKind::Declared => {}
        }
        if let ElementItems::Expressions(_, section) = items {
            for item in section {
                self.expression(&item?)?;
            }
        }
        Ok(())
    }

    /// Data is mapped if every offset is a number and it is not spread out far; else it is copied.
    fn data(&mut self, section: DataSectionReader<'_>) -> Result<(), Refused> {
        let (mut bytes, mut segments, mut copied) = (0, 0, false);
        let (mut lowest, mut end) = (u64::MAX, 0);
        for data in section {
            let data = data?;
            let DataKind::Active { offset_expr, .. } = &data.kind else { continue };
            let length = data.data.len() as u64;
            bytes += length;
            segments += 1;
            match self.expression(offset_expr)? {
                Some(offset) if offset + length > self.memory_bytes => {
                    return Err(Refused::Outside("a data segment is outside its memory"));
                }
                Some(offset) if length > 0 => {
                    (lowest, end) = (lowest.min(offset), end.max(offset + length));
                }
                Some(_) => {}
                None => copied = true,
            }
        }
        let extent = u64::saturating_sub(end, lowest);
        if copied || (extent >= bytes * 2 && extent >= caps::IMAGE_BYTES) {
            cap("bytes of data that must be copied at the start", bytes, caps::COPIED_BYTES)?;
            self.compute(segments)?;
        }
        Ok(())
    }

    /// Refuses a constant expression that is too long, and counts one that is not just a number. Returns the number, if
    /// it can be an offset.
    fn expression(&mut self, expression: &ConstExpr<'_>) -> Result<Option<u64>, Refused> {
        let bytes = expression.get_binary_reader().bytes_remaining() as u64;
        cap("bytes of a constant expression", bytes, caps::EXPRESSION_BYTES)?;
        let mut operators = expression.get_operators_reader();
        let (first, second) = (operators.read()?, operators.read());
        match (first, second) {
            (Operator::I32Const { value }, Ok(Operator::End)) => Ok(Some(u64::from(value as u32))),
            (
                Operator::I64Const { .. }
                | Operator::F32Const { .. }
                | Operator::F64Const { .. }
                | Operator::V128Const { .. },
                Ok(Operator::End),
            ) => Ok(None),
            _ => self.compute(1).map(|()| None),
        }
    }

    fn compute(&mut self, count: u64) -> Result<(), Refused> {
        self.computed += count;
        cap("values that must be computed or copied at the start", self.computed, caps::COMPUTED)
    }

    /// Validates the body of a function, instruction by instruction.
    pub(super) fn body(
        &mut self,
        validator: &mut FuncValidator<ValidatorResources>,
        body: &FunctionBody<'_>,
    ) -> Result<(), Refused> {
        let bytes = body.range().len() as u64;
        cap("bytes of a function", bytes, caps::FUNCTION_BYTES)?;
        self.code_bytes += bytes;
        let mut reader = body.get_binary_reader();
        self.locals(validator, &mut reader)?;
        reader.set_features(super::FEATURES);
        let mut operators = OperatorsReader::new(reader);
        while !operators.eof() {
            let (operator, offset) = operators.read_with_offset()?;
            self.operator(validator, &operator)?;
            validator.op(offset, &operator)?;
            if let Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } = operator {
                cap("blocks inside each other", validator.control_stack_height().into(), caps::NESTING)?;
            }
        }
        Ok(operators.finish()?)
    }

    fn locals(
        &mut self,
        validator: &mut FuncValidator<ValidatorResources>,
        reader: &mut BinaryReader<'_>,
    ) -> Result<(), Refused> {
        let mut locals = 0;
        for _ in 0..reader.read_var_u32()? {
            let offset = reader.original_position();
            let (count, ty) = (reader.read()?, reader.read()?);
            locals += u64::from(count);
            cap("locals of a function", locals, caps::LOCALS)?;
            validator.define_locals(offset, count, ty)?;
        }
        self.locals += locals;
        cap("locals of all functions", self.locals, caps::ALL_LOCALS)
    }

    /// Checks what takes longer to validate or compile than its bytes suggest.
    fn operator(
        &mut self,
        validator: &FuncValidator<ValidatorResources>,
        operator: &Operator<'_>,
    ) -> Result<(), Refused> {
        let label = |depth: u32| self.carried(validator, depth);
        let moved = match *operator {
            Operator::Block { blockty } | Operator::Loop { blockty } | Operator::If { blockty } => {
                let (params, results) = self.values(blockty);
                cap("parameters or results of a block", params.max(results), caps::BLOCK_VALUES)?;
                params + results
            }
            Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => label(relative_depth),
            Operator::BrTable { ref targets } => {
                cap("targets of a br_table", targets.len().into(), caps::TARGETS)?;
                let mut moved = label(targets.default());
                for target in targets.targets() {
                    moved += label(target?);
                }
                moved
            }
            Operator::Return => label(validator.control_stack_height().saturating_sub(1)),
            Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                // A function that is not there is the validator's to refuse.
                let ty = self.functions.get(function_index as usize).copied();
                ty.map_or(0, |ty| self.arity(ty).0)
            }
            Operator::CallIndirect { type_index, .. } | Operator::ReturnCallIndirect { type_index, .. } => {
                self.arity(type_index).0
            }
            _ => 0,
        };
        self.operands += moved;
        let most = self.code_bytes * caps::OPERANDS_PER_BYTE + caps::OPERANDS_FREE;
        cap("operands moved so far", self.operands, most)
    }

    /// Returns how many values a branch to this label carries, beyond the first.
    fn carried(&self, validator: &FuncValidator<ValidatorResources>, depth: u32) -> u64 {
        let values = validator.get_control_frame(depth as usize).map_or(0, |frame| {
            let (params, results) = self.values(frame.block_type);
            if frame.kind == FrameKind::Loop { params } else { results }
        });
        values.saturating_sub(1)
    }

    /// Parameters and results of a block.
    fn values(&self, ty: BlockType) -> (u64, u64) {
        match ty {
            BlockType::Empty => (0, 0),
            BlockType::Type(_) => (0, 1),
            BlockType::FuncType(ty) => self.arity(ty),
        }
    }

    /// Returns the parameters and results of a type. The validator refuses one that does not exist.
    fn arity(&self, ty: u32) -> (u64, u64) {
        let &(params, results) = self.types.get(ty as usize).unwrap_or(&(0, 0));
        (params.into(), results.into())
    }

    /// All of it was valid.
    pub(super) fn admitted(&self) -> Admitted {
        // A function has an entry only if something can refer to it.
        let referred = (self.elements + self.exports + self.globals).min(self.functions.len() as u64);
        let kept = self.kept_elements + self.element_segments + self.data_segments;
        let instance_bytes = record_bytes(self.imports, referred, self.globals + kept);
        Admitted { instance_bytes, mappings: caps::MAPPINGS }
    }
}

/// What the engine keeps in the record of an instance, generously: for its imports, the functions that something can refer
/// to, and globals and segments.
fn record_bytes(imports: u64, referred: u64, others: u64) -> u64 {
    const RECORD: u64 = 4_096;
    RECORD + 64 * imports + 48 * referred + 16 * others
}

/// Returns what is known about a compiled program that ships with Wardian: its record and its table. Its memory is shared.
pub(crate) fn of_module(module: &wasmtime::Module) -> Admitted {
    let table = module.resources_required().max_initial_table_size.unwrap_or(0);
    let (imports, exports) = (module.imports().len() as u64, module.exports().len() as u64);
    let instance_bytes = record_bytes(imports, table + exports, exports) + caps::TABLE_ELEMENT_BYTES * table;
    Admitted { instance_bytes, mappings: caps::MAPPINGS }
}

fn imported_function(ty: TypeRef) -> Result<u32, Refused> {
    match ty {
        TypeRef::Func(ty) | TypeRef::FuncExact(ty) => Ok(ty),
        TypeRef::Table(_) => Err(Refused::Import("table")),
        TypeRef::Memory(_) => Err(Refused::Import("memory")),
        TypeRef::Global(_) => Err(Refused::Import("global")),
        TypeRef::Tag(_) => Err(Refused::Import("tag")),
    }
}

fn name(name: &str) -> Result<(), Refused> {
    cap("bytes of a name", name.len() as u64, caps::NAME_BYTES)
}
