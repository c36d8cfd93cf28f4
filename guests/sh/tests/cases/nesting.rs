//! Scripts that nest something ten thousand levels deep, or recurse without end: each is an error or has an answer, and
//! none is the end of the shell.

const LEVELS: usize = 10_000;

/// What opens a level, what stands in the middle, and what closes a level.
const NESTED: &[(&str, &str, &str)] = &[
    ("( ", "echo x", " )"),
    ("(", "echo x", ")"),
    ("{ ", "echo x;", " }"),
    ("echo $(", "echo x", ")"),
    ("echo \"$(", "echo x", ")\""),
    ("cat <(", "echo x", ")"),
    ("if true; then ", "echo x", "; fi"),
    ("if ", "true", "; then :; fi"),
    ("while true; do ", "break", "; done"),
    ("for i in 1; do ", "break", "; done"),
    ("for ((;;)); do ", "break", "; done"),
    ("case x in x) ", "echo x", ";; esac"),
    ("f() { ", "echo x", "; }"),
    ("! ", "true", ""),
    ("true && ", "true", ""),
    ("x=1 ", "true", ""),
    ("echo $((", "1", ""),
    ("echo \"${a:-", "x", ""),
    ("((", "", ""),
    ("if false; then :; else ", "echo x", "; fi"),
    ("while ", "false", "; do :; done"),
    ("until false; do ", "break", "; done"),
    ("select i in 1; do ", "break", "; done < /dev/null"),
    ("case $(", "echo x", ") in x) ;; esac"),
    ("for i in $(", "echo x", "); do :; done"),
    ("function f { ", "echo x", "; }"),
    ("f() ( ", "echo x", " )"),
    ("coproc { ", "echo x", "; }"),
    ("[[ $(", "echo x", ") ]]"),
    ("echo `echo ", "x", "`"),
    ("echo x > >(", "cat", ")"),
    ("cat <<E\n$(", "echo x", ")\nE\n"),
    ("echo $(cat <<E\n", "x", "\nE\n)"),
    ("cat <<< $(", "echo x", ")"),
    ("a=($(", "echo x", "))"),
    ("a[$(", "echo 1", ")]=1"),
    ("eval ", "echo x", ""),
    ("time ", "true", ""),
];

/// The same, with something before and after it all.
const NESTED_WITHIN: &[(&str, &str, &str, &str, &str)] = &[
    ("echo ", "${a:-", "x", "}", ""),
    ("echo ", "$((", "1", "))", ""),
    ("echo $((", "(", "1", ")", "))"),
    ("echo $((", "-", "1", "", "))"),
    ("echo $((", "1+", "1", "", "))"),
    ("echo $((", "1?", "1", ":1", "))"),
    ("echo $((", "a[", "1", "]", "))"),
    ("[[ ", "( ", "a", " )", " ]]"),
    ("[[ ", "! ", "a", "", " ]]"),
    ("[[ ", "a && ", "a", "", " ]]"),
    ("[ ", "! ", "a", "", " ]"),
    ("[[ x =~ ", "(", "x", ")", " ]]"),
    ("case x in ", "@(", "x", ")", ") :;; esac"),
    ("echo ", "{a,", "b", "}", " > /dev/null"),
    ("cat <<E\n", "$(echo ", "x", ")", "\nE\n"),
    ("cat <<E\n", "${a:-", "x", "}", "\nE\n"),
    ("echo \"", "${a:-\"", "x", "\"}", "\""),
    ("a=1; echo ", "${a/x/", "x", "}", ""),
    ("a=1; echo ", "${a:", "0", "}", ""),
    ("echo ", "${a[", "0", "]}", ""),
    ("echo ", "$[", "1", "]", ""),
    ("echo $((", "1?(", "1", "):1", "))"),
    ("echo $((", "a=", "1", "", "))"),
    ("let \"", "(", "1", ")", "\""),
    ("[ ", "\\( ", "a", " \\)", " ]"),
    ("shopt -s extglob\n[[ x == ", "!(", "x", ")", " ]]"),
    ("shopt -s extglob\n[[ x == ", "+(a|", "x", ")", " ]]"),
    ("r='", "(", "x", ")", "'; [[ x =~ $r ]]"),
    ("r='", "(", "x", "){2}", "'; [[ x =~ $r ]]"),
    ("x='", "$(echo ", "x", ")", "'; echo ${x@P}"),
];

const ENDLESS: &[&str] = &[
    "f() { f; }; f",
    "f() { f $(($1 + 1)) more; }; f 1",
    "f() { if true; then for i in 1; do { case x in x) f;; esac; }; done; fi; }; f",
    "f() { eval f; }; f",
    "FUNCNEST=30; f() { local x=$1; f \"${x}a\"; }; f a",
    "echo '. ./self' > self; . ./self",
    "a=a+1; echo $((a))",
    "a=b b=a; echo $((a))",
    "declare -n n=m m=n; echo $n",
    "x='${x@P}'; echo \"${x@P}\"",
    "(trap 'kill -USR1 $BASHPID' USR1; kill -USR1 $BASHPID)",
    "(f() { f; }; trap f DEBUG; f)",
    "(f() { g; }; g() { f; }; trap g RETURN; f)",
    "f() { . ./f; }; echo f > f; f",
    "x='eval \"$x\"'; eval \"$x\"",
    "shopt -s expand_aliases\nalias a='b' b='a'\na",
    "command_not_found_handle() { nosuch; }; nosuch",
    "f() { mapfile -C f -c 1 a <<< x; }; f",
];

/// Every such script, with a name to show for it.
pub fn scripts() -> Vec<(String, String)> {
    let within = NESTED.iter().map(|&(open, middle, close)| ("", open, middle, close, ""));
    let nested = within.chain(NESTED_WITHIN.iter().copied()).map(|(before, open, middle, close, after)| {
        let script = format!("{before}{}{middle}{}{after}", open.repeat(LEVELS), close.repeat(LEVELS));
        (format!("{before}{open}"), script)
    });
    let endless = ENDLESS.iter().map(|script| (script.to_string(), script.to_string()));
    nested.chain(endless).collect()
}
