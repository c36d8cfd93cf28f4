//! What make knows without a makefile: default variables, suffixes and implicit rules, for C, C++, assembler, yacc, lex and
//! scripts. Their names and values are GNU make's.

use crate::make::{Make, Res};
use crate::rules::{PatternRule, Recipe};
use crate::text::{self, Pattern};
use crate::variables::{Operator, Origin};

const VARIABLES: &[(&str, &str)] = &[
    ("AR", "ar"),
    ("ARFLAGS", "rv"),
    ("AS", "as"),
    ("CC", "cc"),
    ("CXX", "g++"),
    ("CPP", "$(CC) -E"),
    ("LD", "ld"),
    ("LEX", "lex"),
    ("YACC", "yacc"),
    ("LINT", "lint"),
    ("MAKEINFO", "makeinfo"),
    ("TEX", "tex"),
    ("RM", "rm -f"),
    ("OUTPUT_OPTION", "-o $@"),
    ("COMPILE.c", "$(CC) $(CFLAGS) $(CPPFLAGS) $(TARGET_ARCH) -c"),
    ("COMPILE.cc", "$(CXX) $(CXXFLAGS) $(CPPFLAGS) $(TARGET_ARCH) -c"),
    ("COMPILE.C", "$(COMPILE.cc)"),
    ("COMPILE.cpp", "$(COMPILE.cc)"),
    ("COMPILE.s", "$(AS) $(ASFLAGS) $(TARGET_MACH)"),
    ("COMPILE.S", "$(CC) $(ASFLAGS) $(CPPFLAGS) $(TARGET_MACH) -c"),
    ("LINK.o", "$(CC) $(LDFLAGS) $(TARGET_ARCH)"),
    ("LINK.c", "$(CC) $(CFLAGS) $(CPPFLAGS) $(LDFLAGS) $(TARGET_ARCH)"),
    ("LINK.cc", "$(CXX) $(CXXFLAGS) $(CPPFLAGS) $(LDFLAGS) $(TARGET_ARCH)"),
    ("LINK.C", "$(LINK.cc)"),
    ("LINK.cpp", "$(LINK.cc)"),
    ("LINK.s", "$(CC) $(ASFLAGS) $(LDFLAGS) $(TARGET_MACH)"),
    ("LEX.l", "$(LEX) $(LFLAGS) -t"),
    ("YACC.y", "$(YACC) $(YFLAGS)"),
];

const SUFFIXES: &str = ".out .a .ln .o .c .cc .C .cpp .p .f .F .m .r .y .l .ym .yl .s .S .mod .sym .def .h .info .dvi .tex \
                        .texinfo .texi .txinfo .w .ch .web .sh .elc .el";

/// Target, prerequisite, recipe; in the order in which they are tried.
const RULES: &[(&str, &str, &str)] = &[
    ("%", "%.o", "$(LINK.o) $^ $(LOADLIBES) $(LDLIBS) -o $@"),
    ("%", "%.c", "$(LINK.c) $^ $(LOADLIBES) $(LDLIBS) -o $@"),
    ("%.o", "%.c", "$(COMPILE.c) $(OUTPUT_OPTION) $<"),
    ("%", "%.cc", "$(LINK.cc) $^ $(LOADLIBES) $(LDLIBS) -o $@"),
    ("%.o", "%.cc", "$(COMPILE.cc) $(OUTPUT_OPTION) $<"),
    ("%", "%.C", "$(LINK.C) $^ $(LOADLIBES) $(LDLIBS) -o $@"),
    ("%.o", "%.C", "$(COMPILE.C) $(OUTPUT_OPTION) $<"),
    ("%", "%.cpp", "$(LINK.cpp) $^ $(LOADLIBES) $(LDLIBS) -o $@"),
    ("%.o", "%.cpp", "$(COMPILE.cpp) $(OUTPUT_OPTION) $<"),
    ("%", "%.s", "$(LINK.s) $^ $(LOADLIBES) $(LDLIBS) -o $@"),
    ("%.o", "%.s", "$(COMPILE.s) -o $@ $<"),
    ("%.o", "%.S", "$(COMPILE.S) -o $@ $<"),
    ("%.c", "%.y", "$(YACC.y) $< \n mv -f y.tab.c $@"),
    ("%.c", "%.l", "@$(RM) $@ \n $(LEX.l) $< > $@"),
    ("%", "%.sh", "cat $< >$@ \n chmod a+x $@"),
];

impl Make {
    /// Sets what every makefile finds; with `-R` no variables, with `-r` no rules.
    pub fn install_builtins(&mut self) -> Res<()> {
        if !self.options.no_builtin_variables {
            for (name, value) in VARIABLES {
                if !self.globals.contains_key(name.as_bytes()) {
                    self.define(name.as_bytes(), Operator::Recursive, value.as_bytes(), Origin::Default)?;
                }
            }
        }
        if !self.options.no_builtin_rules {
            self.suffixes = text::words(SUFFIXES.as_bytes()).map(<[u8]>::to_vec).collect();
            let suffixes = text::join(&self.suffixes);
            self.define(b"SUFFIXES", Operator::Simple, &suffixes, Origin::Default)?;
            self.pattern_rules.extend(RULES.iter().map(builtin_rule));
        }
        Ok(())
    }
}

fn builtin_rule((target, prerequisite, commands): &(&str, &str, &str)) -> PatternRule {
    let lines = commands.split('\n').map(|line| (line.trim_start().as_bytes().to_vec(), 0)).collect();
    PatternRule {
        targets: vec![Pattern::new(target.as_bytes())],
        prerequisites: vec![(prerequisite.as_bytes().to_vec(), false)],
        recipe: std::rc::Rc::new(Recipe { lines, file: None, rule_line: 0 }),
        terminal: false,
    }
}
